/**
 * The report of an audit: the ledger's report as LangBot's script gives it, and what the entries show besides
 * (docs/audit.md "The report").
 *
 * @module
 */
import type { EntryRef, Finding, FindingKind, FindingList, NotChecked } from "./finding.ts";
import type { AuditStatus, LedgerReport } from "./langbot-report.ts";

/** A head of the log, as the caller knows it. Other members of the API's head may be there, and stay. */
export interface AuditHead {
  readonly seq: number;
  readonly hash: string;
  readonly size: number;
  readonly root: string;
  /** The signed note. */
  readonly checkpoint?: string;
}

/** Which entries the report is about. */
export interface AuditedEntries {
  /** The run as the log names it. */
  readonly run: string;
  readonly first: EntryRef;
  readonly last: EntryRef;
  /** Entries of the run. */
  readonly count: number;
}

/** The JSON of a report: these keys, the ledger's first. */
export interface AuditReport extends LedgerReport {
  readonly findings: readonly Finding[];
  /** All findings by kind, those beyond the list included. */
  readonly finding_counts: Readonly<Partial<Record<FindingKind, number>>>;
  /** What could not be looked at; `not_checked_count` counts those beyond the list. */
  readonly not_checked: readonly NotChecked[];
  readonly not_checked_count: number;
  readonly notes: readonly string[];
  /** What was read: the run's entries, or those of the whole log that bear on it, too. */
  readonly context: "log" | "run";
  /** Null where no run was audited. */
  readonly entries: AuditedEntries | null;
  /** A head that covers the entries; null where none was given. */
  readonly head: AuditHead | null;
  /** Whether the head covers the last entry. */
  readonly covered: boolean;
}

export interface ReportParts {
  readonly ledger: LedgerReport;
  /** Absent where no run was audited. */
  readonly found?: FindingList;
  readonly context?: "log" | "run";
  readonly entries?: AuditedEntries | null;
  readonly head?: AuditHead | null;
}

/** Puts the report together: a failing finding fails it, and what was not checked keeps it from passing. */
export function auditReport({
  ledger,
  found,
  context = "run",
  entries = null,
  head = null,
}: ReportParts): AuditReport {
  return {
    ...verdict(ledger, found),
    ...(ledger.run === undefined ? {} : { run: ledger.run }),
    ...(ledger.metrics === undefined ? {} : { metrics: ledger.metrics }),
    ...(ledger.expected_tool_call === undefined ? {} : { expected_tool_call: ledger.expected_tool_call }),
    failures: ledger.failures,
    warnings: ledger.warnings,
    findings: found?.findings ?? [],
    finding_counts: found?.counts ?? {},
    not_checked: found?.notCheckedList ?? [],
    not_checked_count: found?.notCheckedCount ?? 0,
    notes: found?.notes ?? [],
    context,
    entries,
    head,
    covered: entries !== null && head !== null && entries.last.seq <= head.size,
  };
}

function verdict(
  ledger: LedgerReport,
  found: FindingList | undefined,
): { status: AuditStatus; reason: string } {
  const { status, reason } = ledger;
  if (found !== undefined && found.failures > 0)
    return { status: "fail", reason: `${reason} ${found.failures} further finding(s) fail it.` };
  if (found !== undefined && found.notCheckedCount > 0 && status === "pass")
    return {
      status: "env_issue",
      reason: `${reason} It is not complete: ${found.notCheckedCount} thing(s) could not be checked.`,
    };
  return { status, reason };
}

/** 0 pass, 1 fail, 2 env_issue. */
export function exitCodeOf({ status }: Pick<LedgerReport, "status">): 0 | 1 | 2 {
  if (status === "pass") return 0;
  return status === "fail" ? 1 : 2;
}

/** The report without what LangBot's script does not know: its own JSON, member for member, where the status is its own. */
export function ledgerPart(report: AuditReport): LedgerReport {
  const { status, reason, run, metrics, expected_tool_call, failures, warnings } = report;
  return {
    status,
    reason,
    ...(run === undefined ? {} : { run }),
    ...(metrics === undefined ? {} : { metrics }),
    ...(expected_tool_call === undefined ? {} : { expected_tool_call }),
    failures,
    warnings,
  };
}

/** The report as JSON text, indented by two, without a line feed at the end. */
export function auditJson(report: AuditReport): string {
  return JSON.stringify(report, null, 2);
}
