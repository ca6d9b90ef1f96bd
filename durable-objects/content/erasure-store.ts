/**
 * The erasures of a log, in its SQLite storage: each is durable before anything of it is done, so that none is forgotten
 * half done, and stays there, so that it is done again in a D1 that was set back.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";
import type { EntryPlace, ErasureReport, ErasureRequest } from "./erasure-types.ts";
import { ERASURE_STEPS } from "./erasure-types.ts";

/** `state` counts the steps that are done; `next` is the place in the request's entries up to which the first one is. */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS erasures (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, request TEXT NOT NULL, state INTEGER NOT NULL, next INTEGER NOT NULL,
  entries INTEGER NOT NULL, recoverable_until TEXT, recorded TEXT);
CREATE INDEX IF NOT EXISTS erasures_open ON erasures (state) WHERE state < 3;
`;

const OPEN_STATES = "state < 3";

export interface StoredErasure extends ErasureReport {
  readonly request: ErasureRequest;
  readonly next: number;
}

export class ErasureStore {
  readonly #sql: SqlStorage;
  #fallBacks = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sql.exec(SCHEMA);
  }

  /** Stores a request, once. One that was done is done again in D1, which may have been set back. */
  begin(request: ErasureRequest): void {
    this.#sql.exec(
      `INSERT INTO erasures (id, request, state, next, entries) VALUES (?, ?, 0, 0, 0)
       ON CONFLICT (id) DO UPDATE SET state = min(state, 1)`,
      request.id,
      JSON.stringify(request),
    );
  }

  get(id: string): StoredErasure | null {
    const row = firstRow(this.#sql, "SELECT * FROM erasures WHERE id = ?", id);
    return row === undefined ? null : erasureOf(row);
  }

  /** Whether something is left to do. */
  get isOpen(): boolean {
    return firstRow(this.#sql, `SELECT 1 AS one FROM erasures WHERE ${OPEN_STATES} LIMIT 1`) !== undefined;
  }

  /** Ids of the erasures with something left to do, in the order in which they were asked for. */
  open(): string[] {
    const rows = this.#sql.exec<Row>(`SELECT id FROM erasures WHERE ${OPEN_STATES} ORDER BY n`);
    return [...rows].map((row) => String(row.id));
  }

  /** Notes how far the first step is: in the transaction of what it did. */
  erased(id: string, next: number, entries: number, done: boolean): void {
    this.#sql.exec(
      "UPDATE erasures SET next = ?, entries = entries + ?, state = ? WHERE id = ?",
      next,
      entries,
      done ? 1 : 0,
      id,
    );
  }

  indexed(id: string, recoverableUntil: string): void {
    this.#sql.exec(
      "UPDATE erasures SET state = 2, recoverable_until = coalesce(recoverable_until, ?) WHERE id = ?",
      recoverableUntil,
      id,
    );
  }

  recorded(id: string, place: EntryPlace): void {
    this.#sql.exec("UPDATE erasures SET state = 3, recorded = ? WHERE id = ?", JSON.stringify(place), id);
  }

  /** How often D1 went backwards since the object started. */
  get fallBacks(): number {
    return this.#fallBacks;
  }

  /** D1 went backwards: what was erased there may be back. */
  indexFellBack(): void {
    this.#fallBacks += 1;
    this.#sql.exec("UPDATE erasures SET state = 1 WHERE state > 1");
  }
}

function erasureOf(row: Row): StoredErasure {
  const request = JSON.parse(String(row.request)) as ErasureRequest;
  return {
    id: request.id,
    request,
    next: Number(row.next),
    entries: Number(row.entries),
    pending: ERASURE_STEPS.slice(Number(row.state)),
    recoverableUntil: typeof row.recoverable_until === "string" ? row.recoverable_until : null,
    requested: request.requested,
    recorded: typeof row.recorded === "string" ? (JSON.parse(row.recorded) as EntryPlace) : null,
  };
}
