/**
 * What a summary keeps of its parts: groups by tool and principal, single differences, calls that are newly allowed, and
 * runs that could not be re-checked; each with how two of them are put together.
 *
 * @module
 */

import { compareText } from "./summary-bounded.ts";
import type { Cells, Side } from "./summary-cells.ts";
import { addCells, severityOf } from "./summary-cells.ts";

/** What summaries keep at most. A report shows no more than these (docs/recheck.md, "Limits"). */
export const SUMMARY_LIMITS = {
  /** Tools, and principals, that are counted by themselves. */
  groups: 1_000,
  /** Tools and principals that a report lists: those with a newly allowed call are listed beyond it. */
  shownGroups: 50,
  /** Single differences. */
  worst: 200,
  /** Pairs of principal and tool with newly allowed calls. */
  newAllows: 5_000,
  /** Policy identities, and notes. */
  words: 50,
  specs: 1_000,
  failures: 100,
} as const;

/** Characters that are kept of a name or a text that a record or a policy chose. */
const MAX_WORD = 200;

/** The text, cut. */
export function cut(text: string): string {
  const whole = text.replace(/\p{Surrogate}/gu, "\ufffd");
  if (whole.length <= MAX_WORD) return whole;
  return `${whole.slice(0, MAX_WORD).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The evaluations of a tool or a principal. */
export interface Group {
  readonly cells: Cells;
  readonly notRecheckable: number;
}

export function addGroups(a: Group, b: Group): Group {
  return { cells: addCells(a.cells, b.cells), notRecheckable: a.notRecheckable + b.notRecheckable };
}

/** One evaluation that differs. */
export interface Difference {
  readonly principal: string;
  readonly run: string;
  readonly stepIndex: number;
  readonly seq: number;
  readonly tool: string;
  readonly recorded: Side;
  readonly rechecked: Side;
  readonly detail: string;
}

/** Worst first; within a transition by principal, run and place. */
export function compareDifferences(a: Difference, b: Difference): number {
  return (
    severityOf(a.recorded, a.rechecked) - severityOf(b.recorded, b.rechecked) ||
    compareText(a.principal, b.principal) ||
    compareText(a.run, b.run) ||
    a.seq - b.seq
  );
}

/** Calls of a tool by a principal that were not allowed and are now. */
export interface NewAllow {
  readonly recorded: Side;
  readonly principal: string;
  readonly tool: string;
  readonly count: number;
  /** The first of them, by run and place. */
  readonly run: string;
  readonly seq: number;
}

/** Key of a pair: what was denied comes first, and so is dropped last. */
export function newAllowKey({ recorded, principal, tool }: NewAllow): string {
  return `${severityOf(recorded, "allow")}\n${principal}\n${tool}`;
}

export function addNewAllows(a: NewAllow, b: NewAllow): NewAllow {
  const first = (compareText(a.run, b.run) || a.seq - b.seq) <= 0 ? a : b;
  return { ...first, count: a.count + b.count };
}

/** A run that could not be re-checked at all. */
export interface FailedRun {
  readonly principal: string;
  readonly run: string;
  /** Why, as a code. */
  readonly code: string;
}

export function compareFailures(a: FailedRun, b: FailedRun): number {
  return compareText(a.principal, b.principal) || compareText(a.run, b.run) || compareText(a.code, b.code);
}
