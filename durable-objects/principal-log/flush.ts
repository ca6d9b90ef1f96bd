/**
 * The outbox: copies committed entries to D1 in bounded chunks, each one transaction there, idempotently. D1's own
 * row of the log moves in the same transaction, conditional on its old value, so that a chunk applied twice changes
 * nothing and a database that went backwards is noticed.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { toHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { formatRow, parseRow, ROW_SEPARATOR } from "../../shared/entry/row.ts";
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import type { ArchivedEntries } from "../content/archived-entries.ts";
import type { Arrival } from "../tenant-directory/index-state.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { d1Row } from "./commit.ts";
import { decodeFrame } from "./frame.ts";
import { prunedSegments } from "./pruned-segments.ts";
import type { LogStorage, Segment } from "./storage.ts";
import type { LogIdentity } from "./types.ts";

/** UTF-8 bytes of one chunk's JSON: a bound parameter of D1 holds 2 MB. Fewer chunks are fewer transactions there. */
const MAX_CHUNK_BYTES = 1_800_000;
/** Characters of a row that is bound on its own: escaped in JSON, and at three bytes each, it could pass the 2 MB. */
const LARGE_ROW_CHARS = 300_000;
const MAX_CHUNK_ENTRIES = 1000;

interface Chunk {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly lastHash: string;
  readonly hashes: readonly string[];
  /** A JSON array of rows. */
  readonly rows: string;
  /** A JSON array with [run, first_seq, last_seq, entries] for each run among them. */
  readonly runs: string;
  /** Values and salts of a single large entry, bound on their own: inside JSON they could pass a parameter's 2 MB. */
  readonly large: { readonly values: string | null; readonly salts: string | null } | null;
}

/** What D1 says of the log. */
export interface IndexedState {
  readonly lastSeq: number;
  readonly lastHash: string;
}

export type FlushOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "failed" | "conflict"; readonly detail: string };

export interface FlushContext {
  readonly crypto: CryptoPort;
  readonly storage: LogStorage;
  readonly tree: TileTree;
  /** Reads the entries back that left the log's object. */
  readonly archived: ArchivedEntries;
  readonly db: D1Database;
  readonly identity: LogIdentity;
  /** Hex. */
  readonly logId: string;
  /** Called before D1 is filled again where it holds less than it once confirmed. What it throws ends the flush. */
  readonly fellBack: () => Promise<void>;
}

const CHUNK_BOUNDS = { entries: MAX_CHUNK_ENTRIES, bytes: MAX_CHUNK_BYTES };

/** The next chunk after `flushedSeq`, of these segments from there on; null where D1 holds everything. */
function nextChunk(
  context: FlushContext,
  segments: Iterable<Segment>,
  flushedSeq: number,
  size: number,
): Chunk | null {
  if (flushedSeq >= size) return null;
  const rows: string[] = [];
  const hashes: string[] = [];
  const runs = new RunSpans();
  const known = context.tree.leafHashes(flushedSeq, Math.min(size, flushedSeq + MAX_CHUNK_ENTRIES + 1));
  let filled = 0;
  for (const segment of segments) {
    const recordedAtFloor = BigInt(segment.recordedAtMs) * 1_000_000n;
    let seq = segment.firstSeq;
    for (const { bytes: leaf, row: text } of decodeFrame({ bytes: segment.leaves, rows: segment.rows })) {
      if (seq > flushedSeq) {
        const hash = toHex(
          known.subarray((seq - flushedSeq - 1) * HASH_BYTES, (seq - flushedSeq) * HASH_BYTES),
        );
        const large = text.length > LARGE_ROW_CHARS;
        if (large && rows.length > 0) return finish();
        const row = d1Row(seq, hash, leaf, recordedAtFloor, large ? withoutContent(text) : text);
        if (large) {
          rows.push(row);
          hashes.push(hash);
          runs.add(text, seq);
          return finish(parseRow(text));
        }
        const bytes = Buffer.byteLength(row);
        if (rows.length > 0 && (filled + bytes > MAX_CHUNK_BYTES || rows.length >= MAX_CHUNK_ENTRIES)) {
          return finish();
        }
        rows.push(row);
        hashes.push(hash);
        runs.add(text, seq);
        filled += bytes;
      }
      seq += 1;
    }
  }
  return rows.length === 0 ? null : finish();

  function finish(large: Chunk["large"] = null): Chunk {
    const lastSeq = flushedSeq + rows.length;
    return {
      firstSeq: flushedSeq + 1,
      lastSeq,
      lastHash: hashes.at(-1) ?? "",
      hashes,
      rows: `[${rows.join(",")}]`,
      runs: runs.json(),
      large,
    };
  }
}

/** Where a row's columns name its run: a value there can hold this text only with its quotes escaped. */
const RUN_MEMBER = ',"r":"';

/** The spans of the runs of one chunk: told here, because to tell them in D1 would be to read the chunk once more there. */
class RunSpans {
  readonly #spans = new Map<string, { first: number; last: number; entries: number }>();

  add(row: string, seq: number): void {
    const at = row.lastIndexOf(RUN_MEMBER, row.indexOf(ROW_SEPARATOR));
    if (at < 0) return;
    const start = at + RUN_MEMBER.length;
    const run = row.slice(start, row.indexOf('"', start));
    const span = this.#spans.get(run);
    if (span === undefined) this.#spans.set(run, { first: seq, last: seq, entries: 1 });
    else {
      span.last = seq;
      span.entries += 1;
    }
  }

  json(): string {
    return JSON.stringify([...this.#spans].map(([run, span]) => [run, span.first, span.last, span.entries]));
  }
}

function withoutContent(row: string): string {
  return formatRow({ columns: parseRow(row).columns, values: null, salts: null });
}

const COLUMNS = [
  ["hash", "h"],
  ["leaf", "l"],
  ["recorded_at", "t"],
  ["id", "i"],
  ["kind", "k"],
  ["session", "e"],
  ["run", "r"],
  ["step", "p"],
  ["call", "c"],
  ["tool", "o"],
  ["status", "u"],
] as const;

const AT_OLD_VALUE = "l.log_id = ?2 AND l.last_seq = ?3 AND l.last_hash = ?4";

/** `jsonb_each` spares D1 from parsing a row again for each of its columns. SQLite has it since 3.51. */
const EACH = { fast: "jsonb_each", older: "json_each" } as const;
let each: (typeof EACH)[keyof typeof EACH] = EACH.fast;

const insertEntries =
  (): string => `INSERT INTO entries (log, seq, pos, tenant, ${COLUMNS.map(([column]) => column).join(", ")}, content, salts)
SELECT l.log, r.value ->> 's', a.next + r.key, l.tenant, ${COLUMNS.map(([, key]) => `r.value ->> '${key}'`).join(", ")},
  coalesce(?5, r.value ->> 'v'), coalesce(?6, r.value ->> 'x')
FROM ${each}(?1) r, logs l, arrivals a WHERE ${AT_OLD_VALUE} AND a.tenant = l.tenant
ON CONFLICT DO NOTHING`;

const UPSERT_RUNS = `INSERT INTO runs (log, run, first_seq, last_seq, entries)
SELECT l.log, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3
FROM json_each(?1) r, logs l WHERE ${AT_OLD_VALUE}
ON CONFLICT (log, run) DO UPDATE SET last_seq = excluded.last_seq, entries = entries + excluded.entries`;

/**
 * Flushes what D1 lacks. Every failure leaves the outbox as it was. Throws what D1 and the storage throw.
 *
 * @param progressed called after each chunk that D1 holds, with the sequence number up to which it does, and when the
 *   chunk arrived there; null where that is not known
 * @param maxChunks after how many it ends, done or not
 */
export async function flushToIndex(
  context: FlushContext,
  from: IndexedState,
  size: number,
  progressed: (seq: number, arrival: Arrival | null) => void,
  maxChunks = Number.POSITIVE_INFINITY,
): Promise<FlushOutcome> {
  let state = from;
  for (let chunks = 0; ; chunks++) {
    if (chunks >= maxChunks) return { ok: true };
    const first = state.lastSeq + 1;
    const pruned = await prunedSegments(context.archived, context.storage, first, CHUNK_BOUNDS);
    const segments = pruned ?? context.storage.segmentsFrom(first);
    const chunk = nextChunk(context, segments, state.lastSeq, size);
    if (chunk === null) return { ok: true };
    const arrival = await applyChunk(context, state, chunk);
    if (arrival !== "elsewhere") {
      state = { lastSeq: chunk.lastSeq, lastHash: chunk.lastHash };
      progressed(chunk.lastSeq, arrival);
      continue;
    }
    const reconciled = await reconcile(context, size, state.lastSeq);
    if (!reconciled.ok) return reconciled;
    // D1 moved on by a chunk whose answer was lost, and nothing was compared then.
    await compareRows(context, chunk, reconciled.state.lastSeq);
    state = reconciled.state;
    progressed(state.lastSeq, null);
  }
}

/** One transaction in D1, with an older SQLite in its own way: that it lacks a function it says in words alone. */
async function applyChunk(
  context: FlushContext,
  from: IndexedState,
  chunk: Chunk,
): Promise<Arrival | null | "elsewhere"> {
  const tried = each;
  try {
    return await insertChunk(context, from, chunk);
  } catch (error) {
    const lacks = error instanceof Error && error.message.includes(`no such table: ${EACH.fast}`);
    if (!lacks || tried === EACH.older) throw error;
    each = EACH.older;
    return insertChunk(context, from, chunk);
  }
}

/** `elsewhere`: D1's row of the log was not at the value that we left it at. */
async function insertChunk(
  context: FlushContext,
  from: IndexedState,
  chunk: Chunk,
): Promise<Arrival | null | "elsewhere"> {
  const { db, identity, logId } = context;
  const guarded = [logId, from.lastSeq, from.lastHash] as const;
  const results = await db.batch([
    db
      .prepare(
        `INSERT INTO logs (log_id, tenant, principal, generation, name, last_seq, last_hash)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?1) ON CONFLICT (log_id) DO NOTHING`,
      )
      .bind(logId, identity.tenant, identity.principal, identity.generation, identity.name),
    db
      .prepare("INSERT INTO arrivals (tenant, next) VALUES (?1, 1) ON CONFLICT DO NOTHING")
      .bind(identity.tenant),
    db
      .prepare(insertEntries())
      .bind(chunk.rows, ...guarded, chunk.large?.values ?? null, chunk.large?.salts ?? null),
    db.prepare(UPSERT_RUNS).bind(chunk.runs, ...guarded),
    db
      .prepare(
        `UPDATE arrivals SET next = next + ?1 WHERE tenant = ?5 AND EXISTS (SELECT 1 FROM logs l WHERE ${AT_OLD_VALUE})
         RETURNING next AS pos, CAST(unixepoch('subsec') * 1000 AS INTEGER) AS at`,
      )
      .bind(chunk.hashes.length, ...guarded, identity.tenant),
    db
      .prepare(
        "UPDATE logs SET last_seq = ?1, last_hash = ?5 WHERE log_id = ?2 AND last_seq = ?3 AND last_hash = ?4",
      )
      .bind(chunk.lastSeq, ...guarded, chunk.lastHash),
  ]);
  if ((results[5]?.meta.changes ?? 0) === 0) return "elsewhere";
  if (results[2]?.meta.changes !== chunk.hashes.length) await compareRows(context, chunk, chunk.lastSeq);
  return (results[4]?.results[0] as Arrival | undefined) ?? null;
}

/** A row that was there already was not inserted: it must be the same one, or somebody else wrote to D1. */
async function compareRows(context: FlushContext, chunk: Chunk, upTo: number): Promise<void> {
  if (upTo < chunk.firstSeq || upTo > chunk.lastSeq) return;
  const { results } = await context.db
    .prepare(
      `SELECT e.hash FROM entries e JOIN logs l ON l.log = e.log
       WHERE l.log_id = ?1 AND e.seq BETWEEN ?2 AND ?3 ORDER BY e.seq`,
    )
    .bind(context.logId, chunk.firstSeq, upTo)
    .all<{ hash: string }>();
  const complete = results.length === upTo - chunk.firstSeq + 1;
  if (complete && results.every((row, i) => row.hash === chunk.hashes[i])) return;
  context.storage.raiseAlarm(
    "index-conflict",
    `D1 holds other entries between ${chunk.firstSeq} and ${upTo}`,
  );
}

/**
 * Finds where D1 stands, and whether what it holds there is ours.
 *
 * @param confirmed up to which entry D1 was known to hold the log
 * @throws what D1 throws, and what `fellBack` does
 */
export async function reconcile(
  context: FlushContext,
  size: number,
  confirmed: number,
): Promise<{ ok: true; state: IndexedState } | Extract<FlushOutcome, { ok: false }>> {
  const state = await readIndexedState(context);
  const expected =
    state.lastSeq === 0 ? context.logId : state.lastSeq > size ? "" : hashAt(context, state.lastSeq);
  if (state.lastSeq < confirmed) await context.fellBack();
  if (expected === state.lastHash) return { ok: true, state };
  const detail = `D1 says that entry ${state.lastSeq} is another one than the log's`;
  context.storage.raiseAlarm("index-conflict", detail);
  return { ok: false, reason: "conflict", detail };
}

function hashAt(context: FlushContext, seq: number): string {
  return toHex(context.tree.leafHashes(seq - 1, seq));
}

/** D1's row of the log; a log that D1 does not know stands at 0. */
export async function readIndexedState(context: Pick<FlushContext, "db" | "logId">): Promise<IndexedState> {
  const row = await context.db
    .prepare("SELECT last_seq, last_hash FROM logs WHERE log_id = ?1")
    .bind(context.logId)
    .first<{ last_seq: number; last_hash: string }>();
  return row === null
    ? { lastSeq: 0, lastHash: context.logId }
    : { lastSeq: row.last_seq, lastHash: row.last_hash };
}
