import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { RightEdge } from "../../../shared/merkle/edge.ts";
import { EMPTY_ROOT, leafHash, nodeHash } from "../../../shared/merkle/hash.ts";
import { coverRange } from "../../../shared/merkle/nodes.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";
import { fetchNodes, leafHashes, naiveNode, naiveRoot } from "./naive-tree.ts";

function edgeOf(leaves: readonly Uint8Array[]): RightEdge {
  const edge = new RightEdge(nativeCrypto);
  for (const leaf of leaves) edge.append(leaf);
  return edge;
}

describeWithShared("the published reference tree", "vectors/extracted/rfc6962-reference.json", () => {
  interface Reference {
    leaf_inputs_hex: string[];
    node_hashes_hex: string[][];
    root_hashes_hex_by_size: string[];
  }
  const reference = () => readSharedJson<Reference>("vectors/extracted/rfc6962-reference.json");

  it.each([["pure", pureCrypto] as const, ["native", nativeCrypto] as const])(
    "has its leaf hashes, inner nodes and roots at every size (%s)",
    (_name, crypto) => {
      const { leaf_inputs_hex, node_hashes_hex, root_hashes_hex_by_size } = reference();
      const edge = new RightEdge(crypto);
      const nodes: string[][] = [[], [], [], []];
      const roots = [toHex(edge.root())];
      for (const input of leaf_inputs_hex) {
        const leaf = leafHash(crypto, fromHex(input));
        nodes[0]!.push(toHex(leaf));
        for (const { level, index, hash } of edge.append(leaf)) nodes[level]![index] = toHex(hash);
        roots.push(toHex(edge.root()));
      }
      expect(nodes).toEqual(node_hashes_hex);
      expect(roots).toEqual(root_hashes_hex_by_size);
    },
  );
});

describe("hashes of nodes", () => {
  it("refuse children that are not 32 bytes long", () => {
    for (const length of [0, 31, 33]) {
      const bad = new Uint8Array(length);
      for (const [left, right] of [
        [bad, EMPTY_ROOT],
        [EMPTY_ROOT, bad],
      ] as const) {
        // prettier-ignore
        expect(() => nodeHash(nativeCrypto, left, right)).toThrow(
          expect.objectContaining({ code: "bad-hash" }),
        );
      }
    }
  });

  it("depend on which child is left", () => {
    const [a, b] = leafHashes(2);
    expect(nodeHash(nativeCrypto, a!, b!)).toEqual(naiveRoot([a!, b!]));
    expect(nodeHash(nativeCrypto, b!, a!)).not.toEqual(naiveRoot([a!, b!]));
  });
});

describe("coverRange", () => {
  it("covers every leaf once, from left to right, with nodes that can't be joined", () => {
    fc.assert(
      fc.property(fc.nat(2000), fc.nat(2000), (a, b) => {
        const [begin, end] = [Math.min(a, b), Math.max(a, b)];
        const cover = coverRange(begin, end);
        let at = begin;
        for (const { level, index } of cover) {
          expect(index * 2 ** level).toBe(at);
          at += 2 ** level;
        }
        expect(at).toBe(end);
        cover.slice(1).forEach((right, i) => {
          const left = cover[i]!;
          expect(left.level === right.level && left.index % 2 === 0).toBe(false);
        });
      }),
    );
  });

  it("works at the largest sizes", () => {
    const max = Number.MAX_SAFE_INTEGER;
    const cover = coverRange(0, max);
    expect(cover).toHaveLength(53);
    expect(cover[0]).toEqual({ level: 52, index: 0 });
    expect(cover.at(-1)).toEqual({ level: 0, index: max - 1 });
    expect(coverRange(max - 1, max)).toEqual([{ level: 0, index: max - 1 }]);
  });

  it("refuses ranges that are none", () => {
    for (const [begin, end] of [
      [2, 1],
      [-1, 1],
      [0.5, 1],
      [0, 2 ** 53],
      [0, Number.NaN],
    ] as const) {
      // prettier-ignore
      expect(() => coverRange(begin, end)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    }
  });
});

describe("RightEdge", () => {
  it("has the root of the recursive definition at every size", () => {
    const leaves = leafHashes(300);
    const edge = new RightEdge(nativeCrypto);
    expect(edge.root()).toEqual(EMPTY_ROOT);
    leaves.forEach((leaf, i) => {
      edge.append(leaf);
      expect(edge.size).toBe(i + 1);
      expect(edge.root()).toEqual(naiveRoot(leaves.slice(0, i + 1)));
    });
  });

  it("reports every perfect node above the leaves exactly once, as soon as it is complete", () => {
    const leaves = leafHashes(130);
    const edge = new RightEdge(nativeCrypto);
    const seen = new Set<string>();
    leaves.forEach((leaf, i) => {
      for (const { level, index, hash } of edge.append(leaf)) {
        expect(level).toBeGreaterThan(0);
        expect((index + 1) * 2 ** level).toBe(i + 1);
        expect(hash).toEqual(naiveNode(leaves, { level, index }));
        seen.add(`${level}/${index}`);
      }
    });
    let expected = 0;
    for (let width = 2; width <= 130; width *= 2) expected += Math.floor(130 / width);
    expect(seen.size).toBe(expected);
  });

  it("goes to bytes and back at every size, and grows on alike", () => {
    const leaves = leafHashes(140);
    for (let size = 0; size <= 130; size++) {
      const edge = edgeOf(leaves.slice(0, size));
      const bytes = edge.toBytes();
      const again = RightEdge.fromBytes(nativeCrypto, bytes);
      expect(again.toBytes()).toEqual(bytes);
      expect(again.size).toBe(size);
      for (const leaf of leaves.slice(size)) again.append(leaf);
      expect(again.root()).toEqual(naiveRoot(leaves));
    }
  });

  it("reads bytes that lie within a larger buffer", () => {
    const bytes = edgeOf(leafHashes(5)).toBytes();
    const larger = new Uint8Array(bytes.length + 13);
    larger.set(bytes, 7);
    const edge = RightEdge.fromBytes(nativeCrypto, larger.subarray(7, 7 + bytes.length));
    larger.fill(0);
    expect(edge.toBytes()).toEqual(bytes);
  });

  it("refuses bytes that are no edge", () => {
    const good = edgeOf(leafHashes(5)).toBytes();
    const size = (value: bigint) => {
      const bytes = good.slice();
      new DataView(bytes.buffer).setBigUint64(0, value);
      return bytes;
    };
    const bad = [
      new Uint8Array(0),
      good.subarray(0, 7),
      good.subarray(0, good.length - 1),
      good.subarray(0, good.length - 32),
      new Uint8Array([...good, ...new Uint8Array(32)]),
      size(4n),
      size(7n),
      size(2n ** 53n),
      size(2n ** 64n - 1n),
    ];
    for (const bytes of bad) {
      expect(() => RightEdge.fromBytes(nativeCrypto, bytes)).toThrow(
        expect.objectContaining({ code: "bad-edge" }),
      );
    }
    // Two hashes fit a size of 6 as well as one of 5: what can't be seen from the bytes is not refused.
    expect(RightEdge.fromBytes(nativeCrypto, size(6n)).size).toBe(6);
  });

  it("is the cover of its leaves", () => {
    const leaves = leafHashes(77);
    expect(edgeOf(leaves).hashes()).toEqual(fetchNodes(leaves, coverRange(0, 77)));
    const hashes = fetchNodes(leaves, coverRange(0, 77));
    expect(RightEdge.fromHashes(nativeCrypto, 77, hashes).root()).toEqual(naiveRoot(leaves));
    hashes[0] = hashes[0]!.subarray(1);
    expect(() => RightEdge.fromHashes(nativeCrypto, 77, hashes)).toThrow(
      expect.objectContaining({ code: "bad-edge" }),
    );
  });

  it("grows apart from its clone, from what it gave out and from what it was given", () => {
    const leaves = leafHashes(9);
    const given = leaves[6]!.slice();
    const edge = edgeOf(leaves.slice(0, 6));
    edge.append(given);
    given.fill(0);
    const clone = edge.clone();
    for (const { hash } of clone.append(leaves[7]!)) hash.fill(0);
    edge.append(leaves[8]!);
    for (const hash of edge.hashes()) hash.fill(0);
    for (const one of [edge, clone]) one.root().fill(0);
    expect(clone.root()).toEqual(naiveRoot(leaves.slice(0, 8)));
    expect(edge.root()).toEqual(naiveRoot([...leaves.slice(0, 7), leaves[8]!]));
    new RightEdge(nativeCrypto).root().fill(0);
    expect(toHex(EMPTY_ROOT)).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });

  it("takes whole subtrees where they fit, and says what they completed", () => {
    const leaves = leafHashes(24);
    const edge = edgeOf(leaves.slice(0, 8));
    expect(edge.appendNode(2, naiveRoot(leaves.slice(8, 12)))).toEqual([]);
    expect(edge.appendNode(2, naiveRoot(leaves.slice(12, 16)))).toEqual(
      [3, 4].map((level) => ({
        level,
        index: level === 3 ? 1 : 0,
        hash: naiveNode(leaves, { level, index: level === 3 ? 1 : 0 }),
      })),
    );
    edge.appendNode(3, naiveRoot(leaves.slice(16, 24)));
    expect(edge.root()).toEqual(naiveRoot(leaves));
    edge.append(leaves[0]!);
    expect(() => edge.appendNode(1, leaves[0]!)).toThrow(expect.objectContaining({ code: "out-of-range" }));
  });

  it("refuses hashes that are not 32 bytes long, and stays as it was", () => {
    const edge = edgeOf(leafHashes(3));
    const before = edge.toBytes();
    for (const length of [0, 31, 33, 64]) {
      expect(() => edge.append(new Uint8Array(length))).toThrow(
        expect.objectContaining({ code: "bad-hash" }),
      );
    }
    expect(edge.toBytes()).toEqual(before);
  });

  it("counts beyond 32 bits, up to 2^53 - 1", () => {
    const hash = leafHashes(1)[0]!;
    for (const size of [2 ** 31 - 1, 2 ** 32 - 1, 2 ** 40 - 1]) {
      const edge = RightEdge.fromHashes(
        nativeCrypto,
        size,
        coverRange(0, size).map(() => hash),
      );
      const completed = edge.append(hash);
      expect(completed.map((node) => node.level)).toEqual(
        Array.from({ length: Math.log2(size + 1) }, (_, i) => i + 1),
      );
      expect(completed.at(-1)).toMatchObject({ level: Math.log2(size + 1), index: 0 });
      expect(edge.hashes()).toHaveLength(1);
      expect(RightEdge.fromBytes(nativeCrypto, edge.toBytes()).size).toBe(size + 1);
    }
    const max = Number.MAX_SAFE_INTEGER;
    const full = RightEdge.fromHashes(
      nativeCrypto,
      max,
      coverRange(0, max).map(() => hash),
    );
    expect(() => full.append(hash)).toThrow(expect.objectContaining({ code: "out-of-range" }));
    const huge = RightEdge.fromHashes(
      nativeCrypto,
      max - 1,
      coverRange(0, max - 1).map(() => hash),
    );
    expect(huge.append(hash)).toEqual([]);
    expect(huge.toBytes()).toHaveLength(8 + 53 * 32);
  });

  it("takes leaves without copies as it appends them with, up to the largest tree", () => {
    const appended = new RightEdge(nativeCrypto);
    const grown = new RightEdge(nativeCrypto);
    for (const leaf of leafHashes(200)) {
      expect(grown.take(leaf)).toEqual(appended.append(leaf));
      expect(toHex(grown.toBytes())).toBe(toHex(appended.toBytes()));
      expect(toHex(grown.root())).toBe(toHex(appended.root()));
    }
    expect(() => grown.take(new Uint8Array(31))).toThrow(expect.objectContaining({ code: "bad-hash" }));
    const max = Number.MAX_SAFE_INTEGER;
    const hash = new Uint8Array(32);
    const full = RightEdge.fromHashes(
      nativeCrypto,
      max,
      coverRange(0, max).map(() => hash),
    );
    expect(() => full.take(hash)).toThrow(expect.objectContaining({ code: "out-of-range" }));
  });
});
