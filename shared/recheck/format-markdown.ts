/**
 * Reports as Markdown for a comment on a change: what differs, as a table, and the rest as numbers. It stays below the
 * 65,536 characters that such a comment has.
 *
 * @module
 */
import { isNewlyAllowed } from "./check.ts";
import type { Shown, ShownReport } from "./format-report.ts";
import { Budget, code, headline, MAX_CHARS, plain, sentence } from "./markdown-parts.ts";
import type { RecheckedEvaluation } from "./report.ts";
import { identityWords } from "./text.ts";

/** The comment. */
export function markdownText(given: Shown): string {
  const { reports, result } = given;
  const differences = reports.reduce((sum, { report }) => sum + report.differences, 0);
  const rechecked = reports.reduce((sum, { report }) => sum + report.rechecked, 0);
  const lines = headline(result, `${differences} of ${rechecked} evaluations differ`);
  const budget = new Budget(MAX_CHARS - lines.join("\n").length);
  for (const [place, each] of reports.entries()) {
    const section = sectionOf(each, budget);
    if (section === null) {
      lines.push(`${reports.length - place} more run(s) are not shown.`, "");
      break;
    }
    lines.push(...section);
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

const HEADER = ["| step | seq | tool | recorded | now | why |", "| ---: | ---: | --- | --- | --- | --- |"];

/** The lines of one run; null where there is no room for them. */
function sectionOf({ report, principal, head, intact }: ShownReport, budget: Budget): string[] | null {
  const name = principal === undefined ? code(report.runId) : `${code(principal)} ${code(report.runId)}`;
  const frame = [
    `Run ${name}, ${plain(report.runStatus)}: ${report.differences} of ${report.rechecked} differ; ` +
      `${sentence(identityWords(report))}; ${report.specSource} specs.`,
    "",
    ...ends(report.evaluations.length, report, head, intact),
  ];
  // Room for the frame and a sentence on what is not shown.
  if (!budget.take(`${frame.join("\n")}${" ".repeat(200)}`)) return null;
  const [title = "", ...rest] = frame;
  const different = report.evaluations.filter(({ result }) => result === "different");
  const left = report.evaluations.filter(({ result }) => result === "not_recheckable");
  // What is newly allowed comes first: it must not be what is cut.
  const rows = [
    ...different.filter(isNewlyAllowed),
    ...different.filter((each) => !isNewlyAllowed(each)),
    ...left,
  ];
  const shownRows: string[] = [];
  for (const row of rows.map(rowOf)) {
    if (!budget.take(row)) break;
    shownRows.push(row);
  }
  const cut = rows.length - shownRows.length;
  return [
    title,
    "",
    ...(shownRows.length === 0 ? [] : [...HEADER, ...shownRows, ""]),
    ...(cut === 0 ? [] : [`${cut} more row(s) are not shown.`, ""]),
    ...rest.slice(1),
  ];
}

function ends(
  evaluations: number,
  report: ShownReport["report"],
  head: ShownReport["head"],
  intact: boolean | undefined,
): string[] {
  const same = report.rechecked - report.differences;
  return [
    `${evaluations} evaluation(s): ${same} same, ${report.differences} different, ` +
      `${report.notRecheckable} could not be re-checked.`,
    ...report.notes.map((note) => `Note: ${plain(note)}.`),
    ...(head === undefined ? [] : [`Head: size ${head.size}, root ${code(head.root)}.`]),
    ...(intact === undefined
      ? []
      : [
          intact
            ? "Verified: what was re-checked is what was logged."
            : "**Not verified: the log is broken.**",
        ]),
    "",
  ].flatMap((line) => (line === "" ? [line] : [line, ""]));
}

function rowOf(evaluation: RecheckedEvaluation): string {
  const { stepIndex, seq, tool, onResume, result, recorded, rechecked, detail } = evaluation;
  const now =
    result === "not_recheckable" ? "not re-checked" : rechecked === null ? "none" : code(rechecked.outcome);
  const mark = result === "different" && isNewlyAllowed(evaluation) ? `**${now}**` : now;
  const why = detail === "" ? (rechecked?.reason ?? "") : detail;
  const where = `${code(tool)}${onResume ? " (on resume)" : ""}`;
  return `| ${stepIndex} | ${seq} | ${where} | ${code(recorded.outcome)} | ${mark} | ${plain(why)} |`;
}
