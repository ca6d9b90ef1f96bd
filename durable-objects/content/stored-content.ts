/**
 * An entry's content where the log has it: in a segment, in what is left of it after an erasure, or in its box in R2.
 *
 * @module
 */
import { equalBytes } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import { decodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { entriesPath, TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import type { LogStorage } from "../principal-log/storage.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { BoxedContent, BoxesContext } from "./read-boxes.ts";
import { readBoxes } from "./read-boxes.ts";

export interface ContentSource extends BoxesContext {
  readonly crypto: CryptoPort;
  readonly storage: LogStorage;
  readonly tree: TileTree;
}

/**
 * Reads content as the object itself has it; null where it is in R2 alone. Asked in order, it reads a segment once; it
 * must not be kept over an erasure.
 */
export function contentReader({
  keys,
  storage,
}: Pick<ContentSource, "keys" | "storage">): (seq: number) => EntryContent | null {
  let first = 0;
  let rows: string[] = [];
  return (seq) => {
    if (seq < first || seq >= first + rows.length) {
      const segment = storage.segmentOf(seq);
      first = segment?.firstSeq ?? 0;
      rows = segment?.rows.split("\n") ?? [];
    }
    const row = rows[seq - first];
    return row === undefined ? keys.left(seq) : parseRow(row);
  };
}

/** The content of an entry whose segment is gone, from its box. Throws what R2 throws. */
export async function boxedContent(context: ContentSource, seq: number): Promise<BoxedContent> {
  const id = await idFromBundle(context, seq);
  if (id === null) return { seq, state: "lost" };
  for await (const content of readBoxes(context, seq, seq, () => id)) return content;
  throw new RunsealError("storage-inconsistent", "an entry's content is neither here nor in R2");
}

/** The entry's id from its bundle in R2, whose leaf must be the log's own; null where it is not there. */
async function idFromBundle(context: ContentSource, seq: number): Promise<string | null> {
  const { bucket, prefix, crypto, tree } = context;
  const object = await bucket.get(`${prefix}/${entriesPath(Math.floor((seq - 1) / TILE_WIDTH))}`);
  if (object === null) return null;
  try {
    const leaf = decodeEntryBundle(new Uint8Array(await object.arrayBuffer()), TILE_WIDTH)[
      (seq - 1) % TILE_WIDTH
    ];
    if (leaf === undefined || !equalBytes(leafHash(crypto, leaf), tree.leafHashes(seq - 1, seq))) return null;
    return decodeLeaf(leaf).id;
  } catch (error) {
    if (error instanceof RunsealError) return null;
    throw error;
  }
}
