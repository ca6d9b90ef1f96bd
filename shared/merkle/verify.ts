/**
 * Verification of inclusion and consistency proofs (RFC 6962 section 2.1, RFC 9162 section 2.1, and for subtrees
 * draft-ietf-plants-merkle-tree-certs section 4).
 *
 * @module
 */
import { equalBytes } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { EMPTY_ROOT, HASH_BYTES, nodeHash } from "./hash.ts";
import { ascend } from "./nodes.ts";
import { consistencySteps, inclusionSteps, isSubtree } from "./proof.ts";

/** Why a proof does not hold. */
export type ProofFault =
  /** An index or size that is no safe integer, or not in order. */
  | "out-of-range"
  /** A hash that has not 32 bytes. */
  | "bad-hash-length"
  /** Too few or too many hashes. */
  | "proof-length"
  /** The proof leads to another root; in a consistency proof, of the new tree. */
  | "root-mismatch"
  /** The consistency proof leads to another root of the old tree. */
  | "old-root-mismatch";

/** Whether a proof holds. */
export type ProofCheck = { readonly ok: true } | { readonly ok: false; readonly reason: ProofFault };

const HOLDS: ProofCheck = { ok: true };

function fault(reason: ProofFault): ProofCheck {
  return { ok: false, reason };
}

function areHashes(...hashes: readonly Uint8Array[]): boolean {
  return hashes.every((hash) => hash.length === HASH_BYTES);
}

/** Whether the leaf with that hash is at `index` in the tree of that size and root. */
export function verifyInclusion(
  crypto: CryptoPort,
  index: number,
  size: number,
  leafHash: Uint8Array,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): ProofCheck {
  return verifySubtreeInclusion(crypto, index, 0, size, leafHash, proof, root);
}

/** Whether the leaf with that hash is at `index` (of the whole tree) in the subtree [start, end) with that root. */
export function verifySubtreeInclusion(
  crypto: CryptoPort,
  index: number,
  start: number,
  end: number,
  leafHash: Uint8Array,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): ProofCheck {
  if (!isSubtree(start, end) || !ascend(start, index, end) || index === end) return fault("out-of-range");
  const steps = inclusionSteps(index, start, end);
  if (proof.length !== steps.length) return fault("proof-length");
  if (!areHashes(leafHash, root, ...proof)) return fault("bad-hash-length");
  const top = proof.reduce(
    (hash, sibling, i) =>
      steps[i]?.side === "right" ? nodeHash(crypto, hash, sibling) : nodeHash(crypto, sibling, hash),
    leafHash,
  );
  return equalBytes(top, root) ? HOLDS : fault("root-mismatch");
}

/**
 * Whether the tree of size `m` and root `root1` is a prefix of the tree of size `n` and root `root2`. The empty tree is
 * a prefix of every tree: with m = 0 this holds if root1 is the empty tree's root and the proof is empty, and it says
 * nothing of the other tree.
 */
export function verifyConsistency(
  crypto: CryptoPort,
  m: number,
  n: number,
  proof: readonly Uint8Array[],
  root1: Uint8Array,
  root2: Uint8Array,
): ProofCheck {
  const check = verifySubtreeConsistency(crypto, 0, m, n, proof, root1, root2);
  if (!check.ok || m > 0) return check;
  if (!areHashes(root2)) return fault("bad-hash-length");
  return n > 0 || equalBytes(root2, EMPTY_ROOT) ? HOLDS : fault("root-mismatch");
}

/**
 * Whether the subtree [start, end) with that root is part of the tree of that size and root. The empty subtree is part
 * of every tree, whose root is then not looked at.
 */
export function verifySubtreeConsistency(
  crypto: CryptoPort,
  start: number,
  end: number,
  size: number,
  proof: readonly Uint8Array[],
  subtreeRoot: Uint8Array,
  root: Uint8Array,
): ProofCheck {
  if (!isSubtree(start, end) || !ascend(end, size)) return fault("out-of-range");
  if (start === end) return verifyEmptySubtree(proof, subtreeRoot);
  if (start === 0 && end === size) {
    if (proof.length !== 0) return fault("proof-length");
    return equalBytes(subtreeRoot, root) ? HOLDS : fault("root-mismatch");
  }
  const { steps, seed } = consistencySteps(start, end, size);
  if (proof.length !== steps.length + (seed === undefined ? 0 : 1)) return fault("proof-length");
  if (!areHashes(subtreeRoot, root, ...proof)) return fault("bad-hash-length");
  let newHash = seed === undefined ? subtreeRoot : (proof[0] ?? subtreeRoot);
  let oldHash = newHash;
  proof.slice(seed === undefined ? 0 : 1).forEach((sibling, i) => {
    const side = steps[i]?.side;
    if (side === "both") oldHash = nodeHash(crypto, sibling, oldHash);
    newHash = side === "right" ? nodeHash(crypto, newHash, sibling) : nodeHash(crypto, sibling, newHash);
  });
  if (!equalBytes(oldHash, subtreeRoot)) return fault("old-root-mismatch");
  return equalBytes(newHash, root) ? HOLDS : fault("root-mismatch");
}

function verifyEmptySubtree(proof: readonly Uint8Array[], subtreeRoot: Uint8Array): ProofCheck {
  if (proof.length !== 0) return fault("proof-length");
  return equalBytes(subtreeRoot, EMPTY_ROOT) ? HOLDS : fault("old-root-mismatch");
}
