/**
 * A job's report as Markdown for a comment on a change: what is newly allowed first, then the worst differences, and the
 * rest as numbers.
 *
 * @module
 */
import type { Judged } from "./check.ts";
import { Budget, code, headline, MAX_CHARS, plain } from "./markdown-parts.ts";
import type { SummaryJson } from "./summary-json.ts";
import type { JobReport } from "./summary-report.ts";
import { SHOWN_HEADS } from "./summary-report.ts";

/** Characters that are kept for what stands below the tables. */
const ENDS_CHARS = 14_000;
/** Rows that one table has at most: the comment is for people. */
const MAX_ROWS = 100;

/** The comment. */
export function jobMarkdown(report: JobReport, result: Judged | null): string {
  const { summary } = report;
  const { new_allows: allows, worst, transitions } = summary;
  const lines = [
    ...headline(result, `${summary.differences} of ${summary.rechecked} evaluations differ`),
    titleOf(report),
    "",
  ];
  const budget = new Budget(MAX_CHARS - ENDS_CHARS - lines.join("\n").length);
  const allowRows = allows.groups.map(
    ({ recorded, principal, tool, count, run, seq }) =>
      `| ${code(recorded)} | ${code(principal)} | ${code(tool)} | ${count} | ${code(run)} seq ${seq} |`,
  );
  if (allowRows.length > 0) lines.push("**Newly allowed:**", "");
  lines.push(
    ...table(
      ["| recorded | principal | tool | calls | the first |", "| --- | --- | --- | ---: | --- |"],
      allowRows,
      budget,
      allows.cut === 0 ? "" : `**And ${allows.cut} newly allowed call(s) of further principals and tools.**`,
    ),
    ...table(
      ["| recorded | now | same | different |", "| --- | --- | ---: | ---: |"],
      transitions.map(
        ({ recorded, rechecked, same, different }) =>
          `| ${code(recorded)} | ${code(rechecked)} | ${same} | ${different} |`,
      ),
      budget,
    ),
    ...table(
      [
        "| principal | run | step | seq | tool | recorded | now | why |",
        "| --- | --- | ---: | ---: | --- | --- | --- | --- |",
      ],
      worst.differences.map(rowOf),
      budget,
      worst.cut === 0 ? "" : `${worst.cut} more difference(s) are in the counts alone.`,
    ),
  );
  const ends = new Budget(ENDS_CHARS - 500);
  for (const line of endsOf(report)) {
    if (!ends.take(line) || !ends.take("")) {
      lines.push("More is not shown.", "");
      break;
    }
    lines.push(line, "");
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

function titleOf({ id, status, reason, runs, heads, policy, summary }: JobReport): string {
  const why = reason === undefined ? "" : ` (${plain(reason)})`;
  const stored = policy.name === undefined ? "" : `; policy ${code(policy.name)} version ${policy.version}`;
  const identity =
    summary.identity === "unknown"
      ? "policy identity unknown"
      : `policy ${plain(summary.identity)}: ${code(summary.policy_id)}`;
  return (
    `Job ${code(id)}, ${plain(status)}${why}: ${runs.done} of ${runs.total} runs of ${heads.length} logs${stored}; ` +
    `${identity}; ${plain(summary.spec_source)} specs.`
  );
}

/** A table as far as there is room, what of it is not there, and what it never had. */
function table(header: readonly string[], rows: readonly string[], budget: Budget, beyond = ""): string[] {
  const taken: string[] = [];
  for (const row of rows.slice(0, MAX_ROWS)) {
    if (!budget.take(row)) break;
    taken.push(row);
  }
  const cut = rows.length - taken.length;
  return [
    ...(taken.length === 0 ? [] : [...header, ...taken, ""]),
    ...(cut === 0 ? [] : [`${cut} more row(s) are not shown.`, ""]),
    ...(beyond === "" ? [] : [beyond, ""]),
  ];
}

function rowOf(each: SummaryJson["worst"]["differences"][number]): string {
  const { principal, run, step_index: step, seq, tool, recorded, rechecked, detail = "" } = each;
  const where = `| ${code(principal)} | ${code(run)} | ${step} | ${seq} | ${code(tool)}`;
  return `${where} | ${code(recorded)} | ${code(rechecked)} | ${plain(detail)} |`;
}

function* endsOf(report: JobReport): Generator<string> {
  const { summary, heads, without_runs: without } = report;
  const { totals, runs } = summary;
  const reasons = Object.entries(totals.not_recheckable.by_reason).map(
    ([reason, count]) => `${plain(reason)} ${count}`,
  );
  yield `${totals.evaluated} evaluation(s) of ${runs.rechecked} run(s): ${totals.same} same, ${totals.different} different, ` +
    `${totals.not_recheckable.total} could not be re-checked${reasons.length === 0 ? "" : ` (${reasons.join(", ")})`}.`;
  if (totals.not_a_policy_evaluation > 0)
    yield `${totals.not_a_policy_evaluation} were no policy evaluation.`;
  if (runs.without_evaluations > 0) yield `${runs.without_evaluations} run(s) have no selected evaluation.`;
  for (const { principal, run, code: why } of summary.failed_runs.runs) {
    yield `**Failed**: ${code(principal)} ${run === "" ? "(the log)" : code(run)}: ${plain(why)}.`;
  }
  if (summary.failed_runs.cut > 0) yield `**Failed**: ${summary.failed_runs.cut} more run(s).`;
  for (const name of without) yield `No run in the selection: ${code(name)}.`;
  for (const [note, count] of Object.entries(summary.notes.counts))
    yield `Note: ${plain(note)} (${count} run(s)).`;
  for (const { principal, size, hash } of heads.slice(0, SHOWN_HEADS)) {
    yield `Head of ${code(principal)}: ${code(`${size}:${hash}`)}.`;
  }
  if (heads.length > SHOWN_HEADS) yield `${heads.length - SHOWN_HEADS} more head(s) are in the report.`;
}
