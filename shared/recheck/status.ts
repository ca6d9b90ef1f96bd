/**
 * How a run's status is read from its entries (docs/recheck.md, "The run's status").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { detached, FieldReader } from "./fields.ts";
import { isTerminal, WAITING_FOR_APPROVAL } from "./model.ts";

const SAID_BY_KIND: ReadonlyMap<string, string> = new Map([
  ["run.created", "RUNNING"],
  ["run.queued", "RUNNING"],
  ["run.claimed", "RUNNING"],
  ["run.started", "RUNNING"],
  ["run.resumed", "RUNNING"],
  ["run.completed", "COMPLETED"],
  ["run.failed", "FAILED"],
  ["run.cancelled", "CANCELLED"],
  ["run.timeout", "TIMEOUT"],
]);

/** Characters of a status that are kept: a host's word for a state, not a text. */
const MAX_STATUS = 64;

/** The status after the entry, where it was `before` it. */
export function statusAfter(before: string, entry: EntryView): string {
  const said = SAID_BY_KIND.get(entry.kind);
  if (said !== undefined) return said;
  switch (entry.kind) {
    case "run.status": {
      const status = new FieldReader(entry.action).string("status");
      return status === "" ? before : detached(status.slice(0, MAX_STATUS).toUpperCase());
    }
    case "approval.requested":
      return isTerminal(before) ? before : WAITING_FOR_APPROVAL;
    case "step.started":
    case "tool.call.started":
      return isTerminal(before) ? before : "RUNNING";
    default:
      return before;
  }
}
