/**
 * The outbox: copies committed entries to D1 in bounded chunks, each one transaction there, idempotently. D1's own
 * row of the log moves in the same transaction, conditional on its old value, so that a chunk applied twice changes
 * nothing and a database that went backwards is noticed.
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { entryNumber } from "../../workers/index-db/entry-number.ts";
import { breathe } from "../breathe.ts";
import type { ArchivedEntries } from "../content/archived-entries.ts";
import type { Arrival } from "../tenant-directory/index-state.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { IndexChunk } from "./index-chunk.ts";
import { CHUNK_BOUNDS, INDEX_COLUMNS, nextChunk } from "./index-chunk.ts";
import { prunedSegments } from "./pruned-segments.ts";
import type { LogStorage } from "./storage.ts";
import type { LogIdentity } from "./types.ts";

/** What D1 says of the log. */
export interface IndexedState {
  readonly lastSeq: number;
  readonly lastHash: string;
}

export type FlushOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "failed" | "conflict"; readonly detail: string };

export interface IndexContext {
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

export interface FlushContext extends IndexContext {
  /** The log's signed head when the flush began: goes to D1 with the chunk that ends with it. */
  readonly head: { readonly size: number; readonly checkpoint: string };
}

const AT_OLD_VALUE = "l.log_id = ?2 AND l.last_seq = ?3 AND l.last_hash = ?4";

/** `jsonb_each` spares D1 from parsing a row again for each of its columns. SQLite has it since 3.51. */
const EACH = { fast: "jsonb_each", older: "json_each" } as const;
let each: (typeof EACH)[keyof typeof EACH] = EACH.fast;

const insertEntries = (): string => `INSERT INTO entries (entry, pos, tenant, ${INDEX_COLUMNS.join(", ")})
SELECT ${entryNumber("l.log", "l.last_seq + 1 + r.key")}, a.next + r.key, l.tenant, ${INDEX_COLUMNS.map(cell).join(", ")}
FROM ${each}(?1) r, logs l, arrivals a WHERE ${AT_OLD_VALUE} AND a.tenant = l.tenant
ON CONFLICT DO NOTHING`;

/** A row's value for a column. A large entry's content is bound beside the rows. */
function cell(column: (typeof INDEX_COLUMNS)[number], place: number): string {
  const value = `r.value ->> ${place}`;
  if (column === "content") return `coalesce(?5, ${value})`;
  return column === "salts" ? `coalesce(?6, ${value})` : value;
}

const UPSERT_RUNS = `INSERT INTO runs (log, run, first_seq, last_seq, entries)
SELECT l.log, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3
FROM json_each(?1) r, logs l WHERE ${AT_OLD_VALUE}
ON CONFLICT (log, run) DO UPDATE SET last_seq = excluded.last_seq, entries = entries + excluded.entries`;

/**
 * Flushes what D1 lacks. Every failure leaves the outbox as it was. Throws what D1 and the storage throw.
 *
 * @param progressed called after each chunk that D1 holds, with the sequence number up to which it does, and when the
 *   chunk arrived there; null where that is not known
 * @param isOver asked before each chunk, with how many there were: whether it ends here, done or not
 */
export async function flushToIndex(
  context: FlushContext,
  from: IndexedState,
  size: number,
  progressed: (seq: number, arrival: Arrival | null) => void,
  isOver: (chunks: number) => boolean,
): Promise<FlushOutcome> {
  let state = from;
  for (let chunks = 0; ; chunks++) {
    if (isOver(chunks)) return { ok: true };
    // Before a chunk is read and never after: what an erasure takes away meanwhile must not be in it.
    if (chunks > 0) await breathe();
    const first = state.lastSeq + 1;
    const pruned = await prunedSegments(context.archived, context.storage, first, CHUNK_BOUNDS);
    const segments = pruned ?? context.storage.segmentsFrom(first);
    const chunk = nextChunk(context.tree, segments, state.lastSeq, size);
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
  chunk: IndexChunk,
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
  chunk: IndexChunk,
): Promise<Arrival | null | "elsewhere"> {
  const { db, identity, logId, head } = context;
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
        `UPDATE logs SET last_seq = ?1, last_hash = ?5, checkpoint = coalesce(?6, checkpoint)
         WHERE log_id = ?2 AND last_seq = ?3 AND last_hash = ?4`,
      )
      .bind(chunk.lastSeq, ...guarded, chunk.lastHash, chunk.lastSeq === head.size ? head.checkpoint : null),
  ]);
  if ((results[5]?.meta.changes ?? 0) === 0) return "elsewhere";
  if (results[2]?.meta.changes !== chunk.hashes.length) await compareRows(context, chunk, chunk.lastSeq);
  return (results[4]?.results[0] as Arrival | undefined) ?? null;
}

/** A row that was there already was not inserted: it must be the same one, or somebody else wrote to D1. */
async function compareRows(context: FlushContext, chunk: IndexChunk, upTo: number): Promise<void> {
  if (upTo < chunk.firstSeq || upTo > chunk.lastSeq) return;
  const { results } = await context.db
    .prepare(
      `SELECT e.hash FROM logs l JOIN entries e ON e.entry BETWEEN ${entryNumber("l.log", "?2")} AND ${entryNumber("l.log", "?3")}
       WHERE l.log_id = ?1 ORDER BY e.entry`,
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
  context: IndexContext,
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

function hashAt(context: IndexContext, seq: number): string {
  return toHex(context.tree.leafHashes(seq - 1, seq));
}

/** D1's row of the log; a log that D1 does not know stands at 0. */
export async function readIndexedState(context: Pick<IndexContext, "db" | "logId">): Promise<IndexedState> {
  const row = await context.db
    .prepare("SELECT last_seq, last_hash FROM logs WHERE log_id = ?1")
    .bind(context.logId)
    .first<{ last_seq: number; last_hash: string }>();
  return row === null
    ? { lastSeq: 0, lastHash: context.logId }
    : { lastSeq: row.last_seq, lastHash: row.last_hash };
}
