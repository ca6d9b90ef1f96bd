/**
 * Proofs and tiles from the stored tree; no entry is read for a proof.
 *
 * @module
 */
import { concat } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { encodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import type { ProofPlan } from "../../shared/merkle/proof.ts";
import { consistencyNodes, foldProof, inclusionNodes } from "../../shared/merkle/proof.ts";
import { rangeNodes } from "../../shared/merkle/range.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { TILE_WIDTH, tileWidth } from "../../shared/merkle/tiles.ts";
import { decodeBytes } from "./frame.ts";
import type { LogStorage } from "./storage.ts";
import type { TileTree } from "./tree.ts";
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

function prove(crypto: CryptoPort, tree: TileTree, plan: ProofPlan): Uint8Array {
  const hashes = plan.nodes.map((node) => tree.node(node));
  return concat(...foldProof(crypto, plan, hashes));
}

/** RFC 6962 audit paths, hashes joined; an entry that is not in the tree of this size has none. */
export function inclusionPaths(
  crypto: CryptoPort,
  tree: TileTree,
  seqs: readonly number[],
  size: number,
): Uint8Array[] {
  return seqs.filter((seq) => seq <= size).map((seq) => prove(crypto, tree, inclusionNodes(seq - 1, size)));
}

/** The RFC 6962 consistency proof, hashes joined. */
export function consistencyPath(crypto: CryptoPort, tree: TileTree, from: number, to: number): Uint8Array {
  return from === 0 ? new Uint8Array() : prove(crypto, tree, consistencyNodes(from, to));
}

/** A tile or bundle, full or partial, as C2SP tlog-tiles has it; null where the log is not that large. */
export function tileBytes(
  tree: TileTree,
  storage: LogStorage,
  size: number,
  tile: TileRef,
): Uint8Array | null {
  if (tile.width > tileWidth(tile.kind === "hashes" ? tile.level : 0, tile.index, size)) return null;
  if (tile.kind === "hashes") {
    return tree.tile(tile.level, tile.index)?.slice(0, tile.width * HASH_BYTES) ?? null;
  }
  return encodeEntryBundle(leavesOf(storage, tile.index * TILE_WIDTH + 1, tile.width));
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
