/**
 * One run of a job as a line of NDJSON: its counts, and the evaluations that differ, the worst first.
 *
 * @module
 */
import type { RecheckedEvaluation, RecheckReport } from "./report.ts";
import { severityOf, transitionOf } from "./summary-cells.ts";
import type { FailedRun } from "./summary-parts.ts";
import { cut } from "./summary-parts.ts";

/** Evaluations that a line lists; the single run's report has them all. */
export const LINE_EVALUATIONS = 500;

/** The line, and whether it says more than that everything is the same. */
export interface RunLine {
  readonly text: string;
  readonly differs: boolean;
}

/** The line of a re-checked run; only the selected evaluations count. */
export function runLine(
  principal: string,
  report: RecheckReport,
  selects: (evaluation: RecheckedEvaluation) => boolean = () => true,
): RunLine {
  const selected = report.evaluations.filter(selects);
  const count = (result: RecheckedEvaluation["result"]) =>
    selected.filter((each) => each.result === result).length;
  const different = selected.filter(({ result }) => result === "different");
  const rank = (each: RecheckedEvaluation) => {
    const { recorded, rechecked } = transitionOf(each);
    return severityOf(recorded, rechecked);
  };
  const listed = different.toSorted((a, b) => rank(a) - rank(b) || a.seq - b.seq).slice(0, LINE_EVALUATIONS);
  const notRecheckable = count("not_recheckable");
  const line = {
    principal,
    run: report.runId,
    run_status: report.runStatus,
    evaluated: selected.length,
    same: count("same"),
    different: different.length,
    not_recheckable: notRecheckable,
    differences: listed.map((each) => {
      const { recorded, rechecked } = transitionOf(each);
      const why = cut(each.detail === "" ? (each.rechecked?.reason ?? "") : each.detail);
      return {
        step_index: each.stepIndex,
        seq: each.seq,
        tool: cut(each.tool),
        recorded,
        rechecked,
        ...(why === "" ? {} : { detail: why }),
      };
    }),
    cut: different.length - listed.length,
    ...(report.notes.length === 0 ? {} : { notes: report.notes.slice(0, 20).map(cut) }),
  };
  return { text: JSON.stringify(line), differs: different.length > 0 || notRecheckable > 0 };
}

/** The line of a run that could not be re-checked. */
export function failedLine(failure: FailedRun): RunLine {
  return { text: JSON.stringify({ ...failure, failed: true }), differs: true };
}
