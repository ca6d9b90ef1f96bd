/**
 * RFC 6962 section 2.1 by its recursive definitions, over all leaf hashes at once: slow, and plainly right.
 *
 * @module
 */
import { nativeCrypto } from "../../../native/crypto.ts";
import { concat } from "../../../shared/bytes.ts";
import type { NodeCoord } from "../../../shared/merkle/nodes.ts";

const sha256 = nativeCrypto.sha256;

function split(width: number): number {
  let k = 1;
  while (k * 2 < width) k *= 2;
  return k;
}

/** Hashes of `count` leaves, each of which is its index as text. */
export function leafHashes(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) =>
    sha256(concat(new Uint8Array([0]), new TextEncoder().encode(String(i)))),
  );
}

/** MTH(D). */
export function naiveRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return leaves[0]!;
  const k = split(leaves.length);
  return sha256(concat(new Uint8Array([1]), naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k))));
}

/** PATH(m, D). */
export function naivePath(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  return m < k
    ? [...naivePath(m, leaves.slice(0, k)), naiveRoot(leaves.slice(k))]
    : [...naivePath(m - k, leaves.slice(k)), naiveRoot(leaves.slice(0, k))];
}

/** SUBPROOF(m, D, b); PROOF(m, D) is SUBPROOF(m, D, true). */
export function naiveProof(m: number, leaves: readonly Uint8Array[], whole = true): Uint8Array[] {
  if (m === leaves.length) return whole ? [] : [naiveRoot(leaves)];
  const k = split(leaves.length);
  return m <= k
    ? [...naiveProof(m, leaves.slice(0, k), whole), naiveRoot(leaves.slice(k))]
    : [...naiveProof(m - k, leaves.slice(k), false), naiveRoot(leaves.slice(0, k))];
}

/** Hash of a perfect node, from the leaves. */
export function naiveNode(leaves: readonly Uint8Array[], { level, index }: NodeCoord): Uint8Array {
  const width = 2 ** level;
  if ((index + 1) * width > leaves.length) throw new Error("the node is not perfect in this tree");
  return naiveRoot(leaves.slice(index * width, (index + 1) * width));
}

/** Hashes of those perfect nodes. */
export function fetchNodes(leaves: readonly Uint8Array[], nodes: readonly NodeCoord[]): Uint8Array[] {
  return nodes.map((node) => naiveNode(leaves, node));
}

/** The hashes with one bit of one of them flipped. */
export function flipped(hashes: readonly Uint8Array[], at: number): Uint8Array[] {
  const out = hashes.map((hash) => hash.slice());
  const bit = at % (256 * hashes.length);
  out[bit >> 8]![(bit & 255) >> 3]! ^= 1 << (bit & 7);
  return out;
}
