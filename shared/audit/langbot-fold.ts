/**
 * From log entries back to the rows of a run ledger: the rows that `runseal import langbot` kept, as they were, or, of a
 * run in the log's own kinds, the rows that its entries amount to (docs/audit.md "From entries to rows").
 *
 * @module
 */
import type { EntryView, Missing } from "../entry/view.ts";
import { missingOf, objectAt, stringAt, wholeAt } from "./fields.ts";
import { isLedgerEvent, NativeRow, nativeEvent } from "./langbot-native.ts";
import { type LedgerEvent, type LedgerRow, type LedgerRun, ledgerEvent, ledgerRow } from "./langbot-rows.ts";
import { NumberRanges } from "./number-ranges.ts";
import type { PyValue } from "./python-value.ts";

/** Something that the audit needs and an entry does not show any more. */
export interface Unseen {
  readonly seq: number;
  readonly hash: string;
  /** The field: `action.args`. */
  readonly field: string;
  readonly why: Missing;
}

/** What takes the rows. */
export interface LedgerSink {
  event(event: LedgerEvent): void;
  row(row: LedgerRow): void;
}

/** Columns of `agent_run` that are content of more than a line are not kept while the run is read. */
const ROW_COLUMNS = ["run_id", "runner_id", "status", "created_at", "finished_at", "authorization_json"];
/** How many are named one by one. */
const MAX_UNSEEN = 1000;

/** Folds the entries of one run, in the order of the log, and hands each event on as soon as it is read. */
export class LedgerFold {
  readonly #sink: LedgerSink;
  readonly #native: NativeRow;
  readonly #columns = new Map<string, PyValue>();
  readonly #sequences = new NumberRanges<null>();
  readonly #unseen: Unseen[] = [];
  #unseenCount = 0;
  #place = 0;

  constructor(run: string, sink: LedgerSink) {
    this.#sink = sink;
    this.#native = new NativeRow(run);
  }

  /** What was not there to be read; at most 1,000 are listed, and `unseenCount` counts all. */
  get unseen(): readonly Unseen[] {
    return this.#unseen;
  }
  get unseenCount(): number {
    return this.#unseenCount;
  }

  add(entry: EntryView): void {
    this.#native.add(entry);
    if (stringAt(entry.action, "imported.system") === "langbot") this.#imported(entry);
    else if (isLedgerEvent(entry.kind))
      this.#emit(entry, nativeEvent(entry, entry.call ?? undefined, entry.seq));
  }

  /** Hands the row on; to be called once, after the last entry. */
  finish(): void {
    const { row, unseen } = this.#native.row();
    const columns = this.#columns;
    for (const { entry, field, column } of unseen)
      if (!columns.has(column))
        this.#miss(entry, `action.${field}`, missingOf(entry.action, field) ?? "erased");
    // What the imported rows hold goes before what the entries' own fields say.
    const imported = ledgerRow(columns);
    this.#sink.row({
      ...row,
      ...(columns.has("run_id") ? { run_id: imported.run_id } : {}),
      ...(columns.has("runner_id") ? { runner_id: imported.runner_id } : {}),
      ...(columns.has("status") ? { status: imported.status ?? null } : {}),
      ...(columns.has("created_at") ? { created_at: imported.created_at } : {}),
      ...(columns.has("finished_at") ? { finished_at: imported.finished_at } : {}),
      ...(columns.has("authorization_json") ? { authorization: imported.authorization } : {}),
    });
  }

  /** An entry of `runseal import langbot`: the row that it was made from is in `extra.langbot`. */
  #imported(entry: EntryView): void {
    const row = objectAt(entry.action, "extra")?.get("langbot");
    const missing = missingOf(entry.action, "extra");
    if (missing !== null) this.#miss(entry, "action.extra", missing);
    if (entry.kind === "run.created" || entry.kind === "run.status") {
      if (row instanceof Map) for (const name of ROW_COLUMNS) this.#setColumn(name, row.get(name));
      return;
    }
    const place = this.#place++;
    if (row instanceof Map) {
      this.#once(ledgerEvent(row, place));
      return;
    }
    // Erased, or too long for the log: the entry's own fields say nearly the same.
    const id =
      stringAt(entry.action, "tool_call_id") ?? (missing === null ? undefined : entry.call) ?? undefined;
    const event = nativeEvent(entry, id, wholeAt(entry.action, "imported.seq") ?? place);
    this.#once(missing === null ? event : { ...event, data: { missing } });
  }

  #setColumn(name: string, value: PyValue | undefined): void {
    if (value !== undefined) this.#columns.set(name, value);
  }

  /** A second row of the same run and sequence is not appended: the first one stays, as in LangBot. */
  #once(event: LedgerEvent): void {
    if (this.#sequences.add(event.sequence, null)) this.#sink.event(event);
  }

  #emit(entry: EntryView, event: LedgerEvent): void {
    if ("missing" in event.data) this.#missFields(entry);
    this.#sink.event(event);
  }

  #missFields(entry: EntryView): void {
    for (const [section, fields] of [
      ["action", entry.action],
      ["outcome", entry.outcome?.fields ?? new Map()],
    ] as const) {
      for (const name of fields.keys()) {
        const why = missingOf(fields, name);
        if (why !== null && name !== "extra" && !name.startsWith("imported."))
          this.#miss(entry, `${section}.${name}`, why);
      }
    }
  }

  #miss({ seq, hash }: EntryView, field: string, why: Missing): void {
    this.#unseenCount += 1;
    if (this.#unseen.length < MAX_UNSEEN) this.#unseen.push({ seq, hash, field, why });
  }
}

/** Takes the rows of one run as they come. */
class Collector implements LedgerSink {
  readonly events: LedgerEvent[] = [];
  current: LedgerRow | null = null;

  event(event: LedgerEvent): void {
    this.events.push(event);
  }
  row(row: LedgerRow): void {
    this.current = row;
  }
}

/** The rows of every run among the entries, in the order of the runs' first entries. Entries of no run are passed over. */
export function rowsFromEntries(entries: Iterable<EntryView>): LedgerRun[] {
  const runs = new Map<string, { readonly fold: LedgerFold; readonly rows: Collector }>();
  for (const entry of entries) {
    if (entry.run === null) continue;
    let run = runs.get(entry.run);
    if (run === undefined) {
      const rows = new Collector();
      run = { fold: new LedgerFold(entry.run, rows), rows };
      runs.set(entry.run, run);
    }
    run.fold.add(entry);
  }
  return [...runs.values()].flatMap(({ fold, rows }) => {
    fold.finish();
    return rows.current === null ? [] : [{ row: rows.current, events: rows.events }];
  });
}
