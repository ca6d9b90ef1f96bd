/**
 * The decision of `--policy` on a call of an imported run, as the `policy.evaluated` entry that precedes it. It says
 * what that policy answers to the recorded call; it does not say that the policy ran when the run did, and so the
 * entry carries `extra.decided: "at import"`.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../../shared/json/value.ts";
import type { Decision, RecordedView } from "../../shared/recheck/model.ts";
import { type Policy, PolicyRequest } from "../../shared/recheck/policy.ts";
import type { ToolSpec } from "../../shared/recheck/spec.ts";
import type { PolicyView } from "../../shared/recheck/view.ts";
import { type JsonObject, numberOf, objectOf } from "./tree.ts";

/** A call, as a policy is asked about it. */
export interface EvaluatedCall {
  readonly run: string;
  readonly step: string;
  readonly tool: string;
  readonly args: JsonValue;
  readonly spec: ToolSpec;
}

/** What the source counted so far. Undefined: it does not say. */
export interface KnownCounts {
  readonly steps: number;
  readonly modelCalls: number;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** The decision as a field's value, or why there is none. */
export type Evaluation =
  | { readonly ok: true; readonly decision: JsonObject }
  | { readonly ok: false; readonly why: string };

/** Refuses a policy that cannot decide here. Throws `RunsealError("import-policy")`. */
export function checkPolicy(policy: Policy): void {
  if (policy.readsView === false) return;
  throw new RunsealError(
    "import-policy",
    "only a policy that decides from the request alone can decide an import",
  );
}

/** Asks the policy. Throws `RunsealError("import-policy")` where it answers later. */
export function evaluate(policy: Policy, call: EvaluatedCall, view: RecordedView, goal: string): Evaluation {
  const request = new PolicyRequest(call.run, call.step, call.tool, call.spec, jsonText(call.args));
  const answer = policy.decide(request, emptyView(call.run, goal, view));
  if (answer instanceof Promise)
    throw new RunsealError("import-policy", "the policy does not answer at once");
  return answer.ok
    ? { ok: true, decision: decisionValue(answer.decision) }
    : { ok: false, why: answer.error };
}

/** The ten counts and states of agentrt's view. What the source does not know is 0 here and named by `unknownCounts`. */
export function viewOf(counts: KnownCounts): RecordedView {
  return {
    status: "RUNNING",
    step_count: counts.steps,
    model_calls: counts.modelCalls,
    input_tokens: counts.inputTokens ?? 0,
    output_tokens: counts.outputTokens ?? 0,
    cached_input_tokens: counts.cachedTokens ?? 0,
    estimated_cost_micros: 0,
    active_ms: 0,
    steps: counts.steps,
    approvals: 0,
  };
}

/** Members of the view that are 0 because nobody counted them. */
export function unknownCounts(counts: KnownCounts): string[] {
  const names = ["estimated_cost_micros", "active_ms"];
  if (counts.inputTokens === undefined) names.push("input_tokens");
  if (counts.outputTokens === undefined) names.push("output_tokens");
  if (counts.cachedTokens === undefined) names.push("cached_input_tokens");
  return names;
}

/** The view as a field's value. */
export function viewValue(view: RecordedView): JsonObject {
  return new Map(
    Object.entries(view).map(([name, value]) => [name, typeof value === "number" ? numberOf(value) : value]),
  );
}

function decisionValue(decision: Decision): JsonObject {
  const json = (text: string | null): JsonValue | undefined =>
    text === null ? undefined : parseJsonValue(text);
  return objectOf([
    ["outcome", decision.outcome],
    ["reason", decision.reason === "" ? undefined : decision.reason],
    ["kind", decision.kind === "" ? undefined : decision.kind],
    ["capability", json(decision.capability)],
    ["presentation", json(decision.presentation)],
  ]);
}

function emptyView(run: string, goal: string, recorded: RecordedView): PolicyView {
  return { run: { id: run, goal, limits: null, createdAt: null, recorded }, steps: null, approvals: null };
}
