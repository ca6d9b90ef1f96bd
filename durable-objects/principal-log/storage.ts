/**
 * The SQLite storage of one log: the commit point of every entry. docs/storage.md describes each table.
 *
 * @module
 */
import { equalBytes } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import type { Arrival } from "../tenant-directory/index-state.ts";
import type { Row } from "../tile-store/sql.ts";
import { addColumn, blob, bytesOf, firstRow } from "../tile-store/sql.ts";
import { TileTable } from "../tile-store/tile-table.ts";
import { RecentSegments } from "./recent-segments.ts";

/** The log's head as storage holds it: written in the same transaction as the entries. */
export interface StoredHead {
  readonly size: number;
  readonly lastHash: Uint8Array;
  readonly recordedAt: bigint;
  readonly epoch: number;
  readonly edge: RightEdge;
  /** The signed note for this size. */
  readonly checkpoint: string;
  /** See `IdIndex.futureUntil`, in milliseconds. */
  readonly futureUntil: number;
}

/** One row of the outbox and archive: consecutive entries of one commit. */
export interface Segment {
  readonly firstSeq: number;
  readonly count: number;
  /** Milliseconds since the epoch at which the entries were recorded. */
  readonly recordedAtMs: number;
  /** The leaves, joined: see frame.ts. */
  readonly leaves: Uint8Array;
  /** Their rows, one a line. */
  readonly rows: string;
}

/** Where the consumers of the log have got to. */
export interface Progress {
  /** Entries that D1 holds. */
  readonly flushedSeq: number;
  /** Entries that D1 held at its best: where it went backwards, those are no backlog, but put back. */
  readonly confirmedSeq: number;
  /** When the last of them arrived there; null where that is not known. */
  readonly arrival: Arrival | null;
  /** Entries covered by full tiles and bundles in R2. */
  readonly archivedSeq: number;
  /** Size of the head that R2 mirrors. */
  readonly mirroredSize: number;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS audit_keys (epoch INTEGER PRIMARY KEY, key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS head (
  one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, last_hash BLOB NOT NULL, recorded_at TEXT NOT NULL,
  epoch INTEGER NOT NULL, edge BLOB NOT NULL, checkpoint TEXT NOT NULL, future_until INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS segments (
  first_seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, recorded_at_ms INTEGER NOT NULL, leaves BLOB NOT NULL,
  rows TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pruned (
  first_seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, recorded_at_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS progress (
  one INTEGER PRIMARY KEY CHECK (one = 1), flushed_seq INTEGER NOT NULL, archived_seq INTEGER NOT NULL,
  mirrored_size INTEGER NOT NULL, arrival TEXT, confirmed_seq INTEGER);
CREATE TABLE IF NOT EXISTS alarms (name TEXT PRIMARY KEY, detail TEXT NOT NULL) WITHOUT ROWID;
`;

export class LogStorage {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #crypto: CryptoPort;
  readonly tiles: TileTable;
  readonly #recent = new RecentSegments();
  /** The standing alarms, as read last: every request asks for them, and nobody else writes them. */
  #alarms: Map<string, string> | null = null;

  constructor(storage: DurableObjectStorage, crypto: CryptoPort) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#crypto = crypto;
    this.#sql.exec(SCHEMA);
    addColumn(this.#sql, "progress", "arrival", "TEXT");
    addColumn(this.#sql, "progress", "confirmed_seq", "INTEGER");
    this.tiles = new TileTable(storage.sql);
  }

  /** Runs the closure as one transaction; what it throws rolls everything back. */
  transaction<T>(closure: () => T): T {
    try {
      return this.#storage.transactionSync(closure);
    } catch (error) {
      this.#recent.clear();
      this.#alarms = null;
      throw error;
    }
  }

  identity(): string | null {
    const row = this.#first("SELECT value FROM identity");
    return row === undefined ? null : String(row.value);
  }

  setIdentity(value: string): void {
    this.#sql.exec("INSERT INTO identity (one, value) VALUES (1, ?) ON CONFLICT DO NOTHING", value);
  }

  /** The wrapped audit key of an epoch, JSON. */
  auditKey(epoch: number): string | null {
    const row = this.#first("SELECT key FROM audit_keys WHERE epoch = ?", epoch);
    return row === undefined ? null : String(row.key);
  }

  setAuditKey(epoch: number, key: string): void {
    this.#sql.exec("INSERT INTO audit_keys (epoch, key) VALUES (?, ?) ON CONFLICT DO NOTHING", epoch, key);
  }

  dropAuditKeysBefore(epoch: number): void {
    this.#sql.exec("DELETE FROM audit_keys WHERE epoch < ?", epoch);
  }

  head(): StoredHead | null {
    const row = this.#first("SELECT * FROM head");
    if (row === undefined) return null;
    return {
      size: Number(row.size),
      lastHash: bytesOf(row.last_hash),
      recordedAt: BigInt(String(row.recorded_at)),
      epoch: Number(row.epoch),
      edge: RightEdge.fromBytes(this.#crypto, bytesOf(row.edge)),
      checkpoint: String(row.checkpoint),
      futureUntil: Number(row.future_until),
    };
  }

  /** Whether storage holds this very head: asked before anything is signed from memory. The checkpoint has the root. */
  holds(head: StoredHead): boolean {
    const row = this.#first("SELECT size, last_hash, checkpoint FROM head");
    const same = row?.size === head.size && row.checkpoint === head.checkpoint;
    return same && equalBytes(bytesOf(row.last_hash), head.lastHash);
  }

  /** The size alone, cheaper than the whole head: what memory is compared with before anything is signed. */
  size(): number {
    return Number(this.#first("SELECT size FROM head")?.size ?? 0);
  }

  setHead(head: StoredHead): void {
    this.#sql.exec(
      `INSERT INTO head (one, size, last_hash, recorded_at, epoch, edge, checkpoint, future_until)
       VALUES (1, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (one) DO UPDATE SET size = excluded.size, last_hash = excluded.last_hash,
         recorded_at = excluded.recorded_at, epoch = excluded.epoch, edge = excluded.edge,
         checkpoint = excluded.checkpoint, future_until = excluded.future_until`,
      head.size,
      blob(head.lastHash),
      String(head.recordedAt),
      head.epoch,
      blob(head.edge.toBytes()),
      head.checkpoint,
      head.futureUntil,
    );
  }

  addSegment(segment: Segment): void {
    this.#sql.exec(
      "INSERT INTO segments (first_seq, count, recorded_at_ms, leaves, rows) VALUES (?, ?, ?, ?, ?)",
      segment.firstSeq,
      segment.count,
      segment.recordedAtMs,
      blob(segment.leaves),
      segment.rows,
    );
    this.#recent.add(segment);
  }

  /** Replaces a segment's rows: content was erased from them. Must run inside a transaction. */
  rewriteRows(firstSeq: number, rows: string): void {
    this.#sql.exec("UPDATE segments SET rows = ? WHERE first_seq = ?", rows, firstSeq);
    this.#recent.rewrite(firstSeq, rows);
  }

  /** Drops what lies behind an entry: segments, and tiles as far as they reach further. */
  dropAfter(seq: number): void {
    this.#recent.clear();
    this.#sql.exec("DELETE FROM segments WHERE first_seq > ?", seq);
    this.tiles.cut(seq);
  }

  /** Up to which entry segments were pruned: R2 alone has the entries. The next one begins a segment. */
  get prunedSeq(): number {
    const row = this.#first(
      "SELECT first_seq + count - 1 AS last FROM pruned ORDER BY first_seq DESC LIMIT 1",
    );
    return Number(row?.last ?? 0);
  }

  /** Deletes the segments of these entries, the oldest that there are. Must run inside a transaction. */
  prune(first: number, last: number, recordedAtMs: number): void {
    this.#recent.dropUpTo(last);
    this.#sql.exec("DELETE FROM segments WHERE first_seq BETWEEN ? AND ?", first, last);
    this.#sql.exec("INSERT INTO pruned VALUES (?, ?, ?)", first, last - first + 1, recordedAtMs);
  }

  /**
   * Segments that hold entries from `seq` on, in order, as a lazy cursor. Throws `RunsealError("storage-inconsistent")`
   * where later ones are here and that one is not: whoever may ask for a pruned entry looks at `prunedSeq` first.
   */
  *segmentsFrom(seq: number): Generator<Segment> {
    if (this.#recent.covers(seq)) {
      yield* this.#recent.from(seq);
      return;
    }
    const first = this.#first("SELECT max(first_seq) AS first_seq FROM segments WHERE first_seq <= ?", seq);
    const from = Number(first?.first_seq ?? seq);
    let next = seq;
    for (const row of this.#sql.exec(
      "SELECT * FROM segments WHERE first_seq >= ? ORDER BY first_seq",
      from,
    )) {
      const segment = segmentOf(row);
      if (segment.firstSeq > next)
        throw new RunsealError("storage-inconsistent", "a segment of the log is missing");
      next = Math.max(next, segment.firstSeq + segment.count);
      yield segment;
    }
  }

  /** The same without their data, but for its bytes. */
  *segmentSizesFrom(seq: number): Generator<Omit<Segment, "leaves" | "rows"> & { readonly bytes: number }> {
    for (const row of this.#sql.exec(
      `SELECT first_seq, count, recorded_at_ms, length(leaves) + octet_length(rows) AS bytes FROM segments
       WHERE first_seq >= ? ORDER BY first_seq`,
      seq,
    )) {
      yield { ...headOf(row), bytes: Number(row.bytes) };
    }
  }

  /** Segments from the newest back, without their data; none that begins after `size`. */
  *segmentHeadsBackwards(size: number): Generator<Omit<Segment, "leaves" | "rows">> {
    for (const row of this.#sql.exec(
      "SELECT first_seq, count, recorded_at_ms FROM segments WHERE first_seq <= ? ORDER BY first_seq DESC",
      size,
    )) {
      yield headOf(row);
    }
  }

  /** The segment that holds the entry. */
  segmentOf(seq: number): Segment | null {
    const row = this.#first(
      "SELECT * FROM segments WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
      seq,
    );
    if (row === undefined) return null;
    const segment = segmentOf(row);
    return seq < segment.firstSeq + segment.count ? segment : null;
  }

  /**
   * Milliseconds since the epoch at which the oldest entry after `seq` was recorded; null where there is none. Of a
   * pruned one it is known to within the entries that were pruned with it: theirs is the oldest time.
   */
  oldestAfter(seq: number): number | null {
    return this.#recordedWith("segments", seq + 1) ?? this.#recordedWith("pruned", seq + 1);
  }

  #recordedWith(table: "segments" | "pruned", seq: number): number | null {
    // By key, not by a condition on both columns: that one would read every segment before.
    const row = this.#first(
      `SELECT first_seq + count AS next, recorded_at_ms FROM ${table} WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1`,
      seq,
    );
    return row === undefined || Number(row.next) <= seq ? null : Number(row.recorded_at_ms);
  }

  /** First and last entry after `seq` that a segment holds; null where none does. */
  outboxBounds(seq: number): { readonly first: number; readonly last: number } | null {
    const last = this.#first(
      "SELECT first_seq + count - 1 AS last FROM segments ORDER BY first_seq DESC LIMIT 1",
    );
    if (last === undefined || Number(last.last) <= seq) return null;
    const first = this.#segmentStart(seq + 1);
    return { first: Math.max(seq + 1, first), last: Number(last.last) };
  }

  /** Where the segment begins that holds the entry, or the next one after it. */
  #segmentStart(seq: number): number {
    const before = this.#first(
      "SELECT first_seq, count FROM segments WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
      seq,
    );
    if (before !== undefined && seq < Number(before.first_seq) + Number(before.count))
      return Number(before.first_seq);
    return Number(
      this.#first("SELECT min(first_seq) AS first_seq FROM segments WHERE first_seq > ?", seq)?.first_seq ??
        0,
    );
  }

  /** Bytes of the segments that hold entries after `seq`. */
  bytesAfter(seq: number): number {
    const row = this.#first(
      `SELECT coalesce(sum(length(leaves) + octet_length(rows)), 0) AS bytes FROM segments WHERE first_seq >=
         (SELECT coalesce(max(first_seq), 0) FROM segments WHERE first_seq <= ?1) AND first_seq + count > ?1 + 1`,
      seq,
    );
    return Number(row?.bytes ?? 0);
  }

  progress(): Progress {
    const row = this.#first("SELECT * FROM progress");
    return {
      flushedSeq: Number(row?.flushed_seq ?? 0),
      archivedSeq: Number(row?.archived_seq ?? 0),
      mirroredSize: Number(row?.mirrored_size ?? 0),
      confirmedSeq: Number(row?.confirmed_seq ?? row?.flushed_seq ?? 0),
      arrival: typeof row?.arrival === "string" ? (JSON.parse(row.arrival) as Arrival) : null,
    };
  }

  setProgress(progress: Progress): void {
    this.#sql.exec(
      `INSERT INTO progress (one, flushed_seq, archived_seq, mirrored_size, arrival, confirmed_seq) VALUES (1, ?, ?, ?, ?, ?)
       ON CONFLICT (one) DO UPDATE SET flushed_seq = excluded.flushed_seq, archived_seq = excluded.archived_seq,
         mirrored_size = excluded.mirrored_size, arrival = excluded.arrival, confirmed_seq = excluded.confirmed_seq`,
      progress.flushedSeq,
      progress.archivedSeq,
      progress.mirroredSize,
      progress.arrival === null ? null : JSON.stringify(progress.arrival),
      Math.max(progress.confirmedSeq, progress.flushedSeq),
    );
  }

  /** A standing alarm of the log (it is stopped, or D1 contradicts it), with its detail. */
  standingAlarm(name: "stopped" | "index-conflict"): string | null {
    this.#alarms ??= new Map(
      this.#sql
        .exec<Row>("SELECT name, detail FROM alarms")
        .toArray()
        .map((row) => [String(row.name), String(row.detail)]),
    );
    return this.#alarms.get(name) ?? null;
  }

  /** Ends an alarm whose cause the operator has removed. */
  clearAlarm(name: "index-conflict"): void {
    this.#alarms = null;
    this.#sql.exec("DELETE FROM alarms WHERE name = ?", name);
  }

  raiseAlarm(name: "stopped" | "index-conflict", detail: string): void {
    this.#alarms = null;
    this.#sql.exec("INSERT INTO alarms (name, detail) VALUES (?, ?) ON CONFLICT DO NOTHING", name, detail);
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    return firstRow(this.#sql, query, ...bindings);
  }
}

function headOf(row: Row): Omit<Segment, "leaves" | "rows"> {
  return {
    firstSeq: Number(row.first_seq),
    count: Number(row.count),
    recordedAtMs: Number(row.recorded_at_ms),
  };
}

function segmentOf(row: Row): Segment {
  return { ...headOf(row), leaves: bytesOf(row.leaves), rows: String(row.rows) };
}
