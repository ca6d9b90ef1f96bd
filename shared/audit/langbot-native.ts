/**
 * The ledger rows of a run that was sent in the log's own kinds (docs/audit.md "Runs in the log's own kinds").
 *
 * @module
 */
import type { EntryView, FieldViews } from "../entry/view.ts";
import { formatTime } from "../time.ts";
import { missingOf, stringAt, textOf, valueAt } from "./fields.ts";
import type { Column, LedgerEvent, LedgerRow } from "./langbot-rows.ts";
import type { PyValue } from "./python-value.ts";

/** The kinds that are events of the ledger: LangBot's result types, and what its host writes between them. */
const EVENT_KINDS = new Set([
  "message.delta",
  "message.completed",
  "tool.call.started",
  "tool.call.completed",
  "state.updated",
  "action.requested",
  "run.completed",
  "run.failed",
  "steering.injected",
  "steering.dropped",
  "admin.request",
]);

/** Kinds that say that a run is over. */
export const ENDS: ReadonlySet<string> = new Set([
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.timeout",
]);

export function isLedgerEvent(kind: string): boolean {
  return EVENT_KINDS.has(kind);
}

/** What the sender keeps for himself is no diagnostic of the event. */
function isOwn(name: string): boolean {
  return name !== "extra" && !name.startsWith("imported.");
}

/**
 * The event of an entry. `id` names the call; where it is absent the call has no name. The sequence is the entry's.
 */
export function nativeEvent(entry: EntryView, id: string | undefined, sequence: number): LedgerEvent {
  const call = id === undefined ? {} : { call: id };
  const data = dataOf(entry, id);
  return { sequence, type: entry.kind, data, ...call };
}

function dataOf(entry: EntryView, id: string | undefined): Column {
  const isStart = entry.kind === "tool.call.started";
  const isCall = isStart || entry.kind === "tool.call.completed";
  const data = new Map<string, PyValue>();
  if (isCall && id !== undefined) data.set("tool_call_id", id);
  for (const fields of [entry.action, entry.outcome?.fields ?? new Map()] as readonly FieldViews[]) {
    for (const name of fields.keys()) {
      if (!isOwn(name) || (isCall && name === "tool_call_id")) continue;
      const missing = missingOf(fields, name);
      if (missing !== null) return { missing };
      data.set(nameOf(name, isCall), valueAt(fields, name) ?? null);
    }
  }
  if (entry.outcome !== null && !isStart && isCall) complete(data, entry.outcome.status);
  return { value: data };
}

/** LangBot's names of the fields of a call. */
function nameOf(name: string, isCall: boolean): string {
  if (isCall && name === "tool") return "tool_name";
  return isCall && name === "args" ? "parameters" : name;
}

/** A ledger knows a success by its result and a failure by its error; the log knows both by the status. */
function complete(data: Map<string, PyValue>, status: string): void {
  if (status === "success") {
    if ((data.get("result") ?? null) === null) data.set("result", new Map());
  } else if ((data.get("error") ?? null) === null) {
    data.set("error", status);
  }
}

/** A column of the row that cannot be read any more, and the field that it would be read from. */
export interface UnseenColumn {
  readonly entry: EntryView;
  readonly field: string;
  readonly column: string;
}

/** Gathers the row of a run from its entries. */
export class NativeRow {
  readonly #run: string;
  #created: EntryView | null = null;
  #status: EntryView | null = null;
  #runner: string | null = null;
  #ended = false;

  constructor(run: string) {
    this.#run = run;
  }

  add(entry: EntryView): void {
    if (entry.kind === "run.created") this.#created ??= withoutBulk(entry);
    else if (entry.kind === "run.status") this.#status = withoutBulk(entry);
    else if (entry.kind === "run.started") this.#runner ??= stringAt(entry.action, "runner_id") ?? null;
    else if (ENDS.has(entry.kind)) this.#ended = true;
  }

  /**
   * The row, and the columns whose fields are not there to be read. The run's status is what its host reported last;
   * where nobody did it is null: no event stands in for it.
   */
  row(): { readonly row: LedgerRow; readonly unseen: readonly UnseenColumn[] } {
    const created = this.#created?.action ?? new Map();
    const status = this.#status?.action ?? new Map();
    const missing = missingOf(created, "authorization");
    const hasStatus = missingOf(status, "status") === null;
    const reported = stringAt(status, "status") ?? null;
    // Another system's record, that an importer brought here: what it has no place for, nobody left out.
    const system = stringAt(created, "imported.system");
    const isForeign = system !== undefined && system !== "langbot";
    const unrecorded = {
      status: isForeign && hasStatus && (reported === null || reported === "unknown"),
      end: isForeign && !this.#ended,
      events: isForeign,
    };
    const row: LedgerRow = {
      run_id: this.#run,
      runner_id: stringAt(status, "runner_id") ?? this.#runner,
      ...(hasStatus && !unrecorded.status ? { status: reported } : {}),
      created_at: stringAt(status, "created_at") ?? timeOf(this.#created),
      finished_at: stringAt(status, "finished_at") ?? null,
      // A snapshot in LangBot's form.
      authorization:
        missing === null ? snapshotOf(textOf(created, "authorization"), system === "langbot") : { missing },
      ...(isForeign ? { unrecorded } : {}),
    };
    const unseen: UnseenColumn[] = [];
    if (this.#created !== null && missing !== null)
      unseen.push({ entry: this.#created, field: "authorization", column: "authorization_json" });
    if (this.#status !== null && !hasStatus)
      unseen.push({ entry: this.#status, field: "status", column: "status" });
    return { row, unseen };
  }
}

/** A column of LangBot's that is not there is NULL. Elsewhere nothing then says what the run may use. */
function snapshotOf(text: string | undefined, isLangBot: boolean): Column {
  if (text !== undefined) return { text };
  return isLangBot ? { text: "" } : { missing: "not-recorded" };
}

function timeOf(entry: EntryView | null): string | null {
  return entry === null ? null : formatTime(entry.occurred_at ?? entry.recorded_at);
}

/** The entry with the fields alone that a row is made of. */
function withoutBulk(entry: EntryView): EntryView {
  const kept = ["imported.system", "authorization", "status", "runner_id", "created_at", "finished_at"];
  return { ...entry, action: new Map([...entry.action].filter(([name]) => kept.includes(name))) };
}
