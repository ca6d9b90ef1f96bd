/**
 * The SQLite storage of the witness: its key, and the last head of each log that it cosigned. docs/storage.md describes
 * each table.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { firstRow } from "../tile-store/sql.ts";
import type { WitnessedLogView } from "./types.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS witness_key (one INTEGER PRIMARY KEY CHECK (one = 1), wrapped TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS witnessed_logs (origin TEXT PRIMARY KEY, vkeys TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cosigned (
  origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root TEXT NOT NULL, checkpoint TEXT NOT NULL,
  cosigned_at_ms INTEGER NOT NULL) WITHOUT ROWID;
`;

export type Cosigned = NonNullable<WitnessedLogView["latest"]>;

export class WitnessedStorage {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#sql.exec(SCHEMA);
  }

  /** Runs the closure as one transaction; what it throws rolls everything back. */
  transaction<T>(closure: () => T): T {
    return this.#storage.transactionSync(closure);
  }

  key(): string | null {
    const row = firstRow(this.#sql, "SELECT wrapped FROM witness_key");
    return row === undefined ? null : String(row.wrapped);
  }

  /** Keeps the first that is given. */
  setKey(wrapped: string): void {
    this.#sql.exec("INSERT INTO witness_key VALUES (1, ?) ON CONFLICT DO NOTHING", wrapped);
  }

  /** The log's keys; none where it is not watched. */
  vkeys(origin: string): string[] {
    const row = firstRow(this.#sql, "SELECT vkeys FROM witnessed_logs WHERE origin = ?", origin);
    return row === undefined ? [] : (JSON.parse(String(row.vkeys)) as string[]);
  }

  setVkeys(origin: string, vkeys: readonly string[]): void {
    this.#sql.exec(
      "INSERT INTO witnessed_logs VALUES (?, ?) ON CONFLICT (origin) DO UPDATE SET vkeys = excluded.vkeys",
      origin,
      JSON.stringify(vkeys),
    );
  }

  /** The last head that was cosigned. It outlives the log's configuration: to cosign anew from 0 would be a fork. */
  latest(origin: string): Cosigned | null {
    const row = firstRow(this.#sql, "SELECT * FROM cosigned WHERE origin = ?", origin);
    return row === undefined ? null : cosignedOf(row);
  }

  setLatest(origin: string, { size, root, checkpoint, cosignedAtMs }: Cosigned): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO cosigned VALUES (?, ?, ?, ?, ?)",
      origin,
      size,
      root,
      checkpoint,
      cosignedAtMs,
    );
  }

  logs(): WitnessedLogView[] {
    const rows = this.#sql.exec<Row>("SELECT origin, vkeys FROM witnessed_logs ORDER BY origin");
    return [...rows].map(({ origin, vkeys }) => ({
      origin: String(origin),
      vkeys: JSON.parse(String(vkeys)) as string[],
      latest: this.latest(String(origin)),
    }));
  }
}

function cosignedOf(row: Row): Cosigned {
  return {
    size: Number(row.size),
    root: String(row.root),
    checkpoint: String(row.checkpoint),
    cosignedAtMs: Number(row.cosigned_at_ms),
  };
}
