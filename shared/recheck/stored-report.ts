/**
 * A report that was stored, of a job or of a single run, in each of its forms and against a gate.
 *
 * @module
 */
import type { Judged } from "./check.ts";
import { jobJunit } from "./format-job-junit.ts";
import { jobMarkdown } from "./format-job-markdown.ts";
import type { RecheckFormat, ShownReport } from "./format-report.ts";
import { formatReports, shownReports } from "./format-report.ts";
import { judgeJob } from "./judge-job.ts";
import type { GateName } from "./report.ts";
import { readReport } from "./report-read.ts";
import type { JobReport } from "./summary-report.ts";
import { jobReportText } from "./summary-report.ts";

export type StoredReport =
  | { readonly of: "job"; readonly report: JobReport }
  | { readonly of: "run"; readonly report: ShownReport };

/** What the service adds to a run's report, as far as it is shown. */
interface Added {
  readonly principal?: string;
  readonly head?: { readonly size: number; readonly root: string };
  readonly verified?: { readonly verdict: string };
}

/**
 * Reads what the service stored or answered. Throws `JsonError` or SyntaxError for no JSON, `RunsealError("recheck-report")`
 * for a run's report of another shape; a job's is taken as it is.
 */
export function readStoredReport(text: string): StoredReport {
  const value = JSON.parse(text) as Added | JobReport;
  if ("summary" in value) return { of: "job", report: value };
  const { principal, head, verified } = value;
  const intact = verified === undefined ? undefined : verified.verdict === "intact";
  return { of: "run", report: { report: readReport(text), principal, head, intact } };
}

/** Whether it passes the gate, and why not; null where there is none. */
export function judgeStored(stored: StoredReport, gate: GateName | null): Judged | null {
  if (gate === null) return null;
  return stored.of === "job" ? judgeJob(gate, stored.report) : shownReports([stored.report], { gate }).result;
}

/** In a form for people or other programs; with a gate, the verdict is in it where the form has a place for one. */
export function formatStored(
  format: Exclude<RecheckFormat, "json">,
  stored: StoredReport,
  gate: GateName | null,
): string {
  if (stored.of === "run") {
    return formatReports(format, shownReports([stored.report], gate === null ? null : { gate }));
  }
  const { report } = stored;
  switch (format) {
    case "text":
      return jobReportText(report);
    case "junit":
      return jobJunit(report, gate, judgeStored(stored, gate));
    case "markdown":
      return jobMarkdown(report, judgeStored(stored, gate));
  }
}
