/**
 * Reports as JUnit XML: a suite for each run, a case for each evaluation, and one for the check as a whole, so that a run
 * with no evaluation is no green one.
 *
 * @module
 */
import { isAtFault } from "./check.ts";
import type { Shown, ShownReport } from "./format-report.ts";
import type { Case, Suite } from "./junit-parts.ts";
import { caseOf, checkSuites, suiteOf, xmlDocument } from "./junit-parts.ts";
import type { RecheckedEvaluation } from "./report.ts";
import { outcomeWords, shown } from "./text.ts";

/** The XML document. */
export function junitText(given: Shown): string {
  const suites = given.reports.map((each) => reportSuite(given, each));
  return xmlDocument("runseal recheck", [...suites, ...checkSuites(given.result)]);
}

function reportSuite(given: Shown, { report, principal, head, intact }: ShownReport): Suite {
  const run = shown(report.runId);
  const name = principal === undefined ? run : `${shown(principal)}/${run}`;
  const properties: readonly [string, string][] = [
    ["run_status", shown(report.runStatus)],
    ["policy_id", shown(report.policyId)],
    ["identity", report.identity],
    ["spec_source", report.specSource],
    ...(head === undefined ? [] : ([["head", `${head.size}:${head.root}`]] as [string, string][])),
    ...(intact === undefined ? [] : ([["verified", intact ? "intact" : "broken"]] as [string, string][])),
    ...report.notes.map((note): [string, string] => ["note", shown(note)]),
  ];
  return suiteOf(
    name,
    report.evaluations.map((each) => evaluationCase(given, name, each)),
    properties,
  );
}

function evaluationCase({ check }: Shown, suiteName: string, evaluation: RecheckedEvaluation): Case {
  const { result, stepIndex, seq, tool, onResume } = evaluation;
  const name = `step ${stepIndex} seq ${seq} ${shown(tool) || "-"}${onResume ? " (on resume)" : ""}`;
  const words = outcomeWords(evaluation);
  if (result === "same") return caseOf(suiteName, name, { verdict: "passed" });
  if (result !== "different") return caseOf(suiteName, name, { verdict: "skipped", words });
  const isFailure = check !== null && isAtFault(check, evaluation);
  return caseOf(
    suiteName,
    name,
    isFailure ? { verdict: "failure", type: "different", words } : { verdict: "noted", words },
  );
}
