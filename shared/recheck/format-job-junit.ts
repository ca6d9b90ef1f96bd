/**
 * A job's report as JUnit XML. The stored report has the worst differences one by one, and counts of the rest: so a suite
 * for each principal has a case for each listed difference, and one each for what is only counted.
 *
 * @module
 */
import type { Judged } from "./check.ts";
import type { Case, Suite } from "./junit-parts.ts";
import { caseOf, checkSuites, suiteOf, xmlDocument } from "./junit-parts.ts";
import type { GateName } from "./report.ts";
import type { GroupJson, SummaryJson } from "./summary-json.ts";
import type { JobReport } from "./summary-report.ts";
import { SHOWN_HEADS } from "./summary-report.ts";
import { shown } from "./text.ts";

type Difference = SummaryJson["worst"]["differences"][number];
type Counts = Omit<GroupJson, "name" | "transitions">;

/** The document. Without a gate nothing was expected, and nothing fails. */
export function jobJunit(report: JobReport, gate: GateName | null, result: Judged | null): string {
  const { by_principal: principals, worst } = report.summary;
  const named = new Set(principals.groups.map(({ name }) => name));
  const listed = (test: (principal: string) => boolean) =>
    worst.differences.filter(({ principal }) => test(principal));
  const suites = principals.groups.map((group) => {
    const own = listed((principal) => principal === group.name);
    return principalSuite(shown(group.name) || "-", group, own, gate);
  });
  if (principals.others !== null) {
    const rest = listed((principal) => !named.has(principal));
    suites.push(principalSuite("other principals", principals.others, rest, gate));
  }
  const all = [jobSuite(report, gate), ...suites, ...checkSuites(result)];
  return xmlDocument("runseal rechecks", all);
}

function principalSuite(
  name: string,
  { same, different, not_recheckable: left }: Counts,
  listed: readonly Difference[],
  gate: GateName | null,
): Suite {
  const cases = listed.map((each) => differenceCase(each, gate));
  const more = different - listed.length;
  if (more > 0) cases.push(differing(name, `${more} more that differ`, "counted, not listed", gate));
  if (same > 0) cases.push(caseOf(name, `${same} the same`, { verdict: "passed" }));
  if (left > 0) {
    const words = "could not be re-checked";
    cases.push(caseOf(name, `${left} left out`, { verdict: "skipped", words }));
  }
  return suiteOf(name, cases);
}

function differenceCase(each: Difference, gate: GateName | null): Case {
  const { principal, run, step_index: step, seq, tool, recorded, rechecked, detail } = each;
  const why = detail === undefined ? "" : `: ${shown(detail)}`;
  const name = `step ${step} seq ${seq} ${shown(tool) || "-"}`;
  return differing(
    `${shown(principal)}/${shown(run)}`,
    name,
    `${shown(recorded)} -> ${shown(rechecked)}${why}`,
    gate,
  );
}

function differing(className: string, name: string, words: string, gate: GateName | null): Case {
  const type = "different";
  return caseOf(
    className,
    name,
    gate === null ? { verdict: "noted", words } : { verdict: "failure", type, words },
  );
}

/** What the job is, and the runs and principals of which there is nothing to compare. */
function jobSuite(report: JobReport, gate: GateName | null): Suite {
  const { id, status, reason, policy, runs, heads, summary, without_runs: without } = report;
  const properties: [string, string][] = [
    ["id", shown(id)],
    ["status", shown(status)],
    ...(reason === undefined ? [] : ([["reason", shown(reason)]] as [string, string][])),
    ["policy_id", shown(summary.policy_id)],
    ...(policy.name === undefined
      ? []
      : ([["policy", `${shown(policy.name)} version ${policy.version}`]] as [string, string][])),
    ["identity", shown(summary.identity)],
    ["spec_source", shown(summary.spec_source)],
    ["runs", `${runs.done} of ${runs.total}`],
    ["logs", `${heads.length}`],
    ...heads
      .slice(0, SHOWN_HEADS)
      .map(({ principal, size, hash }): [string, string] => [
        "head",
        `${shown(principal)} ${size}:${shown(hash)}`,
      ]),
    ...Object.keys(summary.notes.counts).map((note): [string, string] => ["note", shown(note)]),
  ];
  const { runs: failed, cut } = summary.failed_runs;
  const fails = (className: string, name: string, words: string, type: string, isFault: boolean) =>
    caseOf(className, name, isFault ? { verdict: "failure", type, words } : { verdict: "skipped", words });
  const cases = [
    ...failed.map(({ principal, run, code }) =>
      fails(
        shown(principal),
        run === "" ? "the log" : `run ${shown(run)}`,
        shown(code),
        "failed-run",
        gate !== null,
      ),
    ),
    ...(cut === 0
      ? []
      : [fails("job", `${cut} more failed runs`, "counted, not listed", "failed-run", gate !== null)]),
    ...without.map((name) =>
      fails(shown(name), "runs", "no run in the selection", "no-run", gate === "strict"),
    ),
  ];
  return suiteOf(`job ${shown(id)}`, cases, properties);
}
