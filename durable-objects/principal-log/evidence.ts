/**
 * What a reader of entries gets with them: leaf hashes with the nodes that prove them, and the leaves themselves.
 *
 * @module
 */
import { concat } from "../../shared/bytes.ts";
import { rangeNodes } from "../../shared/merkle/range.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { decodeBytes } from "./frame.ts";
import type { LogStorage } from "./storage.ts";
import type { HeadView, RangeEvidence } from "./types.ts";

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
