/**
 * The sum of many re-checked runs (docs/recheck.md, "Jobs"). It is bounded in size, and the same in whatever order the
 * runs come in and partial sums are merged. Pure; a job stores its `state` after each run.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import type { NotRecheckableReason } from "./model.ts";
import type { PolicyIdentity, RecheckedEvaluation, RecheckReport, SpecSource } from "./report.ts";
import type { GroupsState } from "./summary-bounded.ts";
import { BoundedGroups, BoundedList } from "./summary-bounded.ts";
import type { Cells } from "./summary-cells.ts";
import { addCells, isNewAllow, oneCell, transitionOf } from "./summary-cells.ts";
import type { Difference, FailedRun, Group, NewAllow } from "./summary-parts.ts";
import {
  addGroups,
  addNewAllows,
  compareDifferences,
  compareFailures,
  cut,
  newAllowKey,
  SUMMARY_LIMITS,
} from "./summary-parts.ts";

export type Reasons = Readonly<Partial<Record<NotRecheckableReason, number>>>;

/** Everything that a summary knows, as plain values for JSON. */
export interface SummaryState {
  readonly policyId: string;
  readonly specSource: SpecSource;
  /** Runs with at least one selected evaluation, without one, and those that failed. */
  readonly runs: { readonly rechecked: number; readonly without: number; readonly failed: number };
  readonly cells: Cells;
  readonly reasons: Reasons;
  readonly notEvaluations: number;
  readonly identity: { readonly unknown: number; readonly changed: number };
  readonly tools: GroupsState<Group>;
  readonly principals: GroupsState<Group>;
  readonly newAllows: GroupsState<NewAllow>;
  readonly worst: readonly Difference[];
  readonly failures: readonly FailedRun[];
  /** Evaluations by recorded policy identity; runs by spec hash that they name, and by note. */
  readonly policies: GroupsState<number>;
  readonly specs: GroupsState<number>;
  readonly notes: GroupsState<number>;
}

/** What a run adds. */
export interface SummaryRun {
  readonly principal: string;
  readonly report: RecheckReport;
  /** Hashes of the recorded specs that its evaluations name. */
  readonly specHashes: readonly string[];
  /** Which evaluations count; all of them unless told. */
  readonly selects?: (evaluation: RecheckedEvaluation) => boolean;
}

const sum = (a: number, b: number): number => a + b;

export class RecheckSummary {
  readonly policyId: string;
  readonly specSource: SpecSource;
  #runs: { rechecked: number; without: number; failed: number };
  #cells: Cells;
  #reasons: Record<string, number>;
  #notEvaluations: number;
  #identity: { unknown: number; changed: number };
  readonly tools: BoundedGroups<Group>;
  readonly principals: BoundedGroups<Group>;
  readonly newAllows: BoundedGroups<NewAllow>;
  readonly policies: BoundedGroups<number>;
  readonly specs: BoundedGroups<number>;
  readonly notes: BoundedGroups<number>;
  readonly #worst: BoundedList<Difference>;
  readonly #failures: BoundedList<FailedRun>;

  /** The empty summary of a policy, or the one whose state it is. */
  constructor(from: Pick<SummaryState, "policyId" | "specSource"> & Partial<SummaryState>) {
    const limits = SUMMARY_LIMITS;
    this.policyId = from.policyId;
    this.specSource = from.specSource;
    this.#runs = { ...(from.runs ?? { rechecked: 0, without: 0, failed: 0 }) };
    this.#cells = from.cells ?? {};
    this.#reasons = { ...from.reasons };
    this.#notEvaluations = from.notEvaluations ?? 0;
    this.#identity = { ...(from.identity ?? { unknown: 0, changed: 0 }) };
    this.tools = new BoundedGroups(limits.groups, addGroups, from.tools);
    this.principals = new BoundedGroups(limits.groups, addGroups, from.principals);
    this.newAllows = new BoundedGroups(limits.newAllows, addNewAllows, from.newAllows);
    this.policies = new BoundedGroups(limits.words, sum, from.policies);
    this.specs = new BoundedGroups(limits.specs, sum, from.specs);
    this.notes = new BoundedGroups(limits.words, sum, from.notes);
    this.#worst = new BoundedList(limits.worst, compareDifferences, from.worst);
    this.#failures = new BoundedList(limits.failures, compareFailures, from.failures);
  }

  /** Adds a run. */
  add({ principal, report, specHashes, selects = () => true }: SummaryRun): void {
    const tools = new Map<string, Group>();
    let whole: Group = { cells: {}, notRecheckable: 0 };
    let selected = 0;
    for (const evaluation of report.evaluations) {
      if (!selects(evaluation)) continue;
      selected++;
      const group = this.#count(principal, report.runId, evaluation);
      if (group === null) continue;
      const tool = cut(evaluation.tool);
      tools.set(tool, addGroups(tools.get(tool) ?? { cells: {}, notRecheckable: 0 }, group));
      whole = addGroups(whole, group);
    }
    if (selected === 0) {
      this.#runs.without++;
      return;
    }
    this.#runs.rechecked++;
    for (const [tool, group] of tools) this.tools.add(tool, group);
    this.principals.add(cut(principal), whole);
    this.#cells = addCells(this.#cells, whole.cells);
    for (const hash of new Set(specHashes)) this.specs.add(cut(hash), 1);
    for (const note of new Set(report.notes)) this.notes.add(cut(note), 1);
  }

  /** Adds a run that could not be re-checked. */
  addFailure(failure: FailedRun): void {
    this.#runs.failed++;
    this.#failures.add(failure);
  }

  /** Adds everything that the other one counted. Throws `RunsealError("summary-policy")` for another policy's. */
  merge(other: RecheckSummary): void {
    if (other.policyId !== this.policyId || other.specSource !== this.specSource) {
      throw new RunsealError(
        "summary-policy",
        "the summaries are of two policies, or of two sources of specs",
      );
    }
    this.#runs.rechecked += other.#runs.rechecked;
    this.#runs.without += other.#runs.without;
    this.#runs.failed += other.#runs.failed;
    this.#cells = addCells(this.#cells, other.#cells);
    for (const [reason, count] of Object.entries(other.#reasons)) this.#reason(reason, count);
    this.#notEvaluations += other.#notEvaluations;
    this.#identity.unknown += other.#identity.unknown;
    this.#identity.changed += other.#identity.changed;
    this.tools.merge(other.tools);
    this.principals.merge(other.principals);
    this.newAllows.merge(other.newAllows);
    this.policies.merge(other.policies);
    this.specs.merge(other.specs);
    this.notes.merge(other.notes);
    this.#worst.merge(other.#worst);
    this.#failures.merge(other.#failures);
  }

  get runs(): SummaryState["runs"] {
    return this.#runs;
  }

  get cells(): Cells {
    return this.#cells;
  }

  get reasons(): Reasons {
    return this.#reasons;
  }

  get notEvaluations(): number {
    return this.#notEvaluations;
  }

  get worst(): readonly Difference[] {
    return this.#worst.items;
  }

  get failures(): readonly FailedRun[] {
    return this.#failures.items;
  }

  /** Evaluations that differ. */
  get differences(): number {
    return Object.values(this.#cells).reduce((total, [, different]) => total + different, 0);
  }

  /** Evaluations that are same or different. */
  get rechecked(): number {
    return Object.values(this.#cells).reduce((total, [same, different]) => total + same + different, 0);
  }

  get notRecheckable(): number {
    return Object.values(this.#reasons).reduce(sum, 0);
  }

  /** Every selected evaluation. */
  get evaluated(): number {
    return this.rechecked + this.notRecheckable + this.#notEvaluations;
  }

  /** Nothing that was re-checked differs. A summary that re-checked nothing is the same: see the gate. */
  get same(): boolean {
    return this.differences === 0;
  }

  /** Every evaluation of every run was re-checked, or is none. */
  get complete(): boolean {
    return this.notRecheckable === 0 && this.#runs.failed === 0;
  }

  /** As of one report, over all of its runs. */
  get identity(): PolicyIdentity {
    if (this.rechecked === 0 || this.policyId === "" || this.#identity.unknown > 0) return "unknown";
    return this.#identity.changed > 0 ? "changed" : "unchanged";
  }

  state(): SummaryState {
    return {
      policyId: this.policyId,
      specSource: this.specSource,
      runs: { ...this.#runs },
      cells: this.#cells,
      reasons: { ...this.#reasons },
      notEvaluations: this.#notEvaluations,
      identity: { ...this.#identity },
      tools: this.tools.state(),
      principals: this.principals.state(),
      newAllows: this.newAllows.state(),
      worst: [...this.#worst.items],
      failures: [...this.#failures.items],
      policies: this.policies.state(),
      specs: this.specs.state(),
      notes: this.notes.state(),
    };
  }

  /** Counts one evaluation where it belongs to no group; answers what it adds to its groups, null for nothing. */
  #count(principal: string, run: string, evaluation: RecheckedEvaluation): Group | null {
    if (evaluation.result === "not_a_policy_evaluation") {
      this.#notEvaluations++;
      return null;
    }
    if (evaluation.result === "not_recheckable") {
      this.#reason(evaluation.reason ?? "undecodable", 1);
      return { cells: {}, notRecheckable: 1 };
    }
    const { policyId } = evaluation;
    this.policies.add(cut(policyId), 1);
    if (policyId === "") this.#identity.unknown++;
    else if (policyId !== this.policyId) this.#identity.changed++;
    const { recorded, rechecked } = transitionOf(evaluation);
    const differs = evaluation.result === "different";
    if (differs) this.#differs(cut(principal), cut(run), evaluation);
    return { cells: oneCell(recorded, rechecked, differs), notRecheckable: 0 };
  }

  #differs(principal: string, run: string, evaluation: RecheckedEvaluation): void {
    const { recorded, rechecked } = transitionOf(evaluation);
    const { seq, stepIndex } = evaluation;
    const tool = cut(evaluation.tool);
    const detail = cut(evaluation.detail === "" ? (evaluation.rechecked?.reason ?? "") : evaluation.detail);
    this.#worst.add({ principal, run, stepIndex, seq, tool, recorded, rechecked, detail });
    if (!isNewAllow(recorded, rechecked)) return;
    const allow: NewAllow = { recorded, principal, tool, count: 1, run, seq };
    this.newAllows.add(newAllowKey(allow), allow);
  }

  #reason(reason: string, count: number): void {
    this.#reasons[reason] = (this.#reasons[reason] ?? 0) + count;
  }
}
