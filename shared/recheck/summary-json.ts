/**
 * The JSON form of a summary: what is worst comes first, and whatever is cut is counted.
 *
 * @module
 */

import type { RecheckSummary } from "./summary.ts";
import type { BoundedGroups, GroupsState } from "./summary-bounded.ts";
import { compareText } from "./summary-bounded.ts";
import type { Cell, Cells } from "./summary-cells.ts";
import { cellsOf, differing, isNewAllow, severityOf } from "./summary-cells.ts";
import type { FailedRun, Group, NewAllow } from "./summary-parts.ts";
import { addGroups, SUMMARY_LIMITS } from "./summary-parts.ts";

export interface GroupJson {
  readonly name: string;
  readonly same: number;
  readonly different: number;
  readonly not_recheckable: number;
  readonly transitions: readonly Cell[];
}

/** Groups, worst first. `others` sums up those that are not listed; null where all are. */
export interface GroupsJson {
  readonly groups: readonly GroupJson[];
  readonly others: Omit<GroupJson, "name"> | null;
}

export interface CountsJson {
  readonly counts: Readonly<Record<string, number>>;
  /** Sum of those that are not listed. */
  readonly others: number;
}

export interface SummaryJson {
  readonly policy_id: string;
  readonly identity: string;
  readonly spec_source: string;
  readonly runs: {
    readonly rechecked: number;
    readonly without_evaluations: number;
    readonly failed: number;
  };
  readonly totals: {
    readonly evaluated: number;
    readonly same: number;
    readonly different: number;
    readonly not_a_policy_evaluation: number;
    readonly not_recheckable: {
      readonly total: number;
      readonly by_reason: Readonly<Record<string, number>>;
    };
  };
  readonly transitions: readonly Cell[];
  readonly new_allows: {
    /** Evaluations that were not allowed, and are now. */
    readonly total: number;
    readonly groups: readonly NewAllow[];
    /** Those of `total` that are in no listed group. */
    readonly cut: number;
  };
  readonly worst: {
    readonly differences: readonly {
      readonly principal: string;
      readonly run: string;
      readonly step_index: number;
      readonly seq: number;
      readonly tool: string;
      readonly recorded: string;
      readonly rechecked: string;
      readonly detail?: string;
    }[];
    readonly cut: number;
  };
  readonly by_tool: GroupsJson;
  readonly by_principal: GroupsJson;
  readonly failed_runs: { readonly runs: readonly FailedRun[]; readonly cut: number };
  readonly recorded_policies: CountsJson;
  readonly specs: { readonly hashes: readonly string[]; readonly cut: boolean };
  readonly notes: CountsJson;
  readonly same: boolean;
  readonly differences: number;
  readonly rechecked: number;
  readonly not_recheckable: number;
  readonly complete: boolean;
}

/** The summary as it is answered and stored. */
export function summaryJson(summary: RecheckSummary): SummaryJson {
  const { differences, rechecked, notRecheckable, worst, failures } = summary;
  const newAllows = differing(summary.cells, isNewAllow);
  const groups = newAllowsOf(summary);
  const listed = groups.reduce((total, { count }) => total + count, 0);
  return {
    policy_id: summary.policyId,
    identity: summary.identity,
    spec_source: summary.specSource,
    runs: {
      rechecked: summary.runs.rechecked,
      without_evaluations: summary.runs.without,
      failed: summary.runs.failed,
    },
    totals: {
      evaluated: summary.evaluated,
      same: rechecked - differences,
      different: differences,
      not_a_policy_evaluation: summary.notEvaluations,
      not_recheckable: { total: notRecheckable, by_reason: sorted(Object.entries(summary.reasons)) },
    },
    transitions: transitionsOf(summary),
    new_allows: { total: newAllows, groups, cut: newAllows - listed },
    worst: {
      differences: worst.map(({ stepIndex, detail, principal, run, ...rest }) => ({
        principal,
        run,
        step_index: stepIndex,
        ...rest,
        ...(detail === "" ? {} : { detail }),
      })),
      cut: differences - worst.length,
    },
    by_tool: groupsOf(summary.tools),
    by_principal: groupsOf(summary.principals),
    failed_runs: { runs: failures, cut: summary.runs.failed - failures.length },
    recorded_policies: countsOf(summary.policies.state()),
    specs: { hashes: summary.specs.entries().map(([hash]) => hash), cut: summary.specs.beyond !== null },
    notes: countsOf(summary.notes.state()),
    same: summary.same,
    differences,
    rechecked,
    not_recheckable: notRecheckable,
    complete: summary.complete,
  };
}

/** The matrix, worst first; deny to allow is in it even where it is zero. */
export function transitionsOf(summary: RecheckSummary): Cell[] {
  const cells: Cells =
    summary.cells["deny>allow"] === undefined ? { ...summary.cells, "deny>allow": [0, 0] } : summary.cells;
  return cellsOf(cells);
}

/** What is newly allowed, worst first. */
export function newAllowsOf(summary: RecheckSummary): NewAllow[] {
  return summary.newAllows
    .entries()
    .map(([, allow]) => allow)
    .sort(
      (a, b) =>
        severityOf(a.recorded, "allow") - severityOf(b.recorded, "allow") ||
        b.count - a.count ||
        compareText(a.principal, b.principal) ||
        compareText(a.tool, b.tool),
    );
}

/** Groups worst first, cut to what a report lists: none that has a newly allowed call is cut. */
export function groupsOf(groups: BoundedGroups<Group>): GroupsJson {
  const all = groups.entries().map(([name, group]) => ({ group, json: { name, ...groupJson(group) } }));
  all.sort((a, b) => compareGroups(a.group, b.group) || compareText(a.json.name, b.json.name));
  const shown = all.filter(
    ({ group }, index) => index < SUMMARY_LIMITS.shownGroups || differing(group.cells, isNewAllow) > 0,
  );
  const rest = all.filter((one) => !shown.includes(one)).map(({ group }) => group);
  if (groups.beyond !== null) rest.push(groups.beyond);
  const others = rest.length === 0 ? null : groupJson(rest.reduce(addGroups));
  return { groups: shown.map(({ json }) => json), others };
}

function groupJson({ cells, notRecheckable }: Group): Omit<GroupJson, "name"> {
  const transitions = cellsOf(cells);
  const count = (side: "same" | "different") => transitions.reduce((total, cell) => total + cell[side], 0);
  return { same: count("same"), different: count("different"), not_recheckable: notRecheckable, transitions };
}

/** By the counts of their transitions, the worst transition first. */
function compareGroups(a: Group, b: Group): number {
  for (let severity = 0; severity <= 6; severity++) {
    const count = (group: Group) => differing(group.cells, (...cell) => severityOf(...cell) === severity);
    const difference = count(b) - count(a);
    if (difference !== 0) return difference;
  }
  return b.notRecheckable - a.notRecheckable;
}

function countsOf({ groups, beyond }: GroupsState<number>): CountsJson {
  return { counts: sorted(groups), others: beyond ?? 0 };
}

/** An object whose keys are in order; a key may be `__proto__`. */
function sorted(entries: readonly (readonly [string, number | undefined])[]): Record<string, number> {
  const present = entries.filter((entry): entry is readonly [string, number] => entry[1] !== undefined);
  return Object.fromEntries(present.toSorted(([a], [b]) => compareText(a, b)));
}
