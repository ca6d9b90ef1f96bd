/**
 * What differs between two rules policies: by side-effect class and by tool rule (docs/policies.md, "Comparing").
 *
 * @module
 */
import { quote } from "../json/chars.ts";
import { compareUtf8 } from "../json/order.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../json/value.ts";

/** One difference: the two sides as canonical JSON, null where a side has nothing. */
export interface RuleChange {
  readonly what: "policy_id" | "side_effect" | "tool";
  /** The class or the tool; "" for the identity. */
  readonly name: string;
  /** The proxy's server that the tool is one of; null in the flat form. */
  readonly server: string | null;
  readonly from: string | null;
  readonly to: string | null;
}

/** The differences of two rules sources (JSON text that was checked before), in the order of their names. */
export function rulesDiff(from: string, to: string): RuleChange[] {
  const before = partsOf(from);
  const after = partsOf(to);
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort(compareUtf8);
  const out: RuleChange[] = [];
  for (const key of keys) {
    const one = before.get(key);
    const other = after.get(key);
    const part = one ?? other;
    if (part === undefined || one?.text === other?.text) continue;
    const { what, name, server } = part;
    out.push({ what, name, server, from: one?.text ?? null, to: other?.text ?? null });
  }
  return out;
}

/** A change as JSON: a side that has nothing is left out. */
export function changeJson({ what, name, server, from, to }: RuleChange): string {
  const members = [`"what":${quote(what)}`];
  if (name !== "") members.push(`"name":${quote(name)}`);
  if (server !== null) members.push(`"server":${quote(server)}`);
  if (from !== null) members.push(`"from":${from}`);
  if (to !== null) members.push(`"to":${to}`);
  return `{${members.join(",")}}`;
}

interface Part {
  readonly what: RuleChange["what"];
  readonly name: string;
  readonly server: string | null;
  readonly text: string;
}

/** What a source says, by a key that the same thing has in another source. */
function partsOf(source: string): Map<string, Part> {
  const parts = new Map<string, Part>();
  const add = (what: Part["what"], name: string, server: string | null, value: JsonValue) =>
    parts.set(JSON.stringify([what, server, name]), { what, name, server, text: jsonText(value) });
  const tree = parseJsonValue(source);
  if (!(tree instanceof Map)) return parts;
  const id = tree.get("policy_id");
  if (id !== undefined) add("policy_id", "", null, id);
  // `policy` and `servers` are the form of a proxy's configuration; what else that has enters no decision.
  for (const [name, outcome] of members(tree.get("side_effects") ?? tree.get("policy")))
    add("side_effect", name, null, outcome);
  for (const [name, rule] of members(tree.get("tools"))) add("tool", name, null, rule);
  const servers = tree.get("servers");
  for (const server of Array.isArray(servers) ? servers : []) {
    if (!(server instanceof Map)) continue;
    const serverName = server.get("name");
    if (typeof serverName !== "string") continue;
    for (const [name, rule] of members(server.get("rules"))) add("tool", name, serverName, rule);
  }
  return parts;
}

function members(value: JsonValue | undefined): Iterable<[string, JsonValue]> {
  return value instanceof Map ? value : [];
}
