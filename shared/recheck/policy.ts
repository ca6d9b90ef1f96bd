/**
 * What a policy is, whatever evaluates it: rules, cedar, a module, decisions made elsewhere. What it is handed is in
 * docs/recheck.md ("What the policy is handed").
 *
 * @module
 */
import { utf8 } from "../bytes.ts";
import { RunsealError } from "../errors.ts";
import { checkJson, policyJson } from "../json/canonical.ts";
import { quote } from "../json/chars.ts";
import { JsonError } from "../json/errors.ts";
import { MAX_POLICY_ID_BYTES } from "./limits.ts";
import type { Decision } from "./model.ts";
import type { ToolSpec } from "./spec.ts";
import type { PolicyView } from "./view.ts";

/** One call that a policy is asked about. */
export class PolicyRequest {
  readonly runId: string;
  /** "" where the evaluation names no step. */
  readonly stepId: string;
  /** The tool's name, as the evaluation recorded it. */
  readonly tool: string;
  readonly spec: ToolSpec;
  /** The arguments in canonical form: what is hashed. */
  readonly canonicalArgs: string;
  /** Name of the principal whose log the run is in; "" where whoever re-checks did not say. */
  readonly principal: string;

  constructor(
    runId: string,
    stepId: string,
    tool: string,
    spec: ToolSpec,
    canonicalArgs: string,
    principal = "",
  ) {
    this.principal = principal;
    this.runId = runId;
    this.stepId = stepId;
    this.tool = tool;
    this.spec = spec;
    this.canonicalArgs = canonicalArgs;
  }

  /** The arguments in PolicyJSON form: what a policy reads. */
  get args(): string {
    return policyForm(this.canonicalArgs);
  }

  /** The spec's input schema in PolicyJSON form; null where it has none. */
  get inputSchema(): string | null {
    return this.spec.inputSchema === null ? null : policyForm(this.spec.inputSchema);
  }
}

/** PolicyJSON form of canonical text: the two differ in `\u` escapes only. */
export function policyForm(canonical: string): string {
  return canonical.includes("\\u") ? policyJson(canonical) : canonical;
}

export type PolicyAnswer =
  /** `note` says what the policy could not be handed as it was recorded; the report counts notes that are alike. */
  | { readonly ok: true; readonly decision: Decision; readonly note?: string }
  /** The policy failed, or, with `unanswered`, was not asked: nothing can then be said of the evaluation. */
  | { readonly ok: false; readonly error: string; readonly unanswered?: true };

/** Which evaluation it is, of a run. */
export interface EvaluationPlace {
  readonly seq: number;
  /** Leaf hash, hex. */
  readonly hash: string;
}

/** The answer of a decision that asks for no approval. */
export function plainDecision(outcome: string, reason: string): PolicyAnswer {
  return { ok: true, decision: { outcome, reason, kind: "", capability: null, presentation: null } };
}

export interface Policy {
  /** "" where the policy has no identity. */
  readonly id: string;
  /** False for a policy that decides from the request alone: views are then never built. True unless told. */
  readonly readsView?: boolean;
  /** Answers at once, or later. A policy that fails says so in its answer; what it throws ends the re-check. */
  decide(request: PolicyRequest, view: PolicyView): PolicyAnswer | Promise<PolicyAnswer>;
  /**
   * For a policy whose answer quotes facts that only the recorded decision has (agentrt-proxy's wording, and the
   * attempt that an interruption re-runs), or that has its answers by evaluation. Called in place of `decide` where it
   * is there.
   */
  decideAgain?(
    request: PolicyRequest,
    view: PolicyView,
    recorded: Decision,
    place: EvaluationPlace,
  ): PolicyAnswer | Promise<PolicyAnswer>;
}

/** Unicode's control characters, Go's unicode.IsControl: C0, DEL and C1. */
const CONTROL = /\p{Cc}/u;

/**
 * Demands that the text can be a policy's identity: at most 256 bytes of UTF-8, no control character. Throws
 * `RunsealError("policy-identity")`, with the pointer where one is given.
 */
export function checkPolicyId(id: string, pointer?: string): void {
  const refuse = (what: string): never => {
    throw new RunsealError("policy-identity", `a policy's identity ${what}`, pointer);
  };
  if (/\p{Surrogate}/u.test(id)) refuse("is not Unicode text");
  if (utf8(id).length > MAX_POLICY_ID_BYTES) refuse(`has at most ${MAX_POLICY_ID_BYTES} bytes`);
  if (CONTROL.test(id)) refuse("has no control character");
}

const BLANK = /^[ \t\r\n]*$/;

/** Why agentrt would refuse the decision as invalid, in its words; null where it would not. */
export function refusalOf(decision: Decision): string | null {
  return (
    refusalOfJson("capability", decision.capability) ?? refusalOfJson("presentation", decision.presentation)
  );
}

function refusalOfJson(name: string, text: string | null): string | null {
  if (text === null || BLANK.test(text)) return null;
  try {
    checkJson(text);
    return null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return `${name} is not usable JSON: ${agentrtWords(error, text)}`;
  }
}

/**
 * agentrt names the key, and the half of a surrogate pair: texts are compared with the ones that it recorded. These are
 * the policy's own words, given back to whoever sent the policy.
 */
function agentrtWords(error: JsonError, text: string): string {
  if (error.code === "json-duplicate-key") {
    const last = error.pointer.slice(error.pointer.lastIndexOf("/") + 1);
    return `duplicate key ${quote(last.replaceAll("~1", "/").replaceAll("~0", "~"), "policy")}`;
  }
  if (error.code === "json-surrogate") {
    const escaped = /^\\u[0-9a-fA-F]{4}/.exec(text.slice(error.offset))?.[0];
    const unit = text.charCodeAt(error.offset);
    return `unpaired surrogate ${(escaped ?? `\\u${unit.toString(16)}`).toLowerCase()}`;
  }
  return error.message;
}
