/**
 * The two tables of LangBot's run ledger as the audit reads them, and reading them from rows
 * `{run: {...}, events: [...]}`.
 *
 * @module
 */
import type { Missing } from "../entry/view.ts";
import { decodePythonJson } from "./python-json.ts";
import { type PyValue, pyStr } from "./python-value.ts";

/** `not-recorded`: whoever made the record does not write it down; its absence says nothing of the run. */
export type Absent = Missing | "not-recorded";

/** A column of JSON: its text as it is stored, a value that is decoded already, or why there is neither. */
export type Column = { readonly text: string } | { readonly value: PyValue } | { readonly missing: Absent };

/** What the audit reads of a row of `agent_run`. Texts are null where the column is NULL. */
export interface LedgerRow {
  readonly run_id: string;
  readonly runner_id: string | null;
  /** The status as the host states it; absent where it was erased or withheld, or is never written down. */
  readonly status?: string | null;
  readonly created_at: string | null;
  readonly finished_at: string | null;
  readonly authorization: Column;
  /** What the record does not hold because its format has no place for it (docs/audit.md "What real runs lack"). */
  readonly unrecorded?: UnrecordedFacts;
}

export interface UnrecordedFacts {
  /** How the run stands, as its host sees it. */
  readonly status: boolean;
  /** Whether and how it ended: the record just stops. */
  readonly end: boolean;
  /** Events of a ledger: the record may hold others alone. */
  readonly events: boolean;
}

/** What the audit reads of a row of `agent_run_event`. */
export interface LedgerEvent {
  /** NaN where `data` is missing and the sequence with it: nothing is concluded from its place. */
  readonly sequence: number;
  readonly type: string;
  readonly data: Column;
  /** Names the call where `data` is missing. */
  readonly call?: string;
}

/** A run as its rows. */
export interface LedgerRun {
  readonly row: LedgerRow;
  /** In any order: the audit goes by sequence. */
  readonly events: readonly LedgerEvent[];
}

/** The columns of a row, as decoded JSON. */
export type Columns = ReadonlyMap<string, PyValue>;

/** The run in a decoded `{run, events}`; undefined where it holds no row of a run. */
export function ledgerRun(rows: PyValue): LedgerRun | undefined {
  const run = rows instanceof Map ? rows.get("run") : undefined;
  const events = rows instanceof Map ? rows.get("events") : undefined;
  if (!(run instanceof Map)) return undefined;
  return {
    row: ledgerRow(run),
    events: Array.isArray(events)
      ? events.flatMap((event, place) => (event instanceof Map ? [ledgerEvent(event, place)] : []))
      : [],
  };
}

/** The runs of a JSON text: one `{run, events}`, or an array of them. Throws where the text is no JSON. */
export function ledgerRuns(text: string): LedgerRun[] {
  const decoded = decodePythonJson(text);
  if (!decoded.ok) throw new SyntaxError(decoded.reason);
  const all = Array.isArray(decoded.value) ? decoded.value : [decoded.value];
  return all.flatMap((rows) => ledgerRun(rows) ?? []);
}

/** The row of a run from its columns. */
export function ledgerRow(columns: Columns): LedgerRow {
  return {
    run_id: pyStr(columns.get("run_id") ?? null),
    runner_id: textOf(columns.get("runner_id")),
    status: textOf(columns.get("status")),
    created_at: textOf(columns.get("created_at")),
    finished_at: textOf(columns.get("finished_at")),
    authorization: jsonColumn(columns.get("authorization_json")),
  };
}

/** The row of an event; `place` is its sequence where it has none of its own. */
export function ledgerEvent(columns: Columns, place: number): LedgerEvent {
  const sequence = columns.get("sequence");
  return {
    sequence: typeof sequence === "bigint" ? Number(sequence) : place,
    type: pyStr(columns.get("type") ?? null),
    data: jsonColumn(columns.get("data_json")),
  };
}

/** A text is the column's; anything else was decoded by whoever wrote the rows. */
export function jsonColumn(value: PyValue | undefined): Column {
  return typeof value === "string" ? { text: value } : { value: value ?? null };
}

function textOf(value: PyValue | undefined): string | null {
  return value === undefined || value === null ? null : pyStr(value);
}
