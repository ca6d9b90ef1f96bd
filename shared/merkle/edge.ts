/**
 * The right edge of a tree: the hashes of the perfect subtrees that make it up, at most 53 of them. It is all that an
 * append needs, at any size.
 *
 * @module
 */
import { concat } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { checkHash, HASH_BYTES, nodeHash } from "./hash.ts";
import type { TreeNode } from "./nodes.ts";
import { checkAscend, coverRange, foldNodes } from "./nodes.ts";

const NOTHING: readonly TreeNode[] = [];

/** Bytes of the size in front of the hashes. */
const SIZE_BYTES = 8;

/** A tree of which only the right edge is kept: it can grow and give its root. */
export class RightEdge {
  readonly #crypto: CryptoPort;
  /** Perfect subtrees, the largest (leftmost) first: one for each bit of the size. */
  #hashes: Uint8Array[] = [];
  #size = 0;

  constructor(crypto: CryptoPort) {
    this.#crypto = crypto;
  }

  /**
   * The edge of a tree of that size, from the hashes of `coverRange(0, size)`.
   *
   * @throws `RunsealError("bad-edge")` where the number or the lengths of the hashes don't fit the size
   */
  static fromHashes(crypto: CryptoPort, size: number, hashes: readonly Uint8Array[]): RightEdge {
    checkAscend(0, size);
    const fits =
      hashes.length === coverRange(0, size).length && hashes.every((hash) => hash.length === HASH_BYTES);
    if (!fits) throw new RunsealError("bad-edge", "the hashes are not those of an edge of this size");
    const edge = new RightEdge(crypto);
    edge.#size = size;
    edge.#hashes = hashes.map((hash) => hash.slice());
    return edge;
  }

  /**
   * The edge that `toBytes` wrote.
   *
   * @throws `RunsealError("bad-edge")`
   */
  static fromBytes(crypto: CryptoPort, bytes: Uint8Array): RightEdge {
    const count = (bytes.length - SIZE_BYTES) / HASH_BYTES;
    if (!Number.isInteger(count) || count < 0)
      throw new RunsealError("bad-edge", "the edge has a wrong length");
    const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0));
    if (!Number.isSafeInteger(size)) throw new RunsealError("bad-edge", "the edge's size is out of range");
    const hashes = Array.from({ length: count }, (_, i) =>
      bytes.subarray(SIZE_BYTES + i * HASH_BYTES, SIZE_BYTES + (i + 1) * HASH_BYTES),
    );
    return RightEdge.fromHashes(crypto, size, hashes);
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /**
   * Appends a leaf by its hash (which is copied), in O(1) amortised. Answers the perfect nodes at levels 1 and up that
   * this completed, the lowest first: what is to be stored, or put into tiles, besides the leaf hash.
   *
   * @throws `RunsealError("bad-hash")`; `RunsealError("out-of-range")` for a tree of 2^53 - 1 leaves
   */
  append(leafHash: Uint8Array): TreeNode[] {
    return this.appendNode(0, leafHash);
  }

  /**
   * Appends a whole perfect subtree of 2^level leaves by its hash; the size must be a multiple of that. Answers the
   * nodes above it that this completed.
   *
   * @throws `RunsealError("bad-hash")`; `RunsealError("out-of-range")` where it does not fit there
   */
  appendNode(level: number, hash: Uint8Array): TreeNode[] {
    checkHash(hash);
    const width = 2 ** level;
    checkAscend(level);
    checkAscend(this.#size, this.#size + width);
    if (this.#size % width !== 0)
      throw new RunsealError("out-of-range", "the subtree does not fit at this size");
    const completed: TreeNode[] = [];
    let index = this.#size / width;
    let top: Uint8Array = hash.slice();
    for (let at = level + 1; index % 2 === 1; at++) {
      const left = this.#hashes.pop();
      if (left === undefined) break; // there is one for each bit of the size
      index = (index - 1) / 2;
      top = nodeHash(this.#crypto, left, top);
      completed.push({ level: at, index, hash: top });
    }
    this.#hashes.push(completed.length === 0 ? top : top.slice());
    this.#size += width;
    return completed;
  }

  /**
   * As `append`, without copies: the edge keeps the hash and those that it answers, and nobody may write to them.
   *
   * @throws `RunsealError("bad-hash")`; `RunsealError("out-of-range")` for a tree of 2^53 - 1 leaves
   */
  take(leafHash: Uint8Array): readonly TreeNode[] {
    checkHash(leafHash);
    if (this.#size >= Number.MAX_SAFE_INTEGER) throw new RunsealError("out-of-range", "the tree is full");
    let index = this.#size;
    let top = leafHash;
    this.#size += 1;
    if (index % 2 === 0) {
      this.#hashes.push(top);
      return NOTHING;
    }
    const completed: TreeNode[] = [];
    for (let level = 1; index % 2 === 1; level++) {
      const left = this.#hashes.pop();
      if (left === undefined) break; // there is one for each bit of the size
      index = (index - 1) / 2;
      top = nodeHash(this.#crypto, left, top);
      completed.push({ level, index, hash: top });
    }
    this.#hashes.push(top);
    return completed;
  }

  /** Root of the tree, 32 bytes; of the empty tree, SHA-256 of nothing. O(log n). */
  root(): Uint8Array {
    return foldNodes(this.#crypto, this.#hashes);
  }

  /** The hashes of `coverRange(0, size)`: copies, the largest subtree first. */
  hashes(): Uint8Array[] {
    return this.#hashes.map((hash) => hash.slice());
  }

  /** The size as 8 big-endian bytes, then the hashes: at most 1,704 bytes. */
  toBytes(): Uint8Array {
    const size = new Uint8Array(SIZE_BYTES);
    new DataView(size.buffer).setBigUint64(0, BigInt(this.#size));
    return concat(size, ...this.#hashes);
  }

  /** Another edge with the same leaves, which grows on its own. */
  clone(): RightEdge {
    return RightEdge.fromHashes(this.#crypto, this.#size, this.#hashes);
  }
}
