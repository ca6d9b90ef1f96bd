/**
 * Reads content back: from R2 and the log's content keys, for a log whose segments are pruned, and for a D1 that is filled
 * again.
 *
 *     for await (const entry of readBoxes({ keys, bucket, prefix, logId }, first, last, (seq) => idOf(seq))) {
 *       if (entry.state === "read") row(entry.seq, formatRow({ columns, values: entry.values, salts: entry.salts }));
 *     }
 *
 * `first` to `last` must not go beyond `keys.boxedSeq`. The caller knows the entries' ids from their leaves (the bundles
 * `tile/entries/<N>`): a box opens for the entry that it was sealed for, and for no other. Index columns are made again
 * from a leaf and the values by `columnsOf` (shared/entry/columns.ts).
 *
 * @module
 */
import type { EntryContent } from "../../shared/entry/erase.ts";
import { ALL_ERASED } from "../../shared/entry/erase.ts";
import { RunsealError } from "../../shared/errors.ts";
import { contentPath } from "./archive.ts";
import { BoxReader } from "./boxes.ts";
import type { ContentChunk, ContentKeys } from "./content-keys.ts";

export interface BoxesContext {
  readonly keys: ContentKeys;
  readonly bucket: R2Bucket;
  /** Key prefix of the log. */
  readonly prefix: string;
  /** 32 bytes. */
  readonly logId: Uint8Array;
}

/**
 * One entry's content. `read`: values and salts as its segment row had them, without what was erased since. `lost`: the
 * object is not in R2 any more, or its box does not open; it must not be stored as erased.
 */
export type BoxedContent =
  | ({ readonly seq: number; readonly state: "read" } & EntryContent)
  | { readonly seq: number; readonly state: "lost" };

const NO_VALUES: EntryContent = { values: "{}", salts: "{}" };

/**
 * The content of entries `first` to `last`, in order; one object of at most some 8 MiB is held at a time.
 *
 * @throws what R2 throws; `RunsealError("content-not-boxed")` where an entry's content is not in R2 yet
 */
export async function* readBoxes(
  context: BoxesContext,
  first: number,
  last: number,
  idOf: (seq: number) => string,
): AsyncGenerator<BoxedContent> {
  const { keys } = context;
  for (let seq = first; seq <= last; ) {
    const chunk = seq <= keys.boxedSeq ? keys.chunkOf(seq) : null;
    if (chunk === null) throw new RunsealError("content-not-boxed", "the entry's content is not in R2 yet");
    const reader = await openObject(context, chunk);
    const end = Math.min(last, chunk.firstSeq + chunk.count - 1);
    for (; seq <= end; seq++) yield contentOf(context, chunk, reader, seq, idOf(seq));
  }
}

async function openObject({ bucket, prefix }: BoxesContext, chunk: ContentChunk): Promise<BoxReader | null> {
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

function contentOf(
  { keys, logId }: BoxesContext,
  chunk: ContentChunk,
  reader: BoxReader | null,
  seq: number,
  id: string,
): BoxedContent {
  // Asked again for each entry, and not before the object was read: an erasure may have come meanwhile.
  const left = keys.left(seq);
  if (left !== null) return { seq, state: "read", ...left };
  if (reader === null) return { seq, state: "lost" };
  const place = seq - chunk.firstSeq;
  if (reader.isEmpty(place)) return { seq, state: "read", ...NO_VALUES };
  const key = chunk.keys.get(place);
  if (key === undefined) return { seq, state: "read", ...ALL_ERASED };
  try {
    const [values = "", salts = ""] = reader.open(place, key, logId, id).split("\u0001");
    return { seq, state: "read", values, salts: salts === "" ? null : salts };
  } catch (error) {
    if (error instanceof RunsealError) return { seq, state: "lost" };
    throw error;
  }
}
