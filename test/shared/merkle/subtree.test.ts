import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import {
  foldProof,
  isSubtree,
  subtreeConsistencyNodes,
  subtreeInclusionNodes,
} from "../../../shared/merkle/proof.ts";
import { verifySubtreeConsistency, verifySubtreeInclusion } from "../../../shared/merkle/verify.ts";
import { fetchNodes, flipped, leafHashes, naiveRoot } from "./naive-tree.ts";

const LEAVES = leafHashes(600);
const crypto = nativeCrypto;

describe("subtree proofs", () => {
  it("know what a subtree is", () => {
    for (const [start, end] of [
      [0, 0],
      [5, 5],
      [0, 1],
      [7, 8],
      [0, 5],
      [8, 13],
      [4, 6],
      [16, 32],
    ] as const) {
      // prettier-ignore
      expect(isSubtree(start, end)).toBe(true);
    }
    for (const [start, end] of [
      [1, 3],
      [3, 5],
      [4, 9],
      [2, 1],
      [8, 17],
      [-2, 0],
      [0, 2 ** 53],
    ] as const) {
      // prettier-ignore
      expect(isSubtree(start, end)).toBe(false);
    }
  });

  it("can't be planned for what is none", () => {
    expect(() => subtreeInclusionNodes(3, 3, 5)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    expect(() => subtreeInclusionNodes(3, 4, 8)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    expect(() => subtreeInclusionNodes(8, 4, 8)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    expect(() => subtreeConsistencyNodes(3, 5, 8)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    expect(() => subtreeConsistencyNodes(4, 8, 7)).toThrow(expect.objectContaining({ code: "out-of-range" }));
  });

  it("are refused with any bit flipped", () => {
    const subtree = fc
      .tuple(fc.nat(7), fc.nat(63), fc.nat(), fc.nat(400))
      .map(([level, block, cut, more]) => {
        const width = 2 ** level;
        const end = block * width + (cut % width) + 1;
        return { start: block * width, end, size: Math.min(end + more, LEAVES.length) };
      });
    fc.assert(
      fc.property(
        subtree.filter(({ start, end, size }) => isSubtree(start, end) && size >= end),
        fc.nat(),
        (tree, at) => {
          const { start, end, size } = tree;
          const leaves = LEAVES.slice(0, size);
          const root = naiveRoot(leaves.slice(start, end));
          const plan = subtreeConsistencyNodes(start, end, size);
          const proof = foldProof(crypto, plan, fetchNodes(leaves, plan.nodes));
          const verify = ([old, whole, ...hashes]: Uint8Array[]) =>
            verifySubtreeConsistency(crypto, start, end, size, hashes, old!, whole!).ok;
          const all = [root, naiveRoot(leaves), ...proof];
          expect(verify(all)).toBe(true);
          expect(verify(flipped(all, at))).toBe(false);

          const index = start + (at % (end - start));
          const path = subtreeInclusionNodes(index, start, end);
          const inclusion = [
            leaves[index]!,
            root,
            ...foldProof(crypto, path, fetchNodes(leaves, path.nodes)),
          ];
          const includes = ([leaf, top, ...hashes]: Uint8Array[]) =>
            verifySubtreeInclusion(crypto, index, start, end, leaf!, hashes, top!).ok;
          expect(includes(inclusion)).toBe(true);
          expect(includes(flipped(inclusion, at))).toBe(false);
        },
      ),
    );
  });
});
