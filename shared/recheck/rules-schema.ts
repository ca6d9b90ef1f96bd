/**
 * A rules policy as JSON: its two forms, as Zod schemas, and its strict reading (docs/recheck.md, "Policies: rules").
 *
 * @module
 */
import { z } from "zod";
import { RunsealError } from "../errors.ts";
import { jsonPointer } from "../json/pointer.ts";
import { JsonNumber, type JsonValue, jsonText, parseJsonValue } from "../json/value.ts";
import { checkPolicyId } from "./policy.ts";

const sideEffect = z.enum(["read_only", "local_mutation", "remote_mutation", "destructive"]);
const outcome = z.enum(["allow", "require_approval", "deny", "abort"]);
const proxyOutcome = z.enum(["allow", "require_approval", "deny"]);
const name = z.string().min(1).max(512);
const anything = z.unknown().optional();

function byClass<T extends z.ZodType>(of: T) {
  return z.strictObject({
    read_only: of.optional(),
    local_mutation: of.optional(),
    remote_mutation: of.optional(),
    destructive: of.optional(),
  });
}

const toolRule = z.strictObject({
  side_effect: sideEffect.optional(),
  outcome: outcome.optional(),
  deny: z.union([z.boolean(), z.array(name)]).optional(),
  fixed: z.record(z.string(), z.unknown()).optional(),
  rename: name.optional(),
});

/** The form of our own: outcomes by class and rules by tool. */
export const flatPolicySchema = z.strictObject({
  policy_id: z.string().optional(),
  side_effects: byClass(outcome).optional(),
  tools: z.record(z.string(), toolRule).optional(),
});

const proxyRule = z.strictObject({
  side_effect: sideEffect,
  outcome: proxyOutcome.optional(),
  fixed: z.record(z.string(), z.unknown()).optional(),
  rename: z.string().max(512).optional(),
  deny: z.array(z.string()).optional(),
  timeout: anything,
  description: anything,
  allow_hint_mismatch: anything,
  terminal: anything,
  repeat_window: anything,
});

const proxyServer = z.strictObject({
  name,
  rules: z.record(z.string(), proxyRule),
  command: anything,
  endpoint: anything,
  env: anything,
  inherit_env: anything,
  connect_timeout: anything,
  default_timeout: anything,
  manifest: anything,
  skip_path_check: anything,
});

/** agentrt-proxy's configuration. What its policy does not read may be anything. */
export const proxyPolicySchema = z.strictObject({
  policy: byClass(proxyOutcome).optional(),
  servers: z.array(proxyServer).min(1),
  database: anything,
  session: anything,
  hold: anything,
  repeat_window: anything,
  max_pending: anything,
  approval_ttl: anything,
  grant_ttl: anything,
  status_tool: anything,
  lease_ttl: anything,
});

type FlatJson = z.infer<typeof flatPolicySchema>;
type ProxyJson = z.infer<typeof proxyPolicySchema>;

/** A policy that was read: its values, and the tree that keeps each number as it was written. */
export interface FlatRules {
  readonly form: "flat";
  readonly json: FlatJson;
  readonly tree: JsonValue;
}
export interface ProxyRules {
  readonly form: "proxy";
  readonly json: ProxyJson;
  readonly tree: JsonValue;
}
export type ParsedRules = FlatRules | ProxyRules;

/** The outcomes that a map by class sets. */
export function outcomesByClass(
  json: Readonly<Record<string, string | undefined>> | undefined,
): Map<string, string> {
  const out = new Map<string, string>();
  for (const [name, outcome] of Object.entries(json ?? {})) {
    if (outcome !== undefined) out.set(name, outcome);
  }
  return out;
}

function refuse(message: string, pointer: string): never {
  throw new RunsealError("policy-invalid", message, pointer);
}

/**
 * Reads a rules policy. Throws `JsonError` for text that is no strict JSON, and `RunsealError("policy-invalid")` or
 * `("policy-identity")` with a pointer for a policy that is none.
 */
export function parseRulesJson(text: string): ParsedRules {
  const tree = parseJsonValue(text);
  if (!(tree instanceof Map)) refuse("a policy is a JSON object", "");
  const value = plain(tree, []);
  if (tree.has("servers")) {
    const json = parsed(proxyPolicySchema, value);
    checkServerNames(json);
    return { form: "proxy", json, tree };
  }
  const json = parsed(flatPolicySchema, value);
  if (json.side_effects === undefined && json.tools === undefined) {
    refuse("a rules policy has side_effects, tools or servers", "");
  }
  if (json.policy_id !== undefined) checkPolicyId(json.policy_id, "/policy_id");
  return { form: "flat", json, tree };
}

function checkServerNames({ servers }: ProxyJson): void {
  const seen = new Set<string>();
  for (const [index, server] of servers.entries()) {
    if (seen.has(server.name)) refuse("a server with this name is there already", `/servers/${index}/name`);
    seen.add(server.name);
  }
}

function parsed<T extends z.ZodType>(schema: T, value: unknown): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = (issue?.path ?? []).map((step) => (typeof step === "number" ? step : String(step)));
  if (issue?.code === "unrecognized_keys")
    refuse("a key that a policy does not have", jsonPointer(...path, issue.keys[0] ?? ""));
  // Zod's own words may quote what was sent.
  const words =
    issue?.code === "invalid_value"
      ? `not one of ${issue.values.join(", ")}`
      : "not a value that is allowed here";
  return refuse(words, jsonPointer(...path));
}

/** The tree as plain values for Zod. A member `__proto__` can't be one, and names no tool. */
function plain(value: JsonValue, path: readonly (string | number)[]): unknown {
  if (value instanceof JsonNumber) return value.toNumber();
  if (Array.isArray(value)) return value.map((item, index) => plain(item, [...path, index]));
  if (!(value instanceof Map)) return value;
  const out: Record<string, unknown> = {};
  for (const [key, member] of value) {
    if (key === "__proto__") refuse("a key that a policy does not have", jsonPointer(...path, key));
    out[key] = plain(member, [...path, key]);
  }
  return out;
}

/** Canonical text of the fixed values at a path of the tree; null where there are none. */
export function fixedText(tree: JsonValue, ...path: readonly (string | number)[]): string | null {
  let at: JsonValue | undefined = tree;
  for (const step of path) {
    if (at instanceof Map) at = at.get(String(step));
    else if (Array.isArray(at) && typeof step === "number") at = at[step];
    else at = undefined;
  }
  return at instanceof Map && at.size > 0 ? jsonText(at) : null;
}
