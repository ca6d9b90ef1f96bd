import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { concat, fromBase64 } from "../../../shared/bytes.ts";
import { decodeEntryBundle, encodeEntryBundle } from "../../../shared/merkle/bundle.ts";
import { RightEdge } from "../../../shared/merkle/edge.ts";
import { leafHash } from "../../../shared/merkle/hash.ts";
import { coverRange, foldNodes } from "../../../shared/merkle/nodes.ts";
import { foldProof, inclusionNodes } from "../../../shared/merkle/proof.ts";
import {
  entriesPath,
  newFullTiles,
  nodeFromTile,
  nodeInTile,
  parseTilePath,
  partialTiles,
  tilePath,
  tileWidth,
} from "../../../shared/merkle/tiles.ts";
import { verifyInclusion } from "../../../shared/merkle/verify.ts";
import { describeWithShared, readShared, readSharedJson, sharedPath } from "../../support/shared-files.ts";
import { leafHashes, naiveNode } from "./naive-tree.ts";

const outOfRange = expect.objectContaining({ code: "out-of-range" });

function readBytes(relative: string): Uint8Array {
  return new Uint8Array(readFileSync(sharedPath(relative)));
}

/** Root of a checkpoint's third line. */
function rootOf(checkpoint: string): Uint8Array {
  return fromBase64(checkpoint.split("\n")[2]!);
}

describeWithShared("tile paths of Tessera", "vectors/extracted/tessera-paths.json", () => {
  interface Paths {
    entries_path_for_index: { seq: number; logSize: number; path: string }[];
    tile_path: { level: number; index: number; p: number; path: string }[];
    parse: {
      level: string;
      index: string;
      wantErr: boolean;
      wantLevel: string;
      wantIndex: string;
      wantP: string;
    }[];
  }
  const paths = () => readSharedJson<Paths>("vectors/extracted/tessera-paths.json");

  it("of entry bundles, for an entry and a log size", () => {
    expect(paths().entries_path_for_index).toHaveLength(7);
    for (const { seq, logSize, path } of paths().entries_path_for_index) {
      const index = Math.floor(seq / 256);
      expect(entriesPath(index, tileWidth(0, index, logSize))).toBe(path);
    }
  });

  it("of hash tiles, written and read", () => {
    expect(paths().tile_path).toHaveLength(5);
    for (const { level, index, p, path } of paths().tile_path) {
      const width = p === 0 ? 256 : p;
      expect(tilePath(level, index, width)).toBe(path);
      expect(parseTilePath(path)).toEqual({ kind: "hashes", level, index, width });
    }
  });

  it("read as published, but for an index that no tree of up to 2^53 leaves has", () => {
    expect(paths().parse).toHaveLength(19);
    for (const { level, index, wantErr, ...want } of paths().parse) {
      const found = parseTilePath(`tile/${level}/${index}`);
      if (wantErr || BigInt(want.wantIndex) > Number.MAX_SAFE_INTEGER) {
        expect(found, index).toBeUndefined();
      } else {
        const width = Number(want.wantP) || 256;
        expect(found).toEqual({
          kind: "hashes",
          level: Number(want.wantLevel),
          index: Number(want.wantIndex),
          width,
        });
      }
    }
  });
});

describeWithShared("tile paths and new tiles of golang.org/x/mod", "vectors/extracted/xmod-tlog.json", () => {
  interface Vectors {
    tile_paths_with_height_prefix: { path: string; valid: boolean; tile: string }[];
    new_tiles_height10: { old: number; new: number; want: number }[];
  }
  const vectors = () => readSharedJson<Vectors>("vectors/extracted/xmod-tlog.json");

  /** x/mod has the tile's height first, where C2SP has it fixed, and `data` for `entries`. */
  const adapted = (path: string) => path.replace(/^tile\/\d+\//, "tile/").replace("/data/", "/entries/");

  it("are read alike, their height left out", () => {
    expect(vectors().tile_paths_with_height_prefix).toHaveLength(8);
    for (const { path, valid, tile } of vectors().tile_paths_with_height_prefix) {
      const [, level, index] = (tile.match(/-?\d+/g) ?? []).map(Number);
      const partial = /\.p\/(\d+)/.exec(path)?.[1];
      const width = partial === undefined ? 256 : Number(partial);
      const kind = level === -1 ? { kind: "entries" } : { kind: "hashes", level };
      expect(parseTilePath(adapted(path)), path).toEqual(valid ? { ...kind, index, width } : undefined);
    }
  });

  /** How many tiles of that height differ between the two sizes, partial ones included: x/mod's NewTiles. */
  function countNewTiles(height: number, oldSize: number, newSize: number): number {
    let count = 0;
    for (let level = 0; newSize >= 2 ** (height * level); level++) {
      const [before, after] = [oldSize, newSize].map((size) => Math.floor(size / 2 ** (height * level))) as [
        number,
        number,
      ]; // prettier-ignore
      if (before === after) continue;
      count += Math.floor(after / 2 ** height) - Math.floor(before / 2 ** height);
      if (after % 2 ** height > 0) count++;
    }
    return count;
  }

  it("are as many as published at height 10, and by the same count ours at height 8", () => {
    expect(vectors().new_tiles_height10).toHaveLength(7);
    for (const one of vectors().new_tiles_height10)
      expect(countNewTiles(10, one.old, one.new)).toBe(one.want);
    const sizes = fc.tuple(fc.nat(200_000), fc.nat(3000));
    fc.assert(
      fc.property(sizes, ([oldSize, more]) => {
        const newSize = oldSize + more;
        const changed = partialTiles(newSize).filter(
          ({ level, index, width }) => tileWidth(level, index, oldSize) !== width,
        );
        expect(newFullTiles(oldSize, newSize).length + changed.length).toBe(
          countNewTiles(8, oldSize, newSize),
        );
      }),
    );
  });
});

describeWithShared(
  "the tile paths that azul's fuzzer starts from",
  "vectors/ct-argon2020/fuzz_parse_tile_path",
  () => {
    it("are read without an exception, as lines and with their height left out", () => {
      const found = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => {
        const line = readShared(`vectors/ct-argon2020/fuzz_parse_tile_path/seed${seed}`);
        expect(parseTilePath(line)).toBeUndefined();
        return parseTilePath(
          line
            .trim()
            .replace(/^tile\/\d+\//, "tile/")
            .replace("/data/", "/entries/"),
        );
      });
      expect(found.map((ref) => ref?.index)).toEqual([
        1,
        1,
        123456078,
        123456078,
        3057500,
        undefined,
        undefined,
        3057500,
      ]);
    });
  },
);

describe("tile paths", () => {
  it("read back as what they were written from", () => {
    const width = fc.integer({ min: 1, max: 256 });
    fc.assert(
      fc.property(fc.nat(63), fc.maxSafeNat(), width, (level, index, wide) => {
        expect(parseTilePath(tilePath(level, index, wide))).toEqual({
          kind: "hashes",
          level,
          index,
          width: wide,
        });
        expect(parseTilePath(entriesPath(index, wide))).toEqual({ kind: "entries", index, width: wide });
      }),
    );
    expect(tilePath(0, 1234067)).toBe("tile/0/x001/x234/067");
    expect(entriesPath(999)).toBe("tile/entries/999");
    expect(entriesPath(1000, 3)).toBe("tile/entries/x001/000.p/3");
    expect(tilePath(1, Number.MAX_SAFE_INTEGER)).toBe("tile/1/x009/x007/x199/x254/x740/991");
  });

  it("have one form for each tile: nothing else is read", () => {
    const bad = [
      "",
      "tile",
      "tile/0",
      "tile/0/",
      "tile/0/1",
      "tile/0/0001",
      "tile/0/x000/001",
      "tile/00/001",
      "tile/64/001",
      "tile/+1/001",
      "tile/0/001.p/0",
      "tile/0/001.p/01",
      "tile/0/001.p/256",
      "tile/0/001.p/1000",
      "tile/0/001.p/",
      "/tile/0/001",
      "tile/0/001/",
      "tile/0/001\n",
      "tile/0/x001",
      "tile/0/001/002",
      "tile/0/X001/002",
      "tile/Entries/001",
      "tile/entries/x001/x002",
      "tile/0/x009/x007/x199/x254/x740/992",
      "tile/0/٠٠١",
    ]; // prettier-ignore
    for (const path of bad) expect(parseTilePath(path), path).toBeUndefined();
  });

  it("can't be written for what is no tile", () => {
    for (const width of [0, -1, 257, 1.5, Number.NaN]) {
      expect(() => tilePath(0, 0, width)).toThrow(outOfRange);
      expect(() => entriesPath(0, width)).toThrow(outOfRange);
    }
    for (const index of [-1, 0.5, 2 ** 53]) expect(() => tilePath(0, index)).toThrow(outOfRange);
    for (const level of [-1, 64, 0.5]) expect(() => tilePath(level, 0)).toThrow(outOfRange);
  });
});

describe("the tiles of a tree", () => {
  it("are those of C2SP's examples", () => {
    const full = newFullTiles(0, 70_000);
    expect(full.filter((tile) => tile.level === 0)).toHaveLength(273);
    expect(full.filter((tile) => tile.level === 1)).toEqual([{ level: 1, index: 0 }]);
    expect(full).toHaveLength(274);
    expect(partialTiles(70_000)).toEqual([
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 },
    ]);
    expect(newFullTiles(0, 256)).toEqual([{ level: 0, index: 0 }]);
    expect(partialTiles(256)).toEqual([{ level: 1, index: 0, width: 1 }]);
    expect(partialTiles(0)).toEqual([]);
    expect(newFullTiles(0, 0)).toEqual([]);
  });

  it("become full once, when their last hash comes", () => {
    const seen = new Set<string>();
    for (let size = 0; size < 66_000; size += 500) {
      for (const { level, index } of newFullTiles(size, size + 500)) {
        const name = tilePath(level, index);
        expect(seen.has(name)).toBe(false);
        seen.add(name);
        expect(tileWidth(level, index, size)).toBeLessThan(256);
        expect(tileWidth(level, index, size + 500)).toBe(256);
      }
    }
    expect(seen.size).toBe(257 + 1);
    expect(newFullTiles(65_535, 65_536)).toEqual([
      { level: 0, index: 255 },
      { level: 1, index: 0 },
    ]); // prettier-ignore
  });

  it("have the width that the number of nodes at their level gives", () => {
    expect([0, 1, 2].map((index) => tileWidth(0, index, 300))).toEqual([256, 44, 0]);
    expect([tileWidth(1, 0, 300), tileWidth(1, 0, 255), tileWidth(2, 0, 65_536)]).toEqual([1, 0, 1]);
    expect(tileWidth(6, 0, Number.MAX_SAFE_INTEGER)).toBe(31);
    expect(tileWidth(63, 0, Number.MAX_SAFE_INTEGER)).toBe(0);
  });

  it("refuse sizes that are none", () => {
    expect(() => newFullTiles(2, 1)).toThrow(outOfRange);
    expect(() => partialTiles(-1)).toThrow(outOfRange);
    expect(() => tileWidth(0, 0, 2 ** 53)).toThrow(outOfRange);
  });
});

describe("nodes in tiles", () => {
  const leaves = leafHashes(600);
  const tile = (index: number, width: number) => concat(...leaves.slice(index * 256, index * 256 + width));

  it("are computed from the tile's bytes as from the leaves", () => {
    const anyNode = fc.nat(8).chain((level) => {
      return fc.tuple(fc.constant(level), fc.nat(Math.floor(600 / 2 ** level) - 1));
    });
    fc.assert(
      fc.property(anyNode, ([level, index]) => {
        fc.pre(level < 8);
        const { tile: at, offset, count } = nodeInTile({ level, index });
        expect(at.level).toBe(0);
        expect(at.index * 256 + offset).toBe(index * count);
        const bytes = tile(at.index, tileWidth(0, at.index, 600));
        expect(nodeFromTile(nativeCrypto, { level, index }, bytes)).toEqual(
          naiveNode(leaves, { level, index }),
        );
      }),
    );
  });

  it("lie in the tile of their level divided by eight", () => {
    expect(nodeInTile({ level: 8, index: 700 })).toEqual({
      tile: { level: 1, index: 2 },
      offset: 188,
      count: 1,
    });
    expect(nodeInTile({ level: 15, index: 3 })).toEqual({
      tile: { level: 1, index: 1 },
      offset: 128,
      count: 128,
    });
    expect(nodeInTile({ level: 52, index: 1 })).toEqual({
      tile: { level: 6, index: 0 },
      offset: 16,
      count: 16,
    });
    expect(nodeInTile({ level: 0, index: 2 ** 52 })).toEqual({
      tile: { level: 0, index: 2 ** 44 },
      offset: 0,
      count: 1,
    });
  });

  it("can't be had from a tile that is too short, too long or no tile", () => {
    const bad = expect.objectContaining({ code: "bad-tile" });
    expect(() => nodeFromTile(nativeCrypto, { level: 1, index: 2 }, tile(0, 5))).toThrow(bad);
    expect(() => nodeFromTile(nativeCrypto, { level: 0, index: 0 }, tile(0, 2).subarray(1))).toThrow(bad);
    expect(() => nodeFromTile(nativeCrypto, { level: 0, index: 0 }, new Uint8Array(257 * 32))).toThrow(bad);
    expect(() => nodeFromTile(nativeCrypto, { level: 0, index: 0 }, new Uint8Array(0))).toThrow(bad);
  });
});

describeWithShared("the Tessera log at 1 to 15 entries", "vectors/tessera/log", () => {
  it("has the roots of its checkpoints, from its tiles and from its entries", () => {
    for (let size = 1; size <= 15; size++) {
      const root = rootOf(readShared(`vectors/tessera/log/checkpoint.${size}`));
      const tile = readBytes(`vectors/tessera/log/${tilePath(0, 0, size)}`);
      const entries = decodeEntryBundle(readBytes(`vectors/tessera/log/${entriesPath(0, size)}`), size);
      expect(encodeEntryBundle(entries)).toEqual(readBytes(`vectors/tessera/log/${entriesPath(0, size)}`));
      const hashes = entries.map((entry) => leafHash(nativeCrypto, entry));
      expect(concat(...hashes)).toEqual(tile);
      const edge = new RightEdge(nativeCrypto);
      for (const hash of hashes) edge.append(hash);
      expect(edge.root()).toEqual(root);
      const cover = coverRange(0, size).map((node) => nodeFromTile(nativeCrypto, node, tile));
      expect(foldNodes(nativeCrypto, cover)).toEqual(root);
    }
  });
});

describeWithShared("the mirror of Sunlight at 300 entries", "vectors/sunlight-mirror/witness/mirror", () => {
  const base =
    "vectors/sunlight-mirror/witness/mirror/000de184301123b9278c086a7d9f68c9577e83872224c197058fd90784ea9706";
  const size = 300;
  const tileOf = (level: number, index: number) =>
    readBytes(`${base}/${tilePath(level, index, tileWidth(level, index, size))}`);
  const nodeOf = (node: { level: number; index: number }) => {
    const { tile } = nodeInTile(node);
    return nodeFromTile(nativeCrypto, node, tileOf(tile.level, tile.index));
  };

  it("has its checkpoint's root, from its tiles at two levels", () => {
    const cover = coverRange(0, size);
    expect(cover.map(({ level }) => level)).toEqual([8, 5, 3, 2]);
    expect(foldNodes(nativeCrypto, cover.map(nodeOf))).toEqual(rootOf(readShared(`${base}/checkpoint`)));
  });

  it("includes every entry, by proofs that its tiles give", () => {
    const root = rootOf(readShared(`${base}/checkpoint`));
    for (const index of [0, 100, 255, 256, 287, 288, 299]) {
      const plan = inclusionNodes(index, size);
      const proof = foldProof(nativeCrypto, plan, plan.nodes.map(nodeOf));
      const leaf = nodeOf({ level: 0, index });
      expect(verifyInclusion(nativeCrypto, index, size, leaf, proof, root)).toEqual({ ok: true });
      expect(verifyInclusion(nativeCrypto, index ^ 1, size, leaf, proof, root).ok).toBe(false);
    }
  });
});
