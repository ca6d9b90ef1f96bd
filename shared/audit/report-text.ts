/**
 * An audit's report for people: a line for the verdict, one for each thing found, and what was read (docs/audit.md "The
 * report").
 *
 * @module
 */
import type { EntryRef, Finding, NotChecked } from "./finding.ts";
import type { LedgerFailure, LedgerWarning } from "./langbot-report.ts";
import type { AuditReport } from "./report.ts";

/** UTF-16 units of a text from the log that are shown. */
const MAX_SHOWN = 240;

/** The report as text, without a line feed at the end. Texts from the log are cut, and hold no control characters. */
export function auditText(report: AuditReport): string {
  const { run, entries, metrics } = report;
  const name = run?.run_id ?? entries?.run;
  const lines = [
    `${report.status}: ${name === undefined ? "" : `run ${shown(name)}: `}${shown(report.reason)}`,
  ];
  if (run !== undefined && metrics !== undefined)
    lines.push(
      `  status ${shown(run.status ?? "unknown")}, ${metrics.event_count} events, ` +
        `${metrics.tool_call_started} calls started, ${metrics.tool_call_completed} completed, ` +
        `tools ${shown(metrics.tool_authorization_mode)}`,
    );
  for (const failure of report.failures) lines.push(`FAIL  ${ledgerLine(failure)}`);
  for (const finding of report.findings) lines.push(findingLine(finding));
  const listed = report.findings.length;
  const found = Object.values(report.finding_counts).reduce((sum, count) => sum + count, 0);
  if (found > listed) lines.push(`      ${found - listed} further findings are not listed`);
  for (const warning of report.warnings) lines.push(`warn  ${ledgerLine(warning)}`);
  for (const one of report.not_checked) lines.push(`      not checked: ${uncheckedLine(one)}`);
  if (report.not_checked_count > report.not_checked.length)
    lines.push(`      ${report.not_checked_count - report.not_checked.length} more were not checked`);
  for (const note of report.notes) lines.push(`note: ${shown(note)}`);
  lines.push(...coverage(report));
  return lines.join("\n");
}

function coverage({ entries, head, covered, context }: AuditReport): string[] {
  if (entries === null) return [];
  const read = context === "log" ? "the run and what bears on it in its log" : "the run alone";
  const lines = [
    `entries: ${entries.count}, ${named(entries.first)} to ${named(entries.last)}; read: ${read}`,
  ];
  if (head === null) lines.push("head: none was given: nothing says that these entries are the log's");
  else if (covered) lines.push(`head: size ${head.size}, root ${shown(head.root)}, covers them`);
  else lines.push(`head: size ${head.size} does not cover the last entry`);
  return lines;
}

function findingLine({ kind, severity, message, entries, missing }: Finding): string {
  const gap = missing === undefined ? "" : ` (${missing.from} to ${missing.to})`;
  const label = severity === "failure" ? "FAIL " : "warn ";
  return `${label} ${kind}: ${message}${gap}: ${entries.map(named).join(", ")}`;
}

function uncheckedLine({ entry, what, why }: NotChecked): string {
  return `${entry === undefined ? "" : `${named(entry)} `}${shown(what)}: ${why}`;
}

function ledgerLine(item: LedgerFailure | LedgerWarning): string {
  const { kind, ...members } = item;
  const details = Object.entries(members).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return details.length === 0 ? kind : `${kind}: ${shown(details.join(", "))}`;
}

function named({ seq, hash }: EntryRef): string {
  return `${seq}:${hash}`;
}

/** One line of plain text. Formatting characters could turn what follows around, so they go, too. */
function shown(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ");
  return plain.length <= MAX_SHOWN ? plain : `${plain.slice(0, MAX_SHOWN).replace(/\p{Cs}$/u, "")}...`;
}
