/**
 * How far a refill has got, in the log's storage.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { addColumn, blob, bytesOf, firstRow } from "../tile-store/sql.ts";

export interface RefillState {
  /** Size of the head that the log had when it began. */
  readonly base: number;
  /** Entries that are there now, behind that head. */
  readonly size: number;
  readonly lastHash: Uint8Array;
  readonly recordedAt: bigint;
  readonly epoch: number;
  /** See `IdIndex.futureUntil`. */
  readonly futureUntil: number;
  /** `RightEdge.toBytes()`. */
  readonly edge: Uint8Array;
  /** Entries that came without their values. */
  readonly withoutContent: number;
  /** The signed head that it was begun for: it counts though it is gone from where it was found. */
  readonly note: string;
}

export class RefillStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS refill (
      one INTEGER PRIMARY KEY CHECK (one = 1), base INTEGER NOT NULL, size INTEGER NOT NULL, last_hash BLOB NOT NULL,
      recorded_at TEXT NOT NULL, epoch INTEGER NOT NULL, future_until INTEGER NOT NULL, edge BLOB NOT NULL,
      without_content INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')`);
    addColumn(sql, "refill", "note", "TEXT NOT NULL DEFAULT ''");
  }

  /** What was begun from a head of this size; null where nothing was. */
  read(base: number): RefillState | null {
    const row: Row | undefined = firstRow(this.#sql, "SELECT * FROM refill WHERE base = ?", base);
    if (row === undefined) return null;
    return {
      base,
      size: Number(row.size),
      lastHash: bytesOf(row.last_hash),
      recordedAt: BigInt(String(row.recorded_at)),
      epoch: Number(row.epoch),
      futureUntil: Number(row.future_until),
      edge: bytesOf(row.edge),
      withoutContent: Number(row.without_content),
      note: String(row.note),
    };
  }

  write(state: RefillState): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO refill VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      state.base,
      state.size,
      blob(state.lastHash),
      String(state.recordedAt),
      state.epoch,
      state.futureUntil,
      blob(state.edge),
      state.withoutContent,
      state.note,
    );
  }

  clear(): void {
    this.#sql.exec("DELETE FROM refill");
  }
}
