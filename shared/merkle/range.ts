/**
 * Range proofs: the leaves [begin, end) of a tree verify against its root on their own, with the perfect nodes that
 * cover what is left and right of them. Leaves stream through in O(log n) memory.
 *
 * @module
 */
import { equalBytes } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { RightEdge } from "./edge.ts";
import { HASH_BYTES } from "./hash.ts";
import type { NodeCoord } from "./nodes.ts";
import { ascend, checkAscend, coverRange } from "./nodes.ts";
import type { ProofCheck } from "./verify.ts";

/** The perfect nodes beside a range of leaves, each list from left to right. */
export interface RangeNodes {
  /** Cover of [0, begin). */
  readonly left: readonly NodeCoord[];
  /** Cover of [end, size). */
  readonly right: readonly NodeCoord[];
}

/**
 * The nodes whose hashes prove the leaves [begin, end) in the tree of that size.
 *
 * @throws `RunsealError("out-of-range")` unless begin <= end <= size
 */
export function rangeNodes(begin: number, end: number, size: number): RangeNodes {
  checkAscend(begin, end, size);
  return { left: coverRange(0, begin), right: coverRange(end, size) };
}

/**
 * Takes the leaf hashes of a range one after the other and gives the root that they lead to. Whether that is the
 * tree's root is for the caller to check: until then nothing about the leaves is known.
 */
export class RangeRoot {
  readonly #edge: RightEdge;

  /**
   * @param begin index of the first leaf to come
   * @param leftHashes hashes of `rangeNodes(begin, ...).left`
   * @throws `RunsealError("bad-edge")` where their number or lengths are others
   */
  constructor(crypto: CryptoPort, begin: number, leftHashes: readonly Uint8Array[]) {
    this.#edge = RightEdge.fromHashes(crypto, begin, leftHashes);
  }

  /** Index of the leaf that comes next; at the end, the end of the range. */
  get next(): number {
    return this.#edge.size;
  }

  /** Takes the next leaf by its hash. Throws `RunsealError("bad-hash")` unless it has 32 bytes. */
  add(leafHash: Uint8Array): void {
    this.#edge.append(leafHash);
  }

  /**
   * The root of the tree of that size of which the leaves so far are a range. More leaves can follow.
   *
   * @param rightHashes hashes of `rangeNodes(begin, next, size).right`
   * @throws `RunsealError("out-of-range")` for a size below `next`; `RunsealError("bad-edge")` where the number or the
   * lengths of the hashes are others
   */
  root(size: number, rightHashes: readonly Uint8Array[]): Uint8Array {
    const right = coverRange(this.next, size);
    if (rightHashes.length !== right.length || rightHashes.some((hash) => hash.length !== HASH_BYTES)) {
      throw new RunsealError("bad-edge", "the hashes are not those right of the range");
    }
    const edge = this.#edge.clone();
    rightHashes.forEach((hash, i) => {
      edge.appendNode(right[i]?.level ?? 0, hash);
    });
    return edge.root();
  }
}

/**
 * The root that the leaves [begin, end) lead to in a tree of that size.
 *
 * @throws `RunsealError`: `out-of-range`, `bad-hash`, or `bad-edge` where the number of leaves, of left or of right
 * hashes is another
 */
export function rootFromRange(
  crypto: CryptoPort,
  begin: number,
  leafHashes: Iterable<Uint8Array>,
  end: number,
  size: number,
  leftHashes: readonly Uint8Array[],
  rightHashes: readonly Uint8Array[],
): Uint8Array {
  checkAscend(begin, end, size);
  const range = new RangeRoot(crypto, begin, leftHashes);
  for (const hash of leafHashes) range.add(hash);
  if (range.next !== end) throw new RunsealError("bad-edge", "the leaves are more or fewer than the range");
  return range.root(size, rightHashes);
}

/** Whether the leaves with these hashes are the range [begin, begin + their number) of the tree of that size and root. */
export function verifyRange(
  crypto: CryptoPort,
  begin: number,
  leafHashes: readonly Uint8Array[],
  size: number,
  leftHashes: readonly Uint8Array[],
  rightHashes: readonly Uint8Array[],
  root: Uint8Array,
): ProofCheck {
  const end = begin + leafHashes.length;
  if (!ascend(begin, end, size)) return { ok: false, reason: "out-of-range" };
  const all = [...leafHashes, ...leftHashes, ...rightHashes, root];
  if (all.some((hash) => hash.length !== HASH_BYTES)) return { ok: false, reason: "bad-hash-length" };
  const { left, right } = rangeNodes(begin, end, size);
  if (leftHashes.length !== left.length || rightHashes.length !== right.length) {
    return { ok: false, reason: "proof-length" };
  }
  const found = rootFromRange(crypto, begin, leafHashes, end, size, leftHashes, rightHashes);
  return equalBytes(found, root) ? { ok: true } : { ok: false, reason: "root-mismatch" };
}
