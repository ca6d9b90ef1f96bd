/**
 * Transitions: what a recorded outcome became. Counted in cells, ordered worst first (docs/recheck.md, "Jobs").
 *
 * @module
 */
import { OUTCOMES } from "./model.ts";
import type { RecheckedEvaluation } from "./report.ts";

/** An outcome as a column of the matrix: `none` where the policy gave no decision, `other` for a word of no outcome. */
export type Side = (typeof OUTCOMES)[number] | "none" | "other";
const SIDES: readonly string[] = [...OUTCOMES, "none", "other"];

/** Evaluations of one transition. Two equal outcomes may still differ: another approval is asked for. */
export interface Cell {
  readonly recorded: Side;
  readonly rechecked: Side;
  readonly same: number;
  readonly different: number;
}

/** Counts by transition: `recorded>rechecked` to [same, different]. */
export type Cells = Readonly<Record<string, readonly [same: number, different: number]>>;

/** The side that a decision's outcome stands for. */
export function sideOf(outcome: string): Side {
  return (OUTCOMES as readonly string[]).includes(outcome) ? (outcome as Side) : "other";
}

/** The transition of an evaluation that was re-checked. */
export function transitionOf(evaluation: RecheckedEvaluation): { recorded: Side; rechecked: Side } {
  const { recorded, rechecked } = evaluation;
  return {
    recorded: sideOf(recorded.outcome),
    rechecked: rechecked === null ? "none" : sideOf(rechecked.outcome),
  };
}

/** The counts of one evaluation. */
export function oneCell(recorded: Side, rechecked: Side, differs: boolean): Cells {
  return { [`${recorded}>${rechecked}`]: differs ? [0, 1] : [1, 0] };
}

/** Both together. */
export function addCells(a: Cells, b: Cells): Cells {
  const sum: Record<string, readonly [number, number]> = { ...a };
  for (const [key, [same, different]] of Object.entries(b)) {
    const [sameBefore, differentBefore] = sum[key] ?? [0, 0];
    sum[key] = [sameBefore + same, differentBefore + different];
  }
  return sum;
}

/** How strict an outcome is; null where it says nothing of that. */
const STRICTNESS: Readonly<Record<Side, number | null>> = {
  allow: 0,
  require_approval: 1,
  deny: 2,
  abort: 3,
  none: null,
  other: null,
};

/**
 * How bad a transition is, 0 the worst: a denied call that is allowed, an aborted one, one that was asked about; then a
 * denied call that is asked about, no decision, another approval, and last what became stricter.
 */
export function severityOf(recorded: Side, rechecked: Side): number {
  const [before, now] = [STRICTNESS[recorded], STRICTNESS[rechecked]];
  if (before === null || now === null) return 4;
  if (before === now) return 5;
  if (now > before) return 6;
  if (now > 0) return 3;
  return recorded === "deny" ? 0 : recorded === "abort" ? 1 : 2;
}

/** Whether a call that was not allowed is allowed now. */
export function isNewAllow(recorded: Side, rechecked: Side): boolean {
  return rechecked === "allow" && severityOf(recorded, rechecked) <= 2;
}

/** The cells, worst first. */
export function cellsOf(cells: Cells): Cell[] {
  const out: Cell[] = [];
  for (const [key, [same, different]] of Object.entries(cells)) {
    const [recorded = "", rechecked = ""] = key.split(">");
    if (!SIDES.includes(recorded) || !SIDES.includes(rechecked)) continue;
    out.push({ recorded: recorded as Side, rechecked: rechecked as Side, same, different });
  }
  return out.sort(
    (a, b) =>
      severityOf(a.recorded, a.rechecked) - severityOf(b.recorded, b.rechecked) ||
      SIDES.indexOf(a.recorded) - SIDES.indexOf(b.recorded) ||
      SIDES.indexOf(a.rechecked) - SIDES.indexOf(b.rechecked),
  );
}

/** Evaluations of a transition that differ. */
export function differing(cells: Cells, test: (recorded: Side, rechecked: Side) => boolean): number {
  let sum = 0;
  for (const { recorded, rechecked, different } of cellsOf(cells))
    if (test(recorded, rechecked)) sum += different;
  return sum;
}
