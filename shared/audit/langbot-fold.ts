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
import { decodePythonJson } from "./python-json.ts";
import { type PyValue, pyStr } from "./python-value.ts";

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
/** What the ids of imported entries begin with (cli/import/names.ts). */
const IMPORTED_ID = "imp:";
/** How many are named one by one. */
const MAX_UNSEEN = 1000;

/** Folds the entries of one run, in the order of the log, and hands each event on as soon as it is read. */
export class LedgerFold {
  readonly #sink: LedgerSink;
  readonly #native: NativeRow;
  readonly #columns = new Map<string, PyValue>();
  readonly #sequences = new NumberRanges<null>();
  readonly #unseen: Unseen[] = [];
  /** Events that are there and do not show what they are: they wait until all that can tell was read. */
  readonly #hidden: LedgerEvent[] = [];
  readonly #ledgerIds = new Map<string, string>();
  #unseenCount = 0;
  #mapped = 0;
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

  /** Imported entries that do not hold the row that they were made from, so that their own fields were read. */
  get mapped(): number {
    return this.#mapped;
  }

  add(entry: EntryView): void {
    this.#native.add(entry);
    const { kind, call, id } = entry;
    if (stringAt(entry.action, "imported.system") === "langbot") {
      this.#imported(entry);
    } else if (isLedgerEvent(kind)) {
      const event = nativeEvent(entry, call ?? undefined, entry.seq);
      if ("missing" in event.data) this.#missFields(entry);
      // Erased, an imported entry does not show any more what its sequence and its call's id were.
      if (missingOf(entry.action, "imported.system") !== null && id.startsWith(IMPORTED_ID))
        this.#hidden.push({ ...event, sequence: Number.NaN });
      else this.#sink.event(event);
    }
  }

  /** Hands the row on; to be called once, after the last entry. */
  finish(): void {
    for (const { call: name, ...event } of this.#hidden) {
      const call = name === undefined ? "" : (this.#ledgerIds.get(name) ?? name);
      this.#sink.event(call === "" ? event : { ...event, call });
    }
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
    else if (!(row instanceof Map)) this.#mapped += 1;
    if (entry.kind === "run.created" || entry.kind === "run.status") {
      if (row instanceof Map) for (const name of ROW_COLUMNS) this.#setColumn(name, row.get(name));
      return;
    }
    const place = this.#place++;
    if (row instanceof Map) {
      const event = ledgerEvent(row, place);
      this.#remember(entry, event);
      this.#once(event);
    } else if (missing === null) {
      // The row was too long for the log: the entry's own fields say nearly the same.
      const id = stringAt(entry.action, "tool_call_id");
      this.#once(nativeEvent(entry, id, wholeAt(entry.action, "imported.seq") ?? place));
    } else {
      const call = entry.call === null ? {} : { call: entry.call };
      this.#hidden.push({ sequence: Number.NaN, type: entry.kind, data: { missing }, ...call });
    }
  }

  /** The call's id in the ledger, by its name in the log: an end that is erased has only the latter. */
  #remember({ call, action }: EntryView, { data }: LedgerEvent): void {
    if (call === null) return;
    const id = stringAt(action, "tool_call_id") ?? ("text" in data ? ledgerId(data.text) : undefined);
    if (id !== undefined) this.#ledgerIds.set(call, id);
  }

  #setColumn(name: string, value: PyValue | undefined): void {
    if (value !== undefined) this.#columns.set(name, value);
  }

  /** A second row of the same run and sequence is not appended: the first one stays, as in LangBot. */
  #once(event: LedgerEvent): void {
    if (this.#sequences.add(event.sequence, null)) this.#sink.event(event);
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

/** An id that is no text is the text that Python makes of it: the importer keeps it in the row alone. */
function ledgerId(text: string): string | undefined {
  try {
    const decoded = decodePythonJson(text);
    const id = decoded.ok && decoded.value instanceof Map ? decoded.value.get("tool_call_id") : undefined;
    return id === undefined ? undefined : pyStr(id);
  } catch {
    return undefined;
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
