/**
 * Sums over the counters that a tenant's logs report, kept so that to read them costs the same however many logs there
 * are. The object named `service` keeps the same sums over the tenants. A report writes two rows: the log's counters,
 * and the sums; a third where the log has entries that D1 lacks.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";

/** What is summed: of one log, or of all logs of a tenant. Entries, unless said otherwise. */
const SUMMED = [
  "logs",
  "accepted",
  "persisted",
  "archived",
  "mirrored",
  "lost",
  "outbox_bytes",
  "behind",
  "full",
  "stopped",
  "conflicting",
] as const;

/** Counters by name; the last four, and `logs`, count logs. */
export type Counters = Readonly<Record<(typeof SUMMED)[number], number>>;

export interface CounterReport extends Counters {
  /** When the oldest entry that D1 lacks was recorded, milliseconds; null where D1 lacks none. */
  readonly oldest_ms: number | null;
}

export interface TotalCounters extends CounterReport {
  /** How many have reported. */
  readonly members: number;
  /** When the newest report came, milliseconds; null where none did. */
  readonly reported_ms: number | null;
  /** When the oldest report came of those whose entries D1 lacks, milliseconds. */
  readonly stalest_ms: number | null;
}

const COLUMNS = SUMMED.map((name) => `${name} INTEGER NOT NULL`).join(", ");
const SCHEMA = `
CREATE TABLE IF NOT EXISTS counters (
  member TEXT PRIMARY KEY, ${COLUMNS}, oldest_ms INTEGER, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS counters_oldest ON counters (oldest_ms, at_ms) WHERE oldest_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS totals (
  one INTEGER PRIMARY KEY CHECK (one = 1), members INTEGER NOT NULL, ${COLUMNS}, reported_ms INTEGER NOT NULL);
`;
const NAMES = SUMMED.join(", ");
const MARKS = SUMMED.map(() => "?").join(", ");

export class Totals {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /**
   * Takes a member's counters in place of those that it reported before. Must run inside a transaction.
   *
   * @param member a log's name within the tenant, or a tenant
   */
  report(member: string, report: CounterReport, nowMs: number): void {
    const before = firstRow(this.#sql, `SELECT ${NAMES} FROM counters WHERE member = ?`, member);
    this.#sql.exec(
      `INSERT INTO counters (member, ${NAMES}, oldest_ms, at_ms) VALUES (?, ${MARKS}, ?, ?)
       ON CONFLICT (member) DO UPDATE SET ${[...SUMMED, "oldest_ms", "at_ms"].map((name) => `${name} = excluded.${name}`).join(", ")}`,
      member,
      ...SUMMED.map((name) => report[name]),
      report.oldest_ms,
      nowMs,
    );
    this.#sql.exec(
      `INSERT INTO totals (one, members, ${NAMES}, reported_ms) VALUES (1, 1, ${MARKS}, ?)
       ON CONFLICT (one) DO UPDATE SET members = members + ?,
         ${SUMMED.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}, reported_ms = excluded.reported_ms`,
      ...SUMMED.map((name) => report[name] - Number(before?.[name] ?? 0)),
      nowMs,
      before === undefined ? 1 : 0,
    );
  }

  /** A log that will report no more: what it holds still counts, what is wrong with it does not. */
  retire(member: string, nowMs: number): void {
    const row = firstRow(this.#sql, `SELECT ${NAMES} FROM counters WHERE member = ?`, member);
    if (row === undefined) return;
    this.report(
      member,
      { ...countersOf(row), behind: 0, full: 0, stopped: 0, conflicting: 0, oldest_ms: null },
      nowMs,
    );
  }

  read(): TotalCounters {
    const row = firstRow(this.#sql, "SELECT * FROM totals");
    const behind = firstRow(
      this.#sql,
      "SELECT min(oldest_ms) AS oldest_ms, min(at_ms) AS stalest_ms FROM counters WHERE oldest_ms IS NOT NULL",
    );
    return {
      ...countersOf(row ?? {}),
      members: Number(row?.members ?? 0),
      oldest_ms: numberOrNull(behind?.oldest_ms),
      stalest_ms: numberOrNull(behind?.stalest_ms),
      reported_ms: numberOrNull(row?.reported_ms),
    };
  }
}

function countersOf(row: Row): Counters {
  return Object.fromEntries(SUMMED.map((name) => [name, Number(row[name] ?? 0)])) as unknown as Counters;
}

function numberOrNull(value: SqlStorageValue | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}
