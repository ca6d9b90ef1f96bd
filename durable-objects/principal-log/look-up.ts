/**
 * Looks ids up in D1's unique (log, id) index: those that the log itself no longer remembers. D1 is asked where to look;
 * what it says is compared with the log's own hashes, for nobody gets a receipt on D1's word.
 *
 * @module
 */
import { equalBytes, fromBase64, toHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { formatRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { KnownEntry } from "./commit.ts";
import type { IdIndex } from "./id-index.ts";
import type { LogStorage } from "./storage.ts";

/**
 * The entries of a log (?2) that carry one of the ids (?1). CROSS JOIN fixes the order: left to itself, SQLite goes through
 * the whole log and looks into the list for each of its entries.
 */
export const ENTRIES_BY_ID = `SELECT e.id, e.seq, e.leaf, e.content, e.salts FROM json_each(?1) i
  CROSS JOIN logs l CROSS JOIN entries e WHERE l.log_id = ?2 AND e.log = l.log AND e.id = i.value`;

interface FoundRow {
  readonly id: string;
  readonly seq: number;
  readonly leaf: string;
  readonly content: string | null;
  readonly salts: string | null;
}

export interface LookUpContext {
  readonly crypto: CryptoPort;
  readonly db: D1Database;
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly ids: IdIndex;
  /** Hex. */
  readonly logId: string;
  /** Called where D1 went backwards: it has to be filled again before it can tell. */
  readonly fellBack: () => Promise<void>;
}

/**
 * Entries of the log that carry one of the ids.
 *
 * @throws what D1 throws; `RunsealError("index-behind")` where D1 lacks entries that it once confirmed: an id that it does
 * not know may be theirs; `RunsealError("index-conflict")`, and the alarm, where it names an entry that is not the log's
 */
export async function lookUpIds(
  context: LookUpContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, KnownEntry>> {
  const { db, logId, storage } = context;
  const { forgottenUpTo } = context.ids;
  const [rows, log] = await db.batch([
    db.prepare(ENTRIES_BY_ID).bind(JSON.stringify(ids), logId),
    db.prepare("SELECT last_seq FROM logs WHERE log_id = ?1").bind(logId),
  ]);
  const indexed = (log?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0;
  if (indexed < forgottenUpTo) {
    await context.fellBack();
    throw new RunsealError("index-behind", "D1 lacks entries that it once confirmed");
  }
  const known = new Map<string, KnownEntry>();
  for (const row of (rows?.results ?? []) as unknown as FoundRow[]) {
    const entry = provenEntry(context, row);
    if (entry === null) {
      const detail = `D1 names as entry ${row.seq} one that is not the log's`;
      storage.raiseAlarm("index-conflict", detail);
      throw new RunsealError("index-conflict", detail);
    }
    known.set(row.id, entry);
  }
  return known;
}

/** The entry that the row names, if it is the log's own at that place; else null. */
function provenEntry({ crypto, tree }: LookUpContext, row: FoundRow): KnownEntry | null {
  try {
    const leaf = fromBase64(row.leaf);
    const hash = leafHash(crypto, leaf);
    const own = equalBytes(hash, tree.leafHashes(row.seq - 1, row.seq)) && decodeLeaf(leaf).id === row.id;
    const text = formatRow({ columns: "{}", values: row.content, salts: row.salts });
    return own ? { seq: row.seq, hash: toHex(hash), leaf, row: text } : null;
  } catch {
    // Bytes that are no leaf, or a place that the log does not have.
    return null;
  }
}
