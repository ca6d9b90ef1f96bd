/**
 * Where the nodes of a tree are. A *perfect* node has 2^level leaves below it and never changes once it is there:
 * storage and tiles hold perfect nodes only. Everything else of a tree (its root, the siblings along its right edge)
 * is folded from them.
 *
 * Sizes and indices are numbers up to 2^53 - 1: no 32-bit operator may touch them.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { EMPTY_ROOT, nodeHash } from "./hash.ts";

/** A perfect node: it covers the leaves [index * 2^level, (index + 1) * 2^level). */
export interface NodeCoord {
  readonly level: number;
  readonly index: number;
}

/** A perfect node with its hash, 32 bytes. */
export interface TreeNode extends NodeCoord {
  readonly hash: Uint8Array;
}

/** Whether these are sizes or indices, in ascending order. */
export function ascend(...values: readonly number[]): boolean {
  return values.every(
    (value, i) => Number.isSafeInteger(value) && value >= 0 && (i === 0 || value >= (values[i - 1] ?? 0)),
  );
}

/** Throws `RunsealError("out-of-range")` unless these are sizes or indices in ascending order. */
export function checkAscend(...values: readonly number[]): void {
  if (!ascend(...values)) throw new RunsealError("out-of-range", "an index or size is out of range");
}

/** The largest power of two below `width`, which is at least 2: where RFC 6962 splits a list. */
export function splitPoint(width: number): number {
  let power = 1;
  while (power * 2 < width) power *= 2;
  return power;
}

/**
 * The fewest perfect nodes that cover the leaves [begin, end), from left to right: at most two for each level.
 * For [0, size) these are the tree's right edge, the largest first.
 *
 * @throws `RunsealError("out-of-range")`
 */
export function coverRange(begin: number, end: number): NodeCoord[] {
  checkAscend(begin, end);
  const out: NodeCoord[] = [];
  for (let at = begin; at < end; ) {
    let level = 0;
    let width = 1;
    while (at % (2 * width) === 0 && at + 2 * width <= end) {
      width *= 2;
      level++;
    }
    out.push({ level, index: at / width });
    at += width;
  }
  return out;
}

/**
 * The root of the subtree whose perfect nodes, the largest first, have these hashes: each takes all that is right of
 * it. Of no hashes: the root of the empty tree. The result is the caller's own.
 */
export function foldNodes(crypto: CryptoPort, hashes: readonly Uint8Array[]): Uint8Array {
  const last = hashes.at(-1);
  if (last === undefined) return EMPTY_ROOT.slice();
  if (hashes.length === 1) return last.slice();
  return hashes.slice(0, -1).reduceRight((right, left) => nodeHash(crypto, left, right), last);
}
