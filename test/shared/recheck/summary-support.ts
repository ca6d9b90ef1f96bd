/**
 * Reports made up for the tests of summaries.
 *
 * @module
 */
import fc from "fast-check";
import { NO_DECISION } from "../../../shared/recheck/model.ts";
import type { RecheckedEvaluation, RecheckResult } from "../../../shared/recheck/report.ts";
import { RecheckReport } from "../../../shared/recheck/report.ts";
import { RecheckSummary, type SummaryRun } from "../../../shared/recheck/summary.ts";

export interface Made {
  readonly tool: string;
  readonly result: RecheckResult;
  readonly recorded: string;
  readonly rechecked: string | null;
  readonly policyId: string;
}

export const POLICY = "new/v2";

export function evaluation(made: Partial<Made>, seq: number): RecheckedEvaluation {
  const { tool = "t", result = "same", recorded = "allow", policyId = POLICY } = made;
  const rechecked = made.rechecked === undefined ? recorded : made.rechecked;
  return {
    stepIndex: seq,
    stepId: `s${seq}`,
    seq,
    tool,
    onResume: false,
    result,
    recorded: { ...NO_DECISION, outcome: recorded },
    rechecked: rechecked === null ? null : { ...NO_DECISION, outcome: rechecked, reason: `now ${rechecked}` },
    recordedHash: "",
    recheckedHash: "",
    detail: "",
    specSource: "recorded",
    policyId,
    reason: result === "not_recheckable" ? (seq % 2 === 0 ? "erased" : "spec-missing") : null,
  };
}

export function runOf(
  principal: string,
  run: string,
  made: readonly Partial<Made>[],
  notes: readonly string[] = [],
): SummaryRun {
  const evaluations = made.map((each, index) => evaluation(each, index + 1));
  const fields = {
    runId: run,
    runStatus: "COMPLETED",
    policyId: POLICY,
    specSource: "recorded" as const,
    notes,
  };
  return { principal, report: new RecheckReport({ ...fields, evaluations }), specHashes: [`hash of ${run}`] };
}

export const empty = (): RecheckSummary => new RecheckSummary({ policyId: POLICY, specSource: "recorded" });

export function summaryOf(runs: readonly SummaryRun[]): RecheckSummary {
  const summary = empty();
  for (const run of runs) summary.add(run);
  return summary;
}

const outcome = fc.constantFrom("allow", "require_approval", "deny", "abort", "maybe");
const made: fc.Arbitrary<Made> = fc
  .record({
    tool: fc.constantFrom("read", "write", "wipe", "__proto__", ""),
    result: fc.constantFrom<RecheckResult>("same", "different", "not_a_policy_evaluation", "not_recheckable"),
    recorded: outcome,
    rechecked: fc.option(outcome),
    policyId: fc.constantFrom(POLICY, "old/v1", ""),
  })
  .map((each) => (each.result === "same" ? { ...each, rechecked: each.recorded } : each));

/** Runs of a few principals, each run once. */
export const someRuns: fc.Arbitrary<SummaryRun[]> = fc
  .array(
    fc.record({
      principal: fc.constantFrom("a", "b", "c"),
      evaluations: fc.array(made, { maxLength: 6 }),
      notes: fc.subarray(["x", "y"]),
    }),
    { maxLength: 8 },
  )
  .map((runs) =>
    runs.map(({ principal, evaluations, notes }, i) => runOf(principal, `r${i}`, evaluations, notes)),
  );
