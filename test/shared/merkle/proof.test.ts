import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { EMPTY_ROOT } from "../../../shared/merkle/hash.ts";
import { coverRange } from "../../../shared/merkle/nodes.ts";
import { consistencyNodes, foldProof, inclusionNodes } from "../../../shared/merkle/proof.ts";
import { verifyConsistency, verifyInclusion } from "../../../shared/merkle/verify.ts";
import { fetchNodes, flipped, leafHashes, naivePath, naiveProof, naiveRoot } from "./naive-tree.ts";

const LEAVES = leafHashes(600);
const crypto = nativeCrypto;

/** A tree size and an index in it. */
const place = fc.integer({ min: 1, max: 600 }).chain((size) => fc.tuple(fc.nat(size - 1), fc.constant(size)));
/** Two tree sizes, 1 <= m < n. */
const sizes = fc
  .integer({ min: 2, max: 600 })
  .chain((n) => fc.tuple(fc.integer({ min: 1, max: n - 1 }), fc.constant(n)));

/** Ways to spoil a list of hashes, other than flipping bits. */
function spoiled(hashes: readonly Uint8Array[], at: number): Uint8Array[][] {
  const i = at % hashes.length;
  const out = [
    hashes.toSpliced(i, 1),
    hashes.toSpliced(i, 0, hashes[i]!),
    [...hashes, EMPTY_ROOT],
    [EMPTY_ROOT, ...hashes],
    hashes.with(i, hashes[i]!.subarray(1)),
    hashes.with(i, new Uint8Array([...hashes[i]!, 0])),
  ];
  if (hashes.length > 1) out.push([...hashes].reverse());
  return out;
}

describe("inclusion proofs", () => {
  const proofOf = (index: number, size: number) => {
    const plan = inclusionNodes(index, size);
    return foldProof(crypto, plan, fetchNodes(LEAVES.slice(0, size), plan.nodes));
  };

  it("are PATH(m, D) of RFC 6962 and verify, under both ports", () => {
    fc.assert(
      fc.property(place, ([index, size]) => {
        const leaves = LEAVES.slice(0, size);
        const proof = proofOf(index, size);
        expect(proof).toEqual(naivePath(index, leaves));
        for (const port of [nativeCrypto, pureCrypto]) {
          expect(verifyInclusion(port, index, size, leaves[index]!, proof, naiveRoot(leaves))).toEqual({
            ok: true,
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("are refused with any bit of leaf, proof or root flipped, and under both ports alike", () => {
    fc.assert(
      fc.property(place, fc.nat(), ([index, size], at) => {
        const root = naiveRoot(LEAVES.slice(0, size));
        const [leaf, top, ...proof] = flipped([LEAVES[index]!, root, ...proofOf(index, size)], at);
        for (const port of [nativeCrypto, pureCrypto]) {
          expect(verifyInclusion(port, index, size, leaf!, proof, top!)).toEqual({
            ok: false,
            reason: "root-mismatch",
          });
        }
      }),
      { numRuns: 200 },
    );
  });

  it("are refused with a hash dropped, added, cut, or in another order", () => {
    fc.assert(
      fc.property(
        place.filter(([, size]) => size > 1),
        fc.nat(),
        ([index, size], at) => {
          const root = naiveRoot(LEAVES.slice(0, size));
          for (const proof of spoiled(proofOf(index, size), at)) {
            expect(verifyInclusion(crypto, index, size, LEAVES[index]!, proof, root).ok).toBe(false);
          }
        },
      ),
    );
  });

  it("are refused for every other index, and for every size with another path", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 70 }), fc.nat(), (size, at) => {
        const index = at % size;
        const root = naiveRoot(LEAVES.slice(0, size));
        const proof = proofOf(index, size);
        const verify = (i: number, n: number) =>
          verifyInclusion(crypto, i, n, LEAVES[index]!, proof, root).ok;
        for (let other = 0; other < size; other++) expect(verify(other, size)).toBe(other === index);
        for (let other = 0; other <= 140; other++) {
          // The path of a leaf, as sides, is the same in many sizes; the size is bound by the signed head.
          const alike = other > index && sidesOf(index, other) === sidesOf(index, size);
          expect(verify(index, other)).toBe(alike);
        }
      }),
      { numRuns: 40 },
    );
  });

  function sidesOf(index: number, size: number): string {
    if (size === 1) return "";
    let k = 1;
    while (k * 2 < size) k *= 2;
    return index < k ? `${sidesOf(index, k)}r` : `${sidesOf(index - k, size - k)}l`;
  }

  it("are refused, and can't be planned, for places that are none", () => {
    const bad = [
      [0, 0],
      [1, 1],
      [5, 3],
      [-1, 3],
      [0.5, 3],
      [0, 2 ** 53],
      [Number.NaN, 3],
      [0, Number.POSITIVE_INFINITY],
    ]; // prettier-ignore
    for (const [index, size] of bad) {
      expect(verifyInclusion(crypto, index!, size!, EMPTY_ROOT, [], EMPTY_ROOT)).toEqual({
        ok: false,
        reason: "out-of-range",
      });
      expect(() => inclusionNodes(index!, size!)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    }
  });

  it("are refused for a leaf hash or a root that is no hash", () => {
    const short = EMPTY_ROOT.subarray(1);
    for (const [leaf, root] of [
      [short, EMPTY_ROOT],
      [EMPTY_ROOT, short],
      [short, short],
    ] as const) {
      // prettier-ignore
      expect(verifyInclusion(crypto, 0, 1, leaf, [], root)).toEqual({ ok: false, reason: "bad-hash-length" });
    }
  });

  it("fold only from the plan's own number of hashes", () => {
    const plan = inclusionNodes(3, 7);
    const hashes = fetchNodes(LEAVES.slice(0, 7), plan.nodes);
    for (const others of [hashes.slice(1), [...hashes, EMPTY_ROOT], []]) {
      expect(() => foldProof(crypto, plan, others)).toThrow(
        expect.objectContaining({ code: "proof-hashes" }),
      );
    }
  });

  it("need O(log n) nodes at the largest sizes, all of them perfect and in the tree", () => {
    const max = Number.MAX_SAFE_INTEGER;
    for (const index of [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 52, max - 1]) {
      const plan = inclusionNodes(index, max);
      expect(plan.nodes.length).toBeLessThanOrEqual(106);
      expect(plan.counts.reduce((sum, count) => sum + count, 0)).toBe(plan.nodes.length);
      for (const node of plan.nodes) expect((node.index + 1) * 2 ** node.level).toBeLessThanOrEqual(max);
      // Together with the leaf they cover the tree once: sizes beyond 2^53 are summed as bigints.
      const covered = plan.nodes.reduce((sum, node) => sum + (1n << BigInt(node.level)), 1n);
      expect(covered).toBe(BigInt(max));
    }
  });
});

describe("consistency proofs", () => {
  const proofOf = (m: number, n: number) => {
    const plan = consistencyNodes(m, n);
    return foldProof(crypto, plan, fetchNodes(LEAVES.slice(0, n), plan.nodes));
  };
  const rootOf = (size: number) => naiveRoot(LEAVES.slice(0, size));

  it("are PROOF(m, D) of RFC 6962 and verify, under both ports", () => {
    fc.assert(
      fc.property(sizes, ([m, n]) => {
        const proof = proofOf(m, n);
        expect(proof).toEqual(naiveProof(m, LEAVES.slice(0, n)));
        for (const port of [nativeCrypto, pureCrypto]) {
          expect(verifyConsistency(port, m, n, proof, rootOf(m), rootOf(n))).toEqual({ ok: true });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("are refused with any bit of either root or the proof flipped, and under both ports alike", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), ([m, n], at) => {
        const [root1, root2, ...proof] = flipped([rootOf(m), rootOf(n), ...proofOf(m, n)], at);
        const check = verifyConsistency(nativeCrypto, m, n, proof, root1!, root2!);
        expect(check.ok).toBe(false);
        expect(verifyConsistency(pureCrypto, m, n, proof, root1!, root2!)).toEqual(check);
      }),
      { numRuns: 200 },
    );
  });

  it("are refused with a hash dropped, added, cut, or in another order", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), ([m, n], at) => {
        for (const proof of spoiled(proofOf(m, n), at)) {
          expect(verifyConsistency(crypto, m, n, proof, rootOf(m), rootOf(n)).ok).toBe(false);
        }
      }),
    );
  });

  it("are refused for every other old size", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), ([m, n], at) => {
        const other = at % (n + 1);
        fc.pre(other !== m);
        expect(verifyConsistency(crypto, other, n, proofOf(m, n), rootOf(m), rootOf(n)).ok).toBe(false);
      }),
    );
  });

  it("are refused for a log whose past was changed, dropped or reordered, whatever proof it gives", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), fc.constantFrom("change", "drop", "swap"), ([m, n], at, how) => {
        const i = at % m;
        const forged = LEAVES.slice(0, n);
        if (how === "change") forged[i] = EMPTY_ROOT;
        else if (how === "drop") forged.splice(i, 1);
        else [forged[i], forged[i + 1]] = [forged[i + 1]!, forged[i]!];
        fc.pre(how !== "swap" || i + 1 < m);
        fc.pre(forged.length > m);
        const plan = consistencyNodes(m, forged.length);
        const proof = foldProof(crypto, plan, fetchNodes(forged, plan.nodes));
        expect(verifyConsistency(crypto, m, forged.length, proof, rootOf(m), naiveRoot(forged)).ok).toBe(
          false,
        );
      }),
    );
  });

  it("between equal sizes are empty, and hold for equal roots only", () => {
    expect(consistencyNodes(7, 7)).toEqual({ nodes: [], counts: [] });
    expect(verifyConsistency(crypto, 7, 7, [], rootOf(7), rootOf(7))).toEqual({ ok: true });
    expect(verifyConsistency(crypto, 7, 7, [], rootOf(7), rootOf(6))).toEqual({
      ok: false,
      reason: "root-mismatch",
    });
    expect(verifyConsistency(crypto, 7, 7, [rootOf(7)], rootOf(7), rootOf(7))).toEqual({
      ok: false,
      reason: "proof-length",
    });
  });

  it("from the empty tree are empty, and hold for its root and no other", () => {
    expect(consistencyNodes(0, 7)).toEqual({ nodes: [], counts: [] });
    expect(verifyConsistency(crypto, 0, 7, [], EMPTY_ROOT, rootOf(7))).toEqual({ ok: true });
    expect(verifyConsistency(crypto, 0, 0, [], EMPTY_ROOT, EMPTY_ROOT)).toEqual({ ok: true });
    expect(verifyConsistency(crypto, 0, 0, [], EMPTY_ROOT, rootOf(7))).toEqual({
      ok: false,
      reason: "root-mismatch",
    });
    expect(verifyConsistency(crypto, 0, 7, [], rootOf(1), rootOf(7))).toEqual({
      ok: false,
      reason: "old-root-mismatch",
    });
    expect(verifyConsistency(crypto, 0, 7, [rootOf(1)], EMPTY_ROOT, rootOf(7))).toEqual({
      ok: false,
      reason: "proof-length",
    });
    expect(verifyConsistency(crypto, 0, 7, [], EMPTY_ROOT, new Uint8Array(31))).toEqual({
      ok: false,
      reason: "bad-hash-length",
    });
  });

  it("are refused, and can't be planned, for sizes that are none", () => {
    for (const [m, n] of [
      [3, 2],
      [-1, 2],
      [1, 2 ** 53],
      [1.5, 2],
      [1, Number.NaN],
    ] as const) {
      // prettier-ignore
      expect(verifyConsistency(crypto, m, n, [], EMPTY_ROOT, EMPTY_ROOT)).toEqual({
        ok: false,
        reason: "out-of-range",
      });
      expect(() => consistencyNodes(m, n)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    }
  });

  it("need O(log n) nodes at the largest sizes", () => {
    const max = Number.MAX_SAFE_INTEGER;
    for (const m of [1, 2 ** 31 + 1, 2 ** 32, 2 ** 52 + 1, max - 1]) {
      const plan = consistencyNodes(m, max);
      expect(plan.nodes.length).toBeLessThanOrEqual(106);
      // Those right of the old tree's last shared subtree cover all of the rest.
      const edge = coverRange(0, m).at(-1)!;
      const right = plan.nodes.filter(
        (node) => node.index * 2 ** node.level >= (edge.index + 1) * 2 ** edge.level,
      );
      const covered = right.reduce((sum, node) => sum + (1n << BigInt(node.level)), 0n);
      expect(covered).toBe(BigInt(max) - BigInt(m));
    }
  });
});
