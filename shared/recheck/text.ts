/**
 * The text form of a report, to the letter (docs/recheck.md, "Text"). Every value that the
 * record or the policy chose is one line of text that does nothing to a terminal.
 *
 * @module
 */
import { utf8 } from "../bytes.ts";
import type { RecheckedEvaluation, RecheckReport } from "./report.ts";

/** UTF-8 bytes of one value that a line shows. */
const MAX_FIELD_BYTES = 240;

/** The report as lines, each ended by a newline. */
export function reportText(report: RecheckReport): string {
  const { runId, runStatus, differences, rechecked, specSource, evaluations, notes } = report;
  const lines = [
    `run ${shown(runId)} ${shown(runStatus)}: ${differences} of ${rechecked} re-checked evaluations differ; ` +
      `${identityWords(report)}; ${specSource} specs`,
    ...evaluations.filter(({ result }) => result === "different").map(evaluationLine),
    ...evaluations.filter(({ result }) => result !== "different").map(evaluationLine),
    ...notes.map((note) => `note: ${shown(note)}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** What is said of the policy's identity; the identities in it are made safe to show. */
export function identityWords({ identity, policyId, evaluations }: RecheckReport): string {
  if (identity === "unknown") return "policy identity unknown";
  if (identity === "unchanged") return `policy unchanged: "${shown(policyId)}"`;
  const recorded = new Set<string>();
  for (const each of evaluations) {
    if ((each.result === "same" || each.result === "different") && each.policyId !== policyId)
      recorded.add(each.policyId);
  }
  const ids = [...recorded].map((id) => `"${shown(id)}"`).join(", ");
  return `policy changed: recorded ${ids}, given "${shown(policyId)}"`;
}

const MARKS = {
  different: "DIFFERENT",
  same: "same     ",
  not_a_policy_evaluation: "skipped  ",
  not_recheckable: "skipped  ",
} as const;

function evaluationLine(evaluation: RecheckedEvaluation): string {
  const { result, stepIndex, seq, tool, onResume } = evaluation;
  const name = (shown(tool) || "-") + (onResume ? " (on resume)" : "");
  return `${MARKS[result]} step ${stepIndex} seq ${seq} ${name}: ${outcomeWords(evaluation)}`;
}

/** What became of an evaluation, in words that are safe to show. */
export function outcomeWords(evaluation: RecheckedEvaluation): string {
  const { result, recorded, rechecked } = evaluation;
  const detail = shown(evaluation.detail);
  const before = shown(recorded.outcome);
  if (result === "same") return detail === "" ? before : `${before}: ${detail}`;
  if (result !== "different") return detail;
  const now = rechecked === null ? "none" : shown(rechecked.outcome);
  const why = detail === "" ? shown(rechecked?.reason ?? "") : detail;
  return why === "" ? `${before} -> ${now}` : `${before} -> ${now}: ${why}`;
}

/** Line breaks of every kind. */
const BREAKS = /[\n\r]/gu;
const CONTROLS = /\p{Cc}/gu;
/** Invisible characters and those that turn the direction of text, among them U+2028 and U+2029. */
const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** The value, safe for one line of a terminal and cut. */
export function shown(value: string): string {
  const safe = value
    .replace(/\p{Surrogate}/gu, "\ufffd")
    .replace(BREAKS, " ")
    .replace(CONTROLS, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .replace(INVISIBLE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
  if (safe.length <= MAX_FIELD_BYTES && utf8(safe).length <= MAX_FIELD_BYTES) return safe;
  let bytes = 0;
  let out = "";
  for (const character of safe) {
    bytes += utf8(character).length;
    if (bytes > MAX_FIELD_BYTES) break;
    out += character;
  }
  return `${out}…`;
}
