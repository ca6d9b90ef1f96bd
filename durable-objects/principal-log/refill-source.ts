/**
 * Where a log whose storage was set back finds its entries again: leaves in R2's entry bundles and in D1's rows, values
 * and salts in D1's rows alone, for the keys of what R2 holds of them were set back with the log. Nothing that is read
 * here is trusted: refill-check.ts judges it.
 *
 * @module
 */
import { equalBytes, fromBase64, toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { decodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { entriesPath, TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import type { IndexedEntryRow } from "../../workers/index-db/entries.ts";
import { queryForVerify } from "../../workers/index-db/entries.ts";

/** An entry as it was found. */
export interface FoundEntry {
  readonly leaf: Uint8Array;
  /** Its values and salts; null where D1 has none, or has another entry in its place. */
  readonly content: { readonly values: string; readonly salts: string } | null;
}

export interface RefillSourceContext {
  readonly db: D1Database;
  readonly bucket: R2Bucket;
  /** Key prefix of the log. */
  readonly prefix: string;
  /** 32 bytes. */
  readonly logId: Uint8Array;
}

/**
 * Entries from `first` on, at most to `last`, at least one where one is to be had; at most a bundle's 256, and bounded in
 * bytes. Empty: neither D1 nor R2 has the first one. Throws what D1 and R2 throw.
 */
export async function findEntries(
  context: RefillSourceContext,
  first: number,
  last: number,
): Promise<FoundEntry[]> {
  const tile = Math.floor((first - 1) / TILE_WIDTH);
  const end = Math.min(last, (tile + 1) * TILE_WIDTH);
  const session = context.db.withSession("first-primary");
  const [bundle, page] = await Promise.all([
    readBundle(context, tile),
    queryForVerify(session, toHex(context.logId), first, end, TILE_WIDTH),
  ]);
  const rows = new Map(page.rows.map((row) => [row.seq, row]));
  // A page that its bytes cut short goes on in the next one; where D1 has nothing at all, the bundle stands alone.
  const upTo = page.rows.at(-1)?.seq ?? end;
  const found: FoundEntry[] = [];
  for (let seq = first; seq <= upTo; seq++) {
    const row = rows.get(seq);
    const rowLeaf = row === undefined ? null : leafOf(row);
    const leaf = bundle?.[(seq - 1) % TILE_WIDTH] ?? rowLeaf;
    if (leaf === null) break;
    const same = row !== undefined && rowLeaf !== null && equalBytes(leaf, rowLeaf);
    found.push({ leaf, content: same ? contentOf(row) : null });
  }
  return found;
}

function contentOf({ content, salts }: IndexedEntryRow): FoundEntry["content"] {
  return content === null || salts === null ? null : { values: content, salts };
}

function leafOf(row: IndexedEntryRow): Uint8Array | null {
  try {
    return fromBase64(row.leaf);
  } catch {
    return null;
  }
}

/** The leaves of a full bundle; null where R2 has none that can be read. */
async function readBundle(
  { bucket, prefix }: RefillSourceContext,
  tile: number,
): Promise<readonly Uint8Array[] | null> {
  const object = await bucket.get(`${prefix}/${entriesPath(tile)}`);
  if (object === null) return null;
  try {
    return decodeEntryBundle(new Uint8Array(await object.arrayBuffer()), TILE_WIDTH);
  } catch (error) {
    if (error instanceof RunsealError) return null;
    throw error;
  }
}
