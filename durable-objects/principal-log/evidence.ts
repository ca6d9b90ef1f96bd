/**
 * What a reader of entries gets with them: leaf hashes with the nodes that prove them, and the leaves themselves. Those of
 * pruned entries come from R2.
 *
 * @module
 */
import { concat, toBase64, toHex } from "../../shared/bytes.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import { encodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { rangeNodes } from "../../shared/merkle/range.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { ArchiveContext } from "../content/archived-entries.ts";
import { ArchivedEntries, readBundle } from "../content/archived-entries.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { decodeBytes, decodeFrame } from "./frame.ts";
import type { LogStorage } from "./storage.ts";
import type {
  HeadView,
  RangeEvidence,
  StoredPageOutcome,
  StoredRow,
  TileOutcome,
  Unavailable,
} from "./types.ts";
import { unavailable } from "./types.ts";

/** Leaf hashes that one call answers at most: 1 MiB. */
const MAX_RANGE = 32_768;

/** The leaf hashes [begin, end), cut to what one call carries, and what proves them under the head. */
export function rangeEvidence(tree: TileTree, head: HeadView, begin: number, end: number): RangeEvidence {
  const last = Math.min(end, head.size, begin + MAX_RANGE);
  const first = Math.min(begin, last);
  const { left, right } = rangeNodes(first, last, head.size);
  return {
    head,
    begin: first,
    leaves: tree.leafHashes(first, last),
    left: concat(...left.map((node) => tree.node(node))),
    right: concat(...right.map((node) => tree.node(node))),
  };
}

/** Bytes of the leaves and rows that one call answers. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** Entries from `first` on to `last`, from where the log has them, bounded in bytes; at least one where it has one. */
export async function storedPage(
  storage: LogStorage,
  archive: ArchiveContext,
  first: number,
  last: number,
): Promise<StoredPageOutcome> {
  const { prunedSeq } = storage;
  if (first > prunedSeq) return { ok: true, rows: storedRows(storage, archive.tree, first, last) };
  return fromArchive(async () => ({
    ok: true,
    rows: await prunedRows(archive, first, Math.min(last, prunedSeq)),
  }));
}

/** An entry whose values R2 has lost comes without: its leaf is what it was. */
async function prunedRows(archive: ArchiveContext, first: number, last: number): Promise<StoredRow[]> {
  const archived = new ArchivedEntries(archive);
  const rows: StoredRow[] = [];
  let bytes = 0;
  for (let from = first; from <= last && bytes <= MAX_PAGE_BYTES; ) {
    const end = archived.endOfObjects(from, last);
    await archived.load(from, end);
    for (const { seq, bytes: leaf, content } of archived.entries(from, end)) {
      const { values, salts } = content ?? { values: null, salts: null };
      if (content === null) logEvent("content-lost", { prefix: archive.prefix, seq });
      const hash = toHex(archive.tree.leafHashes(seq - 1, seq));
      rows.push({ seq, hash, leaf: toBase64(leaf), content: values, salts });
      bytes += leaf.length + (values?.length ?? 0) + (salts?.length ?? 0);
    }
    from = end + 1;
  }
  return rows;
}

/** The bundle of a tile whose leaves, or some of them, are in R2 alone. */
export function prunedBundle(archive: ArchiveContext, tile: number, width: number): Promise<TileOutcome> {
  return fromArchive(async () => {
    const leaves = await readBundle(archive, tile);
    return { ok: true, bytes: encodeEntryBundle(leaves.slice(0, width)) };
  });
}

async function fromArchive<T>(read: () => Promise<T>): Promise<T | Unavailable> {
  try {
    return await read();
  } catch (error) {
    const code = error instanceof RunsealError ? error.code : "unavailable";
    logEvent("archive-unreadable", { code });
    return unavailable("mirror-unavailable", "entries that are in R2 alone can't be read from there", 2);
  }
}

function storedRows(storage: LogStorage, tree: TileTree, first: number, last: number): StoredRow[] {
  const rows: StoredRow[] = [];
  let bytes = 0;
  for (const segment of storage.segmentsFrom(first)) {
    let seq = segment.firstSeq;
    for (const { bytes: leaf, row } of decodeFrame({ bytes: segment.leaves, rows: segment.rows })) {
      if (seq > last || bytes > MAX_PAGE_BYTES) return rows;
      if (seq >= first) {
        const { values, salts } = parseRow(row);
        const hash = toHex(tree.leafHashes(seq - 1, seq));
        rows.push({ seq, hash, leaf: toBase64(leaf), content: values, salts });
        bytes += leaf.length + row.length;
      }
      seq += 1;
    }
  }
  return rows;
}

/** `count` leaves from `first` on. */
export function leavesOf(storage: LogStorage, first: number, count: number): Uint8Array[] {
  const leaves: Uint8Array[] = [];
  for (const segment of storage.segmentsFrom(first)) {
    if (segment.firstSeq >= first + count) break;
    const { firstSeq } = segment;
    leaves.push(...decodeBytes(segment.leaves, first - firstSeq, first + count - firstSeq));
  }
  return leaves;
}
