/**
 * The SQLite storage of one log of heads. docs/storage.md describes each table.
 *
 * @module
 */
import type { Row } from "../tile-store/sql.ts";
import { blob, bytesOf, firstRow } from "../tile-store/sql.ts";
import { TileTable } from "../tile-store/tile-table.ts";
import type { HeadAlarm, ReportedHead } from "./types.ts";

/** Everything that changes with a batch: one row. */
export interface HeadLogState {
  readonly size: number;
  /** `RightEdge.toBytes`. */
  readonly edge: Uint8Array;
  readonly checkpoint: string;
  /** Public key of the signer, hex. */
  readonly key: string;
  /** Of the signer. */
  readonly epoch: number;
  /** Lists of heads so far. */
  readonly batch: number;
  /** Time of the last list, nanoseconds. */
  readonly time: bigint;
  /** Epoch of the last registry record that is a leaf; -1 for none. */
  readonly recordEpoch: number;
  /** Every report up to this number is listed. */
  readonly listedReport: number;
  /** Milliseconds since the epoch; 0 for never. */
  readonly signedAtMs: number;
  readonly fullAtMs: number;
  /** Pause before the next batch while there is news. */
  readonly intervalMs: number;
}

/** A head as it was reported last. */
export interface StoredReport extends ReportedHead {
  /** Reports are numbered from 1. */
  readonly report: number;
  readonly reportedAtMs: number;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS registry (one INTEGER PRIMARY KEY CHECK (one = 1), registry_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log_keys (public_key TEXT PRIMARY KEY, epoch INTEGER NOT NULL, wrapped TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS state (
  one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, edge BLOB NOT NULL, checkpoint TEXT NOT NULL,
  key TEXT NOT NULL, epoch INTEGER NOT NULL, batch INTEGER NOT NULL, time TEXT NOT NULL,
  record_epoch INTEGER NOT NULL, listed_report INTEGER NOT NULL, signed_at_ms INTEGER NOT NULL,
  full_at_ms INTEGER NOT NULL, interval_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS leaves (leaf_index INTEGER PRIMARY KEY, leaf BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS heads (
  log_id TEXT PRIMARY KEY, name TEXT NOT NULL, generation INTEGER NOT NULL, size INTEGER NOT NULL, root TEXT NOT NULL,
  epoch INTEGER NOT NULL, report INTEGER NOT NULL, reported_at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS progress (
  one INTEGER PRIMARY KEY CHECK (one = 1), archived_seq INTEGER NOT NULL, mirrored_size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS alarms (
  name TEXT NOT NULL, log_id TEXT NOT NULL, detail TEXT NOT NULL, at_ms INTEGER NOT NULL,
  PRIMARY KEY (name, log_id)) WITHOUT ROWID;
`;

function reportOf(row: Row): StoredReport {
  return {
    logId: String(row.log_id),
    name: String(row.name),
    generation: Number(row.generation),
    size: Number(row.size),
    root: String(row.root),
    epoch: Number(row.epoch),
    report: Number(row.report),
    reportedAtMs: Number(row.reported_at_ms),
  };
}

export class HeadStorage {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly tiles: TileTable;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#sql.exec(SCHEMA);
    this.tiles = new TileTable(this.#sql);
  }

  /** Runs the closure as one transaction; what it throws rolls everything back. */
  transaction<T>(closure: () => T): T {
    return this.#storage.transactionSync(closure);
  }

  identity(): string | null {
    const row = firstRow(this.#sql, "SELECT value FROM identity");
    return row === undefined ? null : String(row.value);
  }

  setIdentity(value: string): void {
    this.#sql.exec("INSERT INTO identity VALUES (1, ?) ON CONFLICT DO NOTHING", value);
  }

  /** Hex. */
  registryId(): string | null {
    const row = firstRow(this.#sql, "SELECT registry_id FROM registry");
    return row === undefined ? null : String(row.registry_id);
  }

  setRegistryId(registryId: string): void {
    this.#sql.exec("INSERT INTO registry VALUES (1, ?) ON CONFLICT DO NOTHING", registryId);
  }

  /** The wrapped key, JSON: the one with this public key, or the one of the highest epoch. */
  logKey(publicKey?: string): { epoch: number; wrapped: string } | null {
    const row =
      publicKey === undefined
        ? firstRow(this.#sql, "SELECT * FROM log_keys ORDER BY epoch DESC LIMIT 1")
        : firstRow(this.#sql, "SELECT * FROM log_keys WHERE public_key = ?", publicKey);
    return row === undefined ? null : { epoch: Number(row.epoch), wrapped: String(row.wrapped) };
  }

  setLogKey(publicKey: string, epoch: number, wrapped: string): void {
    this.#sql.exec(
      `INSERT INTO log_keys VALUES (?, ?, ?)
       ON CONFLICT (public_key) DO UPDATE SET epoch = max(epoch, excluded.epoch)`,
      publicKey,
      epoch,
      wrapped,
    );
  }

  state(): HeadLogState | null {
    const row = firstRow(this.#sql, "SELECT * FROM state");
    if (row === undefined) return null;
    return {
      size: Number(row.size),
      edge: bytesOf(row.edge),
      checkpoint: String(row.checkpoint),
      key: String(row.key),
      epoch: Number(row.epoch),
      batch: Number(row.batch),
      time: BigInt(String(row.time)),
      recordEpoch: Number(row.record_epoch),
      listedReport: Number(row.listed_report),
      signedAtMs: Number(row.signed_at_ms),
      fullAtMs: Number(row.full_at_ms),
      intervalMs: Number(row.interval_ms),
    };
  }

  setState(state: HeadLogState): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      state.size,
      blob(state.edge),
      state.checkpoint,
      state.key,
      state.epoch,
      state.batch,
      String(state.time),
      state.recordEpoch,
      state.listedReport,
      state.signedAtMs,
      state.fullAtMs,
      state.intervalMs,
    );
  }

  addLeaf(index: number, leaf: Uint8Array): void {
    this.#sql.exec("INSERT INTO leaves VALUES (?, ?)", index, blob(leaf));
  }

  /** Leaves [from, to) in order, lazily. */
  *leaves(from: number, to: number): Generator<Uint8Array> {
    const query = "SELECT leaf FROM leaves WHERE leaf_index >= ? AND leaf_index < ? ORDER BY leaf_index";
    for (const row of this.#sql.exec<Row>(query, from, to)) yield bytesOf(row.leaf);
  }

  /** Index of the last of the leaves [from, to) that holds these bytes; null for none. */
  lastLeafWith(bytes: Uint8Array, from: number, to: number): number | null {
    const query = `SELECT leaf_index FROM leaves WHERE leaf_index >= ? AND leaf_index < ? AND instr(leaf, ?) > 0
      ORDER BY leaf_index DESC LIMIT 1`;
    const row = firstRow(this.#sql, query, from, to, blob(bytes));
    return row === undefined ? null : Number(row.leaf_index);
  }

  head(logId: string): StoredReport | null {
    const row = firstRow(this.#sql, "SELECT * FROM heads WHERE log_id = ?", logId);
    return row === undefined ? null : reportOf(row);
  }

  setHead(head: StoredReport): void {
    this.#sql.exec(
      `INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (log_id) DO UPDATE SET size = excluded.size, root = excluded.root, epoch = excluded.epoch,
         report = excluded.report, reported_at_ms = excluded.reported_at_ms`,
      head.logId,
      head.name,
      head.generation,
      head.size,
      head.root,
      head.epoch,
      head.report,
      head.reportedAtMs,
    );
  }

  /** Heads that were reported after the given report, sorted by log id: lower-case hex sorts as its bytes do. */
  headsAfter(report: number): StoredReport[] {
    const query = "SELECT * FROM heads WHERE report > ? ORDER BY log_id";
    return [...this.#sql.exec<Row>(query, report)].map(reportOf);
  }

  /**
   * A page of heads by log id, after the given one.
   *
   * @param principals names that may be seen; null for all
   */
  page(after: string, limit: number, principals: readonly string[] | null): StoredReport[] {
    const query = `SELECT * FROM heads WHERE log_id > ? AND (? OR name IN (SELECT value FROM json_each(?)))
      ORDER BY log_id LIMIT ?`;
    const names = JSON.stringify(principals ?? []);
    return [...this.#sql.exec<Row>(query, after, principals === null ? 1 : 0, names, limit)].map(reportOf);
  }

  countAfter(report: number): number {
    return Number(firstRow(this.#sql, "SELECT count(*) AS n FROM heads WHERE report > ?", report)?.n ?? 0);
  }

  lastReport(): number {
    return Number(firstRow(this.#sql, "SELECT max(report) AS n FROM heads")?.n ?? 0);
  }

  progress(): { archivedSeq: number; mirroredSize: number } {
    const row = firstRow(this.#sql, "SELECT * FROM progress");
    return { archivedSeq: Number(row?.archived_seq ?? 0), mirroredSize: Number(row?.mirrored_size ?? 0) };
  }

  setProgress(progress: { readonly archivedSeq: number; readonly mirroredSize: number }): void {
    const { archivedSeq, mirroredSize } = progress;
    this.#sql.exec("INSERT OR REPLACE INTO progress VALUES (1, ?, ?)", archivedSeq, mirroredSize);
  }

  alarms(): HeadAlarm[] {
    return [...this.#sql.exec<Row>("SELECT * FROM alarms ORDER BY at_ms, name, log_id")].map((row) => ({
      name: String(row.name) as HeadAlarm["name"],
      logId: row.log_id === "" ? null : String(row.log_id),
      detail: String(row.detail),
      atMs: Number(row.at_ms),
    }));
  }

  /** Why the log is stopped; null where it is not. */
  stopped(): string | null {
    const row = firstRow(this.#sql, "SELECT detail FROM alarms WHERE name = 'stopped'");
    return row === undefined ? null : String(row.detail);
  }

  /** Stands from now on; the first of its name and log stays. */
  raiseAlarm(alarm: HeadAlarm): void {
    this.#sql.exec(
      "INSERT INTO alarms VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
      alarm.name,
      alarm.logId ?? "",
      alarm.detail,
      alarm.atMs,
    );
  }
}
