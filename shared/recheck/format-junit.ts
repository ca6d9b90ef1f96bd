/**
 * Reports as JUnit XML: a suite for each run, a case for each evaluation, and one for the check as a whole, so that a run
 * with no evaluation is no green one.
 *
 * @module
 */
import { isAtFault } from "./check.ts";
import type { Shown, ShownReport } from "./format-report.ts";
import type { RecheckedEvaluation } from "./report.ts";
import { outcomeWords, shown } from "./text.ts";

/** Text for an attribute or an element. What XML 1.0 can't hold is gone already: `shown` escapes it. */
function xml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&apos;")
    .replaceAll(/[\ufffe\uffff]/g, "\ufffd");
}

/** The XML document. */
export function junitText(given: Shown): string {
  const suites = given.reports.map((each) => suite(given, each));
  const check = checkCase(given);
  const total = (name: keyof Counts): number =>
    [...suites, check].reduce((sum, { counts }) => sum + counts[name], 0);
  const counts = { tests: total("tests"), failures: total("failures"), skipped: total("skipped") };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="runseal recheck" ${attributes(counts)}>`,
    ...suites.flatMap(({ lines }) => lines),
    ...check.lines,
    "</testsuites>",
    "",
  ].join("\n");
}

interface Counts {
  readonly tests: number;
  readonly failures: number;
  readonly skipped: number;
}
interface Suite {
  readonly lines: readonly string[];
  readonly counts: Counts;
}

function attributes({ tests, failures, skipped }: Counts): string {
  return `tests="${tests}" failures="${failures}" errors="0" skipped="${skipped}"`;
}

function suite(given: Shown, { report, principal, head, intact }: ShownReport): Suite {
  const run = shown(report.runId);
  const name = principal === undefined ? run : `${shown(principal)}/${run}`;
  const cases = report.evaluations.map((each) => testCase(given, name, each));
  const counts = {
    tests: cases.length,
    failures: cases.filter(({ verdict }) => verdict === "failure").length,
    skipped: cases.filter(({ verdict }) => verdict === "skipped").length,
  };
  const properties: readonly [string, string][] = [
    ["run_status", shown(report.runStatus)],
    ["policy_id", shown(report.policyId)],
    ["identity", report.identity],
    ["spec_source", report.specSource],
    ...(head === undefined ? [] : ([["head", `${head.size}:${head.root}`]] as [string, string][])),
    ...(intact === undefined ? [] : ([["verified", intact ? "intact" : "broken"]] as [string, string][])),
    ...report.notes.map((note): [string, string] => ["note", shown(note)]),
  ];
  return {
    counts,
    lines: [
      `  <testsuite name="${xml(name)}" ${attributes(counts)}>`,
      "    <properties>",
      ...properties.map(([key, value]) => `      <property name="${key}" value="${xml(value)}"/>`),
      "    </properties>",
      ...cases.flatMap(({ lines }) => lines),
      "  </testsuite>",
    ],
  };
}

type Verdict = "passed" | "failure" | "skipped";

function testCase(
  { check }: Shown,
  suiteName: string,
  evaluation: RecheckedEvaluation,
): { readonly verdict: Verdict; readonly lines: readonly string[] } {
  const { result, stepIndex, seq, tool, onResume } = evaluation;
  const name = `step ${stepIndex} seq ${seq} ${shown(tool) || "-"}${onResume ? " (on resume)" : ""}`;
  const open = `    <testcase classname="${xml(suiteName)}" name="${xml(name)}"`;
  const words = xml(outcomeWords(evaluation));
  if (result === "same") return { verdict: "passed", lines: [`${open}/>`] };
  if (result !== "different") {
    return {
      verdict: "skipped",
      lines: [`${open}>`, `      <skipped message="${words}"/>`, "    </testcase>"],
    };
  }
  const isFailure = check !== null && isAtFault(check, evaluation);
  const inside = isFailure
    ? `      <failure type="different" message="${words}"/>`
    : `      <system-out>${words}</system-out>`;
  return { verdict: isFailure ? "failure" : "passed", lines: [`${open}>`, inside, "    </testcase>"] };
}

/** The check as a case of its own: it fails also where no evaluation is at fault, as where there was none. */
function checkCase({ result }: Shown): Suite {
  if (result === null) return { lines: [], counts: { tests: 0, failures: 0, skipped: 0 } };
  const counts = { tests: 1, failures: result.passed ? 0 : 1, skipped: 0 };
  const open = '    <testcase classname="recheck" name="check"';
  const inside = result.passed
    ? [`${open}/>`]
    : [
        `${open}>`,
        `      <failure type="${result.failures[0]?.code ?? ""}" message="${xml(shown(whyOf(result.failures)))}"/>`,
        "    </testcase>",
      ];
  return {
    counts,
    lines: [`  <testsuite name="check" ${attributes(counts)}>`, ...inside, "  </testsuite>"],
  };
}

function whyOf(failures: readonly { readonly message: string }[]): string {
  return failures.map(({ message }) => message).join("; ");
}
