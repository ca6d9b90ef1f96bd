import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { EMPTY_ROOT } from "../../../shared/merkle/hash.ts";
import { RangeRoot, rangeNodes, rootFromRange, verifyRange } from "../../../shared/merkle/range.ts";
import { fetchNodes, leafHashes, naiveRoot } from "./naive-tree.ts";

const LEAVES = leafHashes(600);
const crypto = nativeCrypto;

/** A page of leaves with its proof. */
interface Page {
  begin: number;
  end: number;
  size: number;
  leaves: Uint8Array[];
  left: Uint8Array[];
  right: Uint8Array[];
  root: Uint8Array;
}

function pageOf(begin: number, end: number, size: number): Page {
  const tree = LEAVES.slice(0, size);
  const { left, right } = rangeNodes(begin, end, size);
  return {
    begin,
    end,
    size,
    leaves: tree.slice(begin, end),
    left: fetchNodes(tree, left),
    right: fetchNodes(tree, right),
    root: naiveRoot(tree),
  };
}

const page = fc
  .tuple(fc.nat(600), fc.nat(600), fc.nat(600))
  .map((three) => three.sort((a, b) => a - b))
  .map(([begin, end, size]) => pageOf(begin!, end!, size!));

const check = (one: Page, port = crypto) =>
  verifyRange(port, one.begin, one.leaves, one.size, one.left, one.right, one.root);

describe("range proofs", () => {
  it("verify for every page of a tree, empty ones too, under both ports", () => {
    fc.assert(
      fc.property(page, (one) => {
        expect(check(one)).toEqual({ ok: true });
        expect(rootFromRange(crypto, one.begin, one.leaves, one.end, one.size, one.left, one.right)).toEqual(
          one.root,
        );
      }),
    );
    const small = pageOf(3, 9, 21);
    expect(check(small, pureCrypto)).toEqual({ ok: true });
    expect(check(pageOf(0, 0, 0))).toEqual({ ok: true });
    expect(check(pageOf(0, 600, 600))).toEqual({ ok: true });
  });

  it("are refused with any bit of a leaf, of a side or of the root flipped", () => {
    fc.assert(
      fc.property(page, fc.nat(), (one, at) => {
        const all = [...one.leaves, ...one.left, ...one.right, one.root].map((hash) => hash.slice());
        const bit = at % (256 * all.length);
        all[bit >> 8]![(bit & 255) >> 3]! ^= 1 << (bit & 7);
        const spoiled: Page = {
          ...one,
          leaves: all.splice(0, one.leaves.length),
          left: all.splice(0, one.left.length),
          right: all.splice(0, one.right.length),
          root: all[0]!,
        };
        expect(check(spoiled)).toEqual({ ok: false, reason: "root-mismatch" });
      }),
    );
  });

  it("are refused with a leaf or a side's hash dropped, added or moved, at another place, in another size", () => {
    fc.assert(
      fc.property(
        page.filter((one) => one.leaves.length > 1),
        fc.nat(),
        (one, at) => {
          const i = at % (one.leaves.length - 1);
          const swapped = one.leaves.slice();
          [swapped[i], swapped[i + 1]] = [swapped[i + 1]!, swapped[i]!];
          const others: Partial<Page>[] = [
            { leaves: one.leaves.toSpliced(i, 1) },
            { leaves: one.leaves.toSpliced(i, 0, one.leaves[i]!) },
            { leaves: swapped },
            { begin: one.begin + 1 },
            { left: [...one.left, EMPTY_ROOT] },
            { right: [...one.right, EMPTY_ROOT] },
            { left: one.left.slice(1), right: one.right.slice(1) },
          ];
          // A root does not bind the size (the signed head does): another size is refused with that size's own root.
          for (const size of [one.size - 1, one.size + 1]) {
            if (size <= LEAVES.length) others.push({ size, root: naiveRoot(LEAVES.slice(0, size)) });
          }
          if (one.begin > 0) others.push({ begin: one.begin - 1 }, { left: one.left.slice(1) });
          if (one.right.length > 0) others.push({ right: one.right.slice(1) });
          for (const other of others) {
            if (other.left?.length === one.left.length && other.right?.length === one.right.length) continue;
            expect(check({ ...one, ...other }).ok).toBe(false);
          }
        },
      ),
    );
  });

  it("say what is wrong", () => {
    const one = pageOf(5, 9, 20);
    const short = EMPTY_ROOT.subarray(1);
    expect(check({ ...one, begin: -1 })).toEqual({ ok: false, reason: "out-of-range" });
    expect(check({ ...one, begin: 17 })).toEqual({ ok: false, reason: "out-of-range" });
    expect(check({ ...one, size: 2 ** 53 })).toEqual({ ok: false, reason: "out-of-range" });
    expect(check({ ...one, leaves: one.leaves.with(0, short) })).toEqual({
      ok: false,
      reason: "bad-hash-length",
    });
    expect(check({ ...one, right: one.right.with(0, short) })).toEqual({
      ok: false,
      reason: "bad-hash-length",
    });
    expect(check({ ...one, root: short })).toEqual({ ok: false, reason: "bad-hash-length" });
    expect(check({ ...one, left: one.left.slice(1) })).toEqual({ ok: false, reason: "proof-length" });
    expect(check({ ...one, right: one.right.slice(1) })).toEqual({ ok: false, reason: "proof-length" });
    expect(check({ ...one, root: EMPTY_ROOT })).toEqual({ ok: false, reason: "root-mismatch" });
  });

  it("join page by page: each verifies alone against the same root", () => {
    for (let begin = 0; begin < 200; begin += 37) {
      expect(check(pageOf(begin, Math.min(begin + 37, 200), 200))).toEqual({ ok: true });
    }
  });
});

describe("rootFromRange", () => {
  it("refuses more or fewer leaves or hashes than the range has", () => {
    const { begin, end, size, leaves, left, right } = pageOf(5, 9, 20);
    const bad = expect.objectContaining({ code: "bad-edge" });
    expect(() => rootFromRange(crypto, begin, leaves.slice(1), end, size, left, right)).toThrow(bad);
    expect(() => rootFromRange(crypto, begin, [...leaves, EMPTY_ROOT], end, size, left, right)).toThrow(bad);
    expect(() => rootFromRange(crypto, begin, leaves, end, size, left.slice(1), right)).toThrow(bad);
    expect(() => rootFromRange(crypto, begin, leaves, end, size, left, right.slice(1))).toThrow(bad);
    expect(() => rootFromRange(crypto, begin, leaves, end, size, left, [...right, EMPTY_ROOT])).toThrow(bad);
    expect(() => rootFromRange(crypto, begin, leaves, end, 8, left, right)).toThrow(
      expect.objectContaining({ code: "out-of-range" }),
    );
    // Two leaves of four and three leaves of four have one hash on their right.
    const three = LEAVES.slice(0, 3);
    expect(() => rootFromRange(crypto, 0, three, 2, 4, [], [EMPTY_ROOT])).toThrow(bad);
    expect(() => rootFromRange(crypto, 0, three.slice(1), 3, 4, [], [EMPTY_ROOT])).toThrow(bad);
    const short = right.with(0, EMPTY_ROOT.subarray(1));
    expect(() => rootFromRange(crypto, begin, leaves, end, size, left, short)).toThrow(bad);
  });

  it("takes leaves as they come, from a generator", () => {
    const { begin, end, size, left, right, root } = pageOf(100, 500, 600);
    function* stream() {
      for (let i = begin; i < end; i++) yield LEAVES[i]!;
    }
    expect(rootFromRange(crypto, begin, stream(), end, size, left, right)).toEqual(root);
  });
});

describe("RangeRoot", () => {
  it("gives a root at any point and goes on from there", () => {
    const range = new RangeRoot(crypto, 7, fetchNodes(LEAVES, rangeNodes(7, 7, 7).left));
    for (let next = 7; next < 40; next++) {
      expect(range.next).toBe(next);
      const { right } = rangeNodes(7, next, 64);
      expect(range.root(64, fetchNodes(LEAVES, right))).toEqual(naiveRoot(LEAVES.slice(0, 64)));
      expect(range.root(next, [])).toEqual(naiveRoot(LEAVES.slice(0, next)));
      range.add(LEAVES[next]!);
    }
  });

  it("reaches the largest trees", () => {
    const max = Number.MAX_SAFE_INTEGER;
    const begin = 2 ** 52 - 1;
    const { left, right } = rangeNodes(begin, begin + 2, max);
    const hash = LEAVES[0]!;
    const range = new RangeRoot(
      crypto,
      begin,
      left.map(() => hash),
    ); // prettier-ignore
    range.add(hash);
    range.add(hash);
    expect(
      range.root(
        max,
        right.map(() => hash),
      ),
    ).toHaveLength(32); // prettier-ignore
    expect(right.reduce((sum, node) => sum + 2n ** BigInt(node.level), 0n)).toBe(BigInt(max - begin - 2));
  });
});
