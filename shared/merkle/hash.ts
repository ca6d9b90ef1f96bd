/**
 * The hashes of an RFC 6962 tree (section 2.1) over SHA-256.
 *
 * @module
 */
import { fromHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";

/** Length of every hash. */
export const HASH_BYTES = 32;

/** Root of the empty tree: SHA-256 of nothing. Shared: don't write to it. */
export const EMPTY_ROOT: Uint8Array = fromHex(
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
);

/** What a leaf's hash takes in front of the leaf. */
export const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;

// Hashing is synchronous and keeps nothing, so that one buffer serves every call.
const node = new Uint8Array(1 + 2 * HASH_BYTES);
node[0] = NODE_PREFIX;
/** Leaves up to this size share a buffer: to allocate one takes longer than to hash it. */
const SHARED_LEAF = 16 * 1024;
const sharedLeaf = new Uint8Array(1 + SHARED_LEAF);
sharedLeaf[0] = LEAF_PREFIX;

/** Hash of a leaf: SHA-256(0x00 || data), 32 bytes. */
export function leafHash(crypto: CryptoPort, data: Uint8Array): Uint8Array {
  if (data.length <= SHARED_LEAF) {
    sharedLeaf.set(data, 1);
    return crypto.sha256(sharedLeaf.subarray(0, 1 + data.length));
  }
  const prefixed = new Uint8Array(1 + data.length);
  prefixed[0] = LEAF_PREFIX;
  prefixed.set(data, 1);
  return crypto.sha256(prefixed);
}

/**
 * Hash of an inner node: SHA-256(0x01 || left || right), 32 bytes.
 *
 * @throws `RunsealError("bad-hash")` where a child has not 32 bytes
 */
export function nodeHash(crypto: CryptoPort, left: Uint8Array, right: Uint8Array): Uint8Array {
  checkHash(left);
  checkHash(right);
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return crypto.sha256(node);
}

/** Throws `RunsealError("bad-hash")` unless the hash has 32 bytes. */
export function checkHash(hash: Uint8Array): void {
  if (hash.length !== HASH_BYTES) throw new RunsealError("bad-hash", "a tree hash has 32 bytes");
}
