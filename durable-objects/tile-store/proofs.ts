/**
 * Proofs and tiles from a stored tree; no leaf is read for a proof.
 *
 * @module
 */
import { concat } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { encodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import type { ProofPlan } from "../../shared/merkle/proof.ts";
import { consistencyNodes, foldProof, inclusionNodes } from "../../shared/merkle/proof.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { TILE_WIDTH, tileWidth } from "../../shared/merkle/tiles.ts";
import type { TileTree } from "./tile-tree.ts";

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
  leaves: (first: number, count: number) => Uint8Array[],
  size: number,
  tile: TileRef,
): Uint8Array | null {
  if (tile.width > tileWidth(tile.kind === "hashes" ? tile.level : 0, tile.index, size)) return null;
  if (tile.kind === "hashes") {
    return tree.tile(tile.level, tile.index)?.slice(0, tile.width * HASH_BYTES) ?? null;
  }
  return encodeEntryBundle(leaves(tile.index * TILE_WIDTH + 1, tile.width));
}

/** The hashes of a path one by one. */
export function hashList(path: Uint8Array): Uint8Array[] {
  const out: Uint8Array[] = [];
  for (let at = 0; at < path.length; at += HASH_BYTES) out.push(path.subarray(at, at + HASH_BYTES));
  return out;
}
