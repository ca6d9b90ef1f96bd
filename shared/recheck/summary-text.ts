/**
 * The text form of a summary, for a terminal: what is newly allowed first, and never cut from it.
 *
 * @module
 */
import type { GroupsJson, SummaryJson } from "./summary-json.ts";
import { shown } from "./text.ts";

/** Differences that the text shows one by one. */
const SHOWN_DIFFERENCES = 50;
const SHOWN_GROUPS = 20;

/** The summary as lines, each ended by a newline. */
export function summaryText(json: SummaryJson): string {
  const { runs, totals, new_allows: allows, worst, failed_runs: failed } = json;
  const identity =
    json.identity === "unknown"
      ? "policy identity unknown"
      : `policy ${json.identity}: "${shown(json.policy_id)}"`;
  const lines = [
    `${totals.different} of ${json.rechecked} re-checked evaluations differ in ${runs.rechecked} runs; ${identity}; ` +
      `${json.spec_source} specs`,
    ...allows.groups.map(
      ({ recorded, principal, tool, count, run, seq }) =>
        `NEW ALLOW ${recorded} -> allow ${shown(principal)} ${shown(tool) || "-"}: ${count}, ` +
        `the first in run ${shown(run)} at seq ${seq}`,
    ),
    ...(allows.cut === 0
      ? []
      : [`NEW ALLOW and ${allows.cut} more evaluations, of further principals and tools`]),
  ];
  for (const { recorded, rechecked, same, different } of json.transitions) {
    if (different > 0 || (recorded === "deny" && rechecked === "allow")) {
      lines.push(`changed   ${recorded} -> ${rechecked}: ${different}`);
    }
    if (same > 0) lines.push(`same      ${recorded}: ${same}`);
  }
  const differences = worst.differences.slice(0, SHOWN_DIFFERENCES);
  for (const { principal, run, step_index, seq, tool, recorded, rechecked, detail } of differences) {
    const why = detail === undefined ? "" : `: ${shown(detail)}`;
    const place = `${shown(principal)} run ${shown(run)} step ${step_index} seq ${seq} ${shown(tool) || "-"}`;
    lines.push(`DIFFERENT ${place}: ${recorded} -> ${rechecked}${why}`);
  }
  const unlisted = totals.different - differences.length;
  if (unlisted > 0) lines.push(`DIFFERENT and ${unlisted} more`);
  lines.push(...groupLines("tool", json.by_tool), ...groupLines("principal", json.by_principal));
  for (const [reason, count] of Object.entries(totals.not_recheckable.by_reason)) {
    lines.push(`skipped   ${count} not re-checkable: ${reason}`);
  }
  if (totals.not_a_policy_evaluation > 0) {
    lines.push(`skipped   ${totals.not_a_policy_evaluation} not a policy evaluation`);
  }
  for (const { principal, run, code } of failed.runs) {
    lines.push(`FAILED    ${shown(principal)} run ${shown(run)}: ${shown(code)}`);
  }
  if (failed.cut > 0) lines.push(`FAILED    and ${failed.cut} more runs`);
  if (runs.without_evaluations > 0) {
    lines.push(`note: ${runs.without_evaluations} run(s) have no selected policy evaluation`);
  }
  for (const [note, count] of Object.entries(json.notes.counts))
    lines.push(`note: ${shown(note)} (${count} runs)`);
  return `${lines.join("\n")}\n`;
}

/** The groups in which something differs. */
function groupLines(what: string, { groups, others }: GroupsJson): string[] {
  const changed = groups.filter(({ different }) => different > 0);
  const lines = changed.slice(0, SHOWN_GROUPS).map(({ name, same, different, transitions }) => {
    const moves = transitions
      .filter((cell) => cell.different > 0)
      .map((cell) => `${cell.recorded} -> ${cell.rechecked} ${cell.different}`);
    return `${what} ${shown(name) || "-"}: ${different} of ${same + different} differ (${moves.join(", ")})`;
  });
  const rest = changed.length - lines.length;
  if (rest > 0) lines.push(`${what}: and ${rest} more that differ`);
  if (others !== null && others.different > 0) {
    lines.push(
      `${what}: ${others.different} of ${others.same + others.different} differ in those not listed`,
    );
  }
  return lines;
}
