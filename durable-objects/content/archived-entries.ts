/**
 * Reads entries back from R2: leaves from the bundles, values and salts from the boxes and the log's content keys. For a
 * log whose segments are pruned, and before they are.
 *
 *     await archived.load(first, last);
 *     for (const entry of archived.entries(first, last)) ...
 *
 * Nothing that R2 gives is trusted: a bundle counts only with the very leaves that the tree has hashes of, and a box opens
 * for the entry that it was sealed for, and for no other. `load` waits for R2; what is read then is put together without a
 * wait, so that no erasure comes between: who awaits anything else in the meantime asks for the entries again.
 *
 * @module
 */
import { concat, equalBytes } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { columnsOf } from "../../shared/entry/columns.ts";
import type { SectionName } from "../../shared/entry/commitment.ts";
import { SECTIONS } from "../../shared/entry/commitment.ts";
import { joinSections } from "../../shared/entry/content.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import { ALL_ERASED } from "../../shared/entry/erase.ts";
import type { Leaf } from "../../shared/entry/leaf.ts";
import { RunsealError } from "../../shared/errors.ts";
import { decodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { entriesPath, TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { contentPath } from "./archive.ts";
import { BoxReader } from "./boxes.ts";
import type { ContentChunk, ContentKeys } from "./content-keys.ts";

export interface ArchiveContext {
  readonly crypto: CryptoPort;
  readonly tree: TileTree;
  readonly keys: ContentKeys;
  readonly bucket: R2Bucket;
  /** Key prefix of the log. */
  readonly prefix: string;
  /** 32 bytes. */
  readonly logId: Uint8Array;
}

/** An entry as R2 and the content keys have it. */
export interface ArchivedEntry {
  readonly seq: number;
  /** The leaf: a window on its bundle. */
  readonly bytes: Uint8Array;
  readonly leaf: Leaf;
  /** The index columns, as in a row. */
  readonly columns: string;
  /**
   * Values and salts as its segment's row had them, without what was erased since. Null where its object is not in R2 any
   * more, or its box does not open: that must not be taken for erased.
   */
  readonly content: EntryContent | null;
}

export class ArchivedEntries {
  readonly #context: ArchiveContext;
  #bundles: ReadonlyMap<number, readonly Uint8Array[]> = new Map();
  #objects: ReadonlyMap<string, BoxReader | null> = new Map();
  #chunks: readonly ContentChunk[] = [];

  constructor(context: ArchiveContext) {
    this.#context = context;
  }

  /**
   * The last entry up to `last` that can be had with `first` from one bundle and one object: at most some 12 MiB.
   *
   * @throws `RunsealError("content-not-boxed")`
   */
  endOfObjects(first: number, last: number): number {
    const { firstSeq, count } = this.#chunkOf(first);
    return Math.min(last, firstSeq + count - 1, tileOf(first) * TILE_WIDTH + TILE_WIDTH);
  }

  /**
   * Holds in memory what R2 has of these entries, and nothing else; what it held of them before is not read again.
   *
   * @throws what R2 throws; `RunsealError("archive-altered")` where a bundle is not in R2, or is another one;
   *   `RunsealError("content-not-boxed")` where an entry's content was not put into R2 yet
   */
  async load(first: number, last: number): Promise<void> {
    if (last > this.#context.keys.boxedSeq) throw notBoxed();
    const bundles = new Map<number, readonly Uint8Array[]>();
    for (let tile = tileOf(first); tile <= tileOf(last); tile++) {
      bundles.set(tile, this.#bundles.get(tile) ?? (await readBundle(this.#context, tile)));
    }
    const objects = new Map<string, BoxReader | null>();
    const chunks: ContentChunk[] = [];
    for (let seq = first; seq <= last; ) {
      const chunk = this.#chunkOf(seq);
      chunks.push(chunk);
      objects.set(chunk.name, this.#objects.get(chunk.name) ?? (await readObject(this.#context, chunk)));
      seq = chunk.firstSeq + chunk.count;
    }
    this.#bundles = bundles;
    this.#objects = objects;
    this.#chunks = chunks;
  }

  /** Lets go of what is held. */
  clear(): void {
    this.#bundles = new Map();
    this.#objects = new Map();
    this.#chunks = [];
  }

  /** Entries that were loaded, as they are at this moment: what was erased meanwhile is not in them. */
  entries(first: number, last: number): ArchivedEntry[] {
    const left = this.#context.keys.leftBetween(first, last);
    const out: ArchivedEntry[] = [];
    let at = 0;
    for (let seq = first; seq <= last; seq++) {
      while (at < this.#chunks.length && !holds(this.#chunks[at], seq)) at += 1;
      const chunk = this.#chunks[at];
      const bytes = this.#bundles.get(tileOf(seq))?.[(seq - 1) % TILE_WIDTH];
      if (chunk === undefined || bytes === undefined)
        throw new RunsealError("storage-inconsistent", "an entry is asked for that was not loaded");
      const leaf = decodeLeaf(bytes);
      const content = left.get(seq) ?? this.#boxed(chunk, seq, leaf);
      out.push({ seq, bytes, leaf, columns: columnsOf(leaf, content?.values ?? null), content });
    }
    return out;
  }

  #boxed(chunk: ContentChunk, seq: number, leaf: Leaf): EntryContent | null {
    const reader = this.#objects.get(chunk.name) ?? null;
    if (reader === null) return null;
    const place = seq - chunk.firstSeq;
    if (reader.isEmpty(place)) return withoutValues(leaf);
    const key = chunk.keys.get(place);
    if (key === undefined) return ALL_ERASED;
    try {
      const [values = "", salts = ""] = reader.open(place, key, this.#context.logId, leaf.id).split("\u0001");
      return { values, salts: salts === "" ? null : salts };
    } catch (error) {
      if (error instanceof RunsealError) return null;
      throw error;
    }
  }

  #chunkOf(seq: number): ContentChunk {
    const chunk = this.#context.keys.chunkOf(seq);
    if (chunk === null) throw notBoxed();
    return chunk;
  }
}

function tileOf(seq: number): number {
  return Math.floor((seq - 1) / TILE_WIDTH);
}

function holds(chunk: ContentChunk | undefined, seq: number): boolean {
  return chunk !== undefined && seq >= chunk.firstSeq && seq < chunk.firstSeq + chunk.count;
}

function notBoxed(): RunsealError {
  return new RunsealError("content-not-boxed", "the entry's content is not in R2 yet");
}

/** The content of an entry none of whose fields came with a value. */
function withoutValues(leaf: Leaf): EntryContent {
  const sections = new Map<SectionName, ReadonlyMap<string, string>>();
  for (const section of SECTIONS) if (leaf[section] !== null) sections.set(section, new Map());
  const text = joinSections(sections);
  return { values: text, salts: text };
}

/** The leaves of a full bundle of the log's, checked by their hashes; also those of entries that still have a segment. */
export async function readBundle(
  { bucket, prefix, crypto, tree }: Omit<ArchiveContext, "keys" | "logId">,
  tile: number,
): Promise<readonly Uint8Array[]> {
  const object = await bucket.get(`${prefix}/${entriesPath(tile)}`);
  if (object === null) throw new RunsealError("archive-altered", "an entry bundle is not in R2 any more");
  const bytes = new Uint8Array(await object.arrayBuffer());
  const altered = () => new RunsealError("archive-altered", "an entry bundle in R2 is not the log's");
  let leaves: readonly Uint8Array[];
  try {
    leaves = decodeEntryBundle(bytes, TILE_WIDTH);
  } catch (error) {
    throw error instanceof RunsealError ? altered() : error;
  }
  const hashes = concat(...leaves.map((leaf) => leafHash(crypto, leaf)));
  if (!equalBytes(hashes, tree.leafHashes(tile * TILE_WIDTH, (tile + 1) * TILE_WIDTH))) throw altered();
  return leaves;
}

/** Null where R2 has no such object, or another one. */
async function readObject(
  { bucket, prefix }: ArchiveContext,
  chunk: ContentChunk,
): Promise<BoxReader | null> {
  const object = await bucket.get(contentPath(prefix, chunk));
  if (object === null) return null;
  try {
    const reader = new BoxReader(new Uint8Array(await object.arrayBuffer()));
    return reader.firstSeq === chunk.firstSeq && reader.count === chunk.count ? reader : null;
  } catch (error) {
    if (error instanceof RunsealError) return null;
    throw error;
  }
}
