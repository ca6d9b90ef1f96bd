/**
 * What a reader of entries gets with them: leaf hashes with the nodes that prove them, and the leaves themselves.
 *
 * @module
 */
import { concat, toBase64, toHex } from "../../shared/bytes.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { rangeNodes } from "../../shared/merkle/range.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { decodeBytes, decodeFrame } from "./frame.ts";
import type { LogStorage } from "./storage.ts";
import type { HeadView, RangeEvidence, StoredRow } from "./types.ts";

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

/** Entries from `first` on to `last`, from the log's own storage, bounded in bytes; at least one where it has one. */
export function storedPage(storage: LogStorage, tree: TileTree, first: number, last: number): StoredRow[] {
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
    let seq = segment.firstSeq;
    for (const leaf of decodeBytes(segment.leaves)) {
      if (seq >= first && seq < first + count) leaves.push(leaf);
      seq += 1;
    }
  }
  return leaves;
}
