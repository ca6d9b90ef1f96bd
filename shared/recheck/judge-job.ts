/**
 * Whether a job's report passes a gate, and if not, why (docs/recheck.md, "Gates").
 *
 * @module
 */
import type { Judged } from "./check.ts";
import type { GateName } from "./report.ts";
import { type JobReport, passesJobGate } from "./summary-report.ts";

/** The gate's verdict is that of `passesJobGate`; every reason that it has is named. */
export function judgeJob(gate: GateName, report: JobReport): Judged {
  const { summary, status, without_runs: without } = report;
  const failures: { code: string; message: string }[] = [];
  const fail = (code: string, message: string): void => {
    failures.push({ code, message });
  };
  if (status !== "complete") fail("not-ended", "the job did not come to its end");
  if (summary.runs.failed > 0) fail("failed-runs", `${summary.runs.failed} run(s) could not be re-checked`);
  if (summary.rechecked === 0) fail("nothing-rechecked", "no evaluation was re-checked: that proves nothing");
  if (summary.differences > 0) fail("differs", `${summary.differences} evaluation(s) differ`);
  if (gate === "strict") {
    const left = summary.not_recheckable;
    if (left > 0) fail("incomplete", `${left} evaluation(s) could not be re-checked`);
    if (without.length > 0) fail("no-run", `${without.length} principal(s) that were named have no run`);
  }
  return { passed: passesJobGate(gate, report), failures };
}
