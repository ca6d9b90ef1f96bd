/**
 * A verification report for people.
 *
 * @module
 */
import type { VerifyReport } from "../api/schemas.ts";

/** The report's text, without a line feed at the end. */
export function verifyText(report: VerifyReport): string {
  const lines: string[] = [];
  const { head, last } = report;
  if (head?.size !== undefined)
    lines.push(head.size === 0 ? "head: no entries" : `head: ${head.size} entries, signed`);
  if (report.verdict === "intact") {
    const range =
      report.checked === 0
        ? "no entries in the range"
        : `${report.checked} entries, ${report.from} to ${report.to}`;
    lines.push(`${report.pinned === false ? "consistent, not pinned" : "intact"}: ${range}`);
    if (last !== null) lines.push(`last checked: ${last.seq}:${last.hash}`);
  } else if (report.break !== undefined) {
    const { seq, verdict, detail, expected, found } = report.break;
    lines.push(`${report.verdict} at entry ${seq}: ${verdict}: ${detail}`);
    if (expected !== null) lines.push(`  expected ${expected}`);
    if (found !== null) lines.push(`  found    ${found}`);
    if (report.issues.length > 1)
      lines.push(`  ${report.issues.length - 1} further issues (--json lists them)`);
  }
  if (report.kept_head !== undefined) {
    const { seq, hash, found, matches } = report.kept_head;
    const says = matches
      ? "matches"
      : found === hash
        ? "was not reached by a walk over every leaf"
        : "does not match";
    lines.push(`kept head: ${seq} ${says}`);
  }
  for (const what of report.trusted) lines.push(`trusted: ${what}`);
  for (const what of report.not_checked ?? []) lines.push(`not checked: ${what}`);
  return lines.join("\n");
}
