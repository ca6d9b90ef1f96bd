/**
 * Identities of rules policies: a prefix, and the hash of what enters a decision and nothing else
 * (docs/recheck.md, "Policies: rules").
 *
 * @module
 */
import { quote } from "../json/chars.ts";
import { compareUtf8 } from "../json/order.ts";
import { contentHash, type Sha256 } from "./hash.ts";
import { type FlatRules, fixedText, outcomesByClass, type ProxyRules } from "./rules-schema.ts";

export const RULES_ID_PREFIX = "runseal-rules/sha256:";
export const PROXY_ID_PREFIX = "agentrt-proxy/sha256:";

/** The identity of a policy in the form of our own, where it names none itself. */
export function flatPolicyId({ json, tree }: FlatRules, crypto: Sha256): string {
  const tools: string[] = [];
  for (const [name, rule] of Object.entries(json.tools ?? {})) {
    const members = ruleMembers(rule, fixedText(tree, "tools", name, "fixed"));
    if (Array.isArray(rule.deny) && rule.deny.length > 0) {
      members.push(`"deny":${JSON.stringify([...new Set(rule.deny)].sort())}`);
    } else if (rule.deny === true) {
      members.push('"deny":true');
    }
    if (members.length > 0) tools.push(`${quote(name)}:{${members.join(",")}}`);
  }
  const text = `{"policy":${objectText(outcomesByClass(json.side_effects))},"tools":{${tools.join(",")}}}`;
  return RULES_ID_PREFIX + contentHash(crypto, text);
}

/**
 * agentrt-proxy's PolicyID for a configuration: over the policy map upon the defaults, and each rule's side effect,
 * outcome, fixed values and rename, servers sorted by name.
 */
export function proxyPolicyId(parsed: ProxyRules, crypto: Sha256): string {
  const servers = parsed.json.servers.map((server, index) => {
    const rules = Object.entries(server.rules).map(([tool, rule]) => {
      const fixed = fixedText(parsed.tree, "servers", index, "rules", tool, "fixed");
      return `${quote(tool)}:{${ruleMembers(rule, fixed).join(",")}}`;
    });
    return { name: server.name, text: `{"name":${quote(server.name)},"rules":{${rules.join(",")}}}` };
  });
  servers.sort((a, b) => compareUtf8(a.name, b.name));
  const list = servers.map(({ text }) => text).join(",");
  return (
    PROXY_ID_PREFIX +
    contentHash(crypto, `{"policy":${objectText(proxyOutcomes(parsed))},"servers":[${list}]}`)
  );
}

/** agentrt's DefaultPolicy, which a proxy's configured map lies over. */
const PROXY_DEFAULTS: readonly (readonly [string, string])[] = [
  ["read_only", "allow"],
  ["local_mutation", "allow"],
  ["remote_mutation", "require_approval"],
  ["destructive", "deny"],
];

/** A proxy's outcomes by class. */
export function proxyOutcomes({ json }: ProxyRules): Map<string, string> {
  return new Map([...PROXY_DEFAULTS, ...outcomesByClass(json.policy)]);
}

interface RuleJson {
  readonly side_effect?: string | undefined;
  readonly outcome?: string | undefined;
  readonly rename?: string | undefined;
}

/** The members that a rule has in both identities, unset ones left out. */
function ruleMembers(rule: RuleJson, fixed: string | null): string[] {
  const members: string[] = [];
  if (rule.side_effect !== undefined) members.push(`"side_effect":${quote(rule.side_effect)}`);
  if (rule.outcome !== undefined) members.push(`"outcome":${quote(rule.outcome)}`);
  if (fixed !== null) members.push(`"fixed":${fixed}`);
  if (rule.rename !== undefined && rule.rename !== "") members.push(`"rename":${quote(rule.rename)}`);
  return members;
}

function objectText(values: ReadonlyMap<string, string>): string {
  return `{${[...values].map(([name, value]) => `${quote(name)}:${quote(value)}`).join(",")}}`;
}
