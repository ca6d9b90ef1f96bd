/**
 * The stored report of a job, as whoever reads it sees it: its text form, and its gate.
 *
 * @module
 */
import type { GateName } from "./report.ts";
import { passesSummaryGate } from "./summary-gate.ts";
import type { SummaryJson } from "./summary-json.ts";
import { summaryText } from "./summary-text.ts";
import { shown } from "./text.ts";

/** The members that are needed here. */
export interface JobReport {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
  readonly policy: { readonly policy_id: string; readonly name?: string; readonly version?: number };
  readonly runs: { readonly done: number; readonly total: number };
  readonly without_runs: readonly string[];
  readonly heads: readonly { readonly principal: string; readonly size: number; readonly hash: string }[];
  readonly summary: SummaryJson;
}

/** Heads that the forms for people show. */
export const SHOWN_HEADS = 20;

/** Whether the report passes the gate: a job that did not come to its end never does. */
export function passesJobGate(gate: GateName, report: JobReport): boolean {
  const coverage = { ended: report.status === "complete", withoutRuns: report.without_runs };
  return passesSummaryGate(gate, report.summary, coverage);
}

/** The report as lines, each ended by a newline. */
export function jobReportText(report: JobReport): string {
  const { policy, runs, heads } = report;
  const why = report.reason === undefined ? "" : ` (${shown(report.reason)})`;
  const stored = policy.name === undefined ? "" : `; policy ${shown(policy.name)} version ${policy.version}`;
  const lines = [
    `recheck ${shown(report.id)} ${shown(report.status)}${why}: ${runs.done} of ${runs.total} runs of ${heads.length} logs${stored}`,
    summaryText(report.summary).trimEnd(),
    ...report.without_runs.map((name) => `note: ${shown(name)} has no run in the selection`),
    ...heads
      .slice(0, SHOWN_HEADS)
      .map(({ principal, size, hash }) => `head ${shown(principal)} ${size}:${shown(hash)}`),
  ];
  if (heads.length > SHOWN_HEADS) lines.push(`head and ${heads.length - SHOWN_HEADS} more`);
  return `${lines.join("\n")}\n`;
}
