/**
 * Calls that a host folded into one entry (docs/host-calls.md): what such an entry says of them has to add up.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { checkRunAlone } from "../host/check-run.ts";
import { type FindingList, refOf } from "./finding.ts";

export class HostRunCheck {
  readonly #list: FindingList;

  constructor(list: FindingList) {
    this.#list = list;
  }

  /** Only the run's own entries: a folded run of calls is part of one. */
  add(entry: EntryView): void {
    if (entry.kind !== "host.run") return;
    const check = checkRunAlone(entry);
    if (check.verdict === "differs") this.#list.add("host_run_contradicts_itself", [refOf(entry)]);
    // A schema demands `calls`: what has none was erased, withheld or committed alone.
    if (check.verdict === "not-checkable" && check.why !== "no-calls" && check.why !== "not-a-call")
      this.#list.notChecked(refOf(entry), "action.calls", check.why);
  }
}
