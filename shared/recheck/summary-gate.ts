/**
 * The gates over a summary (docs/recheck.md, "Gates"): those of one report, over all runs together, and for nothing but a
 * selection that was re-checked to its end.
 *
 * @module
 */
import type { GateName } from "./report.ts";
import { passesGate } from "./report.ts";

/** What a gate looks at: a summary, or its JSON. */
export interface SummaryGateInput {
  readonly same: boolean;
  readonly rechecked: number;
  readonly complete: boolean;
  readonly runs: { readonly failed: number };
}

/** How much of the selection was looked at. */
export interface Coverage {
  /** False for a job that was cancelled, ran out of its budget, could not go on, or is still at work. */
  readonly ended: boolean;
  /** Principals that the selection names, and that have no run in it. */
  readonly withoutRuns: readonly string[];
}

/**
 * Whether the summary passes. A run that could not be read, a job that did not come to its end and a selection without an
 * evaluation pass no gate; `strict` also demands that every principal that was named had a run.
 */
export function passesSummaryGate(gate: GateName, summary: SummaryGateInput, coverage: Coverage): boolean {
  if (!coverage.ended || summary.runs.failed > 0) return false;
  const { same, rechecked } = summary;
  return passesGate(gate, [
    { same, rechecked, complete: summary.complete && coverage.withoutRuns.length === 0 },
  ]);
}
