/**
 * What a caller expects of a re-check, and whether the report shows it (docs/recheck.md, "Checks"). No check passes
 * by checking nothing.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import type { GateName, RecheckedEvaluation, RecheckReport } from "./report.ts";
import { isNewAllow, transitionOf } from "./summary-cells.ts";

export interface Check {
  /** Nothing may differ; with `strict` nothing may be left out either. */
  readonly gate?: GateName;
  /** Exactly these steps differ, by index; not together with a gate. */
  readonly differs?: readonly number[];
  /** No call that was not allowed may be allowed now. */
  readonly noNewAllow?: boolean;
  /** Evaluations that can't be re-checked may be left out; not together with the strict gate. */
  readonly partial?: boolean;
}

export type CheckFailureCode =
  | "no-run"
  | "nothing-rechecked"
  | "not-verified"
  | "differs"
  | "other-steps"
  | "new-allow"
  | "incomplete";

export interface CheckFailure {
  readonly code: CheckFailureCode;
  /** A sentence of its own; no values of the record in it. */
  readonly message: string;
}

/** Whether what was expected is there, and if not, why; neither codes nor messages hold values of the record. */
export interface Judged {
  readonly passed: boolean;
  readonly failures: readonly { readonly code: string; readonly message: string }[];
}

export interface CheckResult extends Judged {
  readonly passed: boolean;
  readonly failures: readonly CheckFailure[];
}

/** A report, and whether what it was read from was found to be what was logged; absent where nobody looked. */
export interface CheckedReport {
  readonly report: RecheckReport;
  readonly intact?: boolean | undefined;
}

/** Refuses what no report could fail or pass by. Throws `RunsealError("recheck-check")`. */
export function validCheck(check: Check): Check {
  const refuse = (message: string): never => {
    throw new RunsealError("recheck-check", message);
  };
  const { gate, differs, noNewAllow, partial } = check;
  if (gate === undefined && differs === undefined && noNewAllow !== true)
    refuse("a check expects something: a gate, steps that differ, or no new allow");
  if (gate !== undefined && differs !== undefined)
    refuse("a gate lets nothing differ: it goes with no steps that differ");
  if (gate === "strict" && partial === true)
    refuse("the strict gate leaves nothing out: it goes with no partial check");
  if (differs !== undefined) {
    if (differs.length === 0) refuse("steps that differ are at least one");
    if (!differs.every((step) => Number.isSafeInteger(step) && step >= 0))
      refuse("a step is a whole number from 0 on");
    if (new Set(differs).size !== differs.length) refuse("a step is named once");
  }
  return check;
}

/** Whether an evaluation's difference is one that the check does not let pass. */
export function isAtFault(check: Check, evaluation: RecheckedEvaluation): boolean {
  if (evaluation.result !== "different") return false;
  if (check.gate !== undefined) return true;
  if (check.differs !== undefined && !check.differs.includes(evaluation.stepIndex)) return true;
  return check.noNewAllow === true && isNewlyAllowed(evaluation);
}

/** Whether a call that was not allowed is allowed now. */
export function isNewlyAllowed(evaluation: RecheckedEvaluation): boolean {
  const { recorded, rechecked } = transitionOf(evaluation);
  return isNewAllow(recorded, rechecked);
}

/** Whether evaluations that can't be re-checked fail the check. */
function demandsAll({ gate, partial }: Check): boolean {
  return gate === undefined ? partial !== true : gate === "strict";
}

/**
 * Whether the reports together are what the check expects. With steps that differ there is one report: steps are a
 * run's own. Throws what `validCheck` does.
 */
export function checkReports(asked: Check, reports: readonly CheckedReport[]): CheckResult {
  const check = validCheck(asked);
  if (check.differs !== undefined && reports.length > 1)
    throw new RunsealError("recheck-check", "steps that differ are those of one run");
  const failures: CheckFailure[] = [];
  const fail = (code: CheckFailureCode, message: string): void => {
    failures.push({ code, message });
  };
  const evaluations = reports.flatMap(({ report }) => report.evaluations);
  const count = (test: (each: RecheckedEvaluation) => boolean): number => evaluations.filter(test).length;
  const rechecked = reports.reduce((sum, { report }) => sum + report.rechecked, 0);
  const left = count(({ result }) => result === "not_recheckable");
  const broken = reports.filter(({ intact }) => intact === false).length;
  if (reports.length === 0) fail("no-run", "no run was re-checked");
  else if (rechecked === 0) fail("nothing-rechecked", "no evaluation was re-checked: that proves nothing");
  if (broken > 0)
    fail("not-verified", "what was re-checked is not what was logged: verification found a break");
  if (check.gate !== undefined) {
    const differing = count(({ result }) => result === "different");
    if (differing > 0) fail("differs", `${differing} evaluation(s) differ`);
  }
  if (check.differs !== undefined) failSteps(check.differs, evaluations, fail);
  if (check.noNewAllow === true) {
    const allowed = count((each) => each.result === "different" && isNewlyAllowed(each));
    if (allowed > 0) fail("new-allow", `${allowed} call(s) that were not allowed are allowed now`);
  }
  if (left > 0 && demandsAll(check)) fail("incomplete", `${left} evaluation(s) could not be re-checked`);
  return { passed: failures.length === 0, failures };
}

function failSteps(
  expected: readonly number[],
  evaluations: readonly RecheckedEvaluation[],
  fail: (code: CheckFailureCode, message: string) => void,
): void {
  const found = new Set(
    evaluations.filter(({ result }) => result === "different").map(({ stepIndex }) => stepIndex),
  );
  const list = (steps: readonly number[]): string => [...steps].sort((a, b) => a - b).join(", ");
  const others = [...found].filter((step) => !expected.includes(step));
  const same = expected.filter((step) => !found.has(step));
  if (others.length > 0) fail("other-steps", `step(s) ${list(others)} differ, and were not expected to`);
  if (same.length > 0) fail("other-steps", `step(s) ${list(same)} were expected to differ, and do not`);
}
