/**
 * The `rules` policy: outcomes by side-effect class, and rules by tool (docs/recheck.md, "Policies: rules"). It reads
 * the request alone and answers at once.
 *
 * @module
 */
import { pureCrypto } from "../crypto/pure.ts";
import { RunsealError } from "../errors.ts";
import { quote } from "../json/chars.ts";
import { jsonPointer } from "../json/pointer.ts";
import { JsonReader } from "../json/reader.ts";
import type { JsonValue } from "../json/value.ts";
import type { Sha256 } from "./hash.ts";
import type { Decision } from "./model.ts";
import { type Policy, type PolicyAnswer, type PolicyRequest, plainDecision } from "./policy.ts";
import { ProxyPolicy } from "./proxy-policy.ts";
import { flatPolicyId } from "./rules-identity.ts";
import { type FlatRules, fixedText, outcomesByClass, parseRulesJson } from "./rules-schema.ts";

/** A policy that answers at once and reads no view. */
export interface RulesPolicy extends Policy {
  readonly readsView: false;
  decide(request: PolicyRequest): PolicyAnswer;
}

/**
 * The policy that a rules document describes, in either of its forms. Throws `JsonError`, or `RunsealError` with code
 * `policy-invalid` or `policy-identity` and a pointer.
 */
export function rulesPolicy(text: string, crypto: Sha256 = pureCrypto): RulesPolicy {
  const parsed = parseRulesJson(text);
  return parsed.form === "flat" ? new FlatPolicy(parsed, crypto) : new ProxyPolicy(parsed, crypto);
}

interface Rule {
  readonly sideEffect: string | null;
  /** Null where the class decides. */
  readonly ruling: Ruling | null;
  readonly denyAlways: boolean;
  readonly denyArguments: readonly string[];
  /** Canonical text. */
  readonly fixed: string | null;
}

const NO_RULE: Rule = { sideEffect: null, ruling: null, denyAlways: false, denyArguments: [], fixed: null };

type ToolRule = NonNullable<FlatRules["json"]["tools"]>[string];

/** What an outcome comes to: the same answer each time, but for an approval, which quotes the call. */
class Ruling {
  readonly outcome: string;
  readonly reason: string;
  readonly #plain: PolicyAnswer | null;

  constructor(outcome: string, reason: string) {
    this.outcome = outcome;
    this.reason = reason;
    this.#plain = outcome === "require_approval" ? null : plainDecision(outcome, reason);
  }

  answer(request: PolicyRequest, fixed: string | null, sideEffect: string): PolicyAnswer {
    return this.#plain ?? approval(request, fixed, sideEffect, this.reason);
  }
}

class FlatPolicy implements RulesPolicy {
  readonly id: string;
  readonly readsView = false as const;
  readonly #byClass: ReadonlyMap<string, Ruling>;
  readonly #byTool: ReadonlyMap<string, Rule>;

  constructor(parsed: FlatRules, crypto: Sha256) {
    const { json, tree } = parsed;
    this.#byClass = new Map(
      [...outcomesByClass(json.side_effects)].map(([sideEffect, outcome]) => [
        sideEffect,
        new Ruling(outcome, `side effect ${sideEffect} is ${outcome} by policy`),
      ]),
    );
    this.#byTool = rulesByTool(json.tools ?? {}, tree);
    this.id = json.policy_id ?? flatPolicyId(parsed, crypto);
  }

  decide(request: PolicyRequest): PolicyAnswer {
    const { tool } = request;
    const rule = this.#byTool.get(tool) ?? NO_RULE;
    if (rule.denyAlways) return plainDecision("deny", `tool ${tool} is deny by the operator's rule`);
    const denied = deniedArgument(rule.denyArguments, request.canonicalArgs);
    if (denied !== null) {
      const reason = `argument ${JSON.stringify(denied)} of tool ${tool} is denied by the operator's rule`;
      return plainDecision("deny", reason);
    }
    const sideEffect = rule.sideEffect ?? request.spec.sideEffect;
    const ruling = rule.ruling ?? this.#byClass.get(sideEffect);
    if (ruling === undefined) {
      return plainDecision("deny", `no policy for side effect ${JSON.stringify(sideEffect)}`);
    }
    return ruling.answer(request, rule.fixed, sideEffect);
  }
}

/** The kind of an approval for a tool whose class is not known. */
const UNCLASSIFIED = "tool_call";

function approval(
  request: PolicyRequest,
  fixedText: string | null,
  sideEffect: string,
  reason: string,
): PolicyAnswer {
  const fixed = fixedText === null ? "" : `"fixed":${fixedText},`;
  // In canonical form as it is written: the arguments are, and the keys are in order.
  const subject = `{"args":${request.canonicalArgs},${fixed}"tool":${quote(request.tool)}}`;
  const kind = sideEffect === "" ? UNCLASSIFIED : sideEffect;
  const decision: Decision = {
    outcome: "require_approval",
    reason,
    kind,
    capability: subject,
    presentation: subject,
  };
  return { ok: true, decision };
}

/** The first of the names that the arguments have as a member; null where they have none. */
function deniedArgument(names: readonly string[], args: string): string | null {
  if (names.length === 0) return null;
  const reader = new JsonReader(args);
  if (reader.peek() !== "object") return null;
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (names.includes(key)) return key;
    reader.skipValue();
  }
  return null;
}

/** Rules by the name that a tool is offered and recorded under: its `rename`, where it has one. */
function rulesByTool(tools: Readonly<Record<string, ToolRule>>, tree: JsonValue): Map<string, Rule> {
  const out = new Map<string, Rule>();
  for (const [name, rule] of Object.entries(tools)) {
    const offered = rule.rename ?? name;
    if (out.has(offered)) {
      throw new RunsealError("policy-invalid", "two rules are for one tool", jsonPointer("tools", name));
    }
    out.set(offered, {
      sideEffect: rule.side_effect ?? null,
      ruling:
        rule.outcome === undefined
          ? null
          : new Ruling(rule.outcome, `tool ${offered} is ${rule.outcome} by the operator's rule`),
      denyAlways: rule.deny === true,
      denyArguments: Array.isArray(rule.deny) ? rule.deny : [],
      fixed: fixedText(tree, "tools", name, "fixed"),
    });
  }
  return out;
}
