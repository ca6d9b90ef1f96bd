/**
 * Tiles (c2sp.org/tlog-tiles): the perfect nodes of a tree in files of 256 hashes. The tile (L, N) holds the nodes of
 * tree level 8 L with indices [256 N, 256 N + 256); the nodes between tree levels 8 L and 8 L + 8 are computed from
 * it. A full tile never changes; the last one of each level is partial.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { RightEdge } from "./edge.ts";
import { HASH_BYTES } from "./hash.ts";
import type { NodeCoord } from "./nodes.ts";
import { checkAscend } from "./nodes.ts";

/** Tree levels in a tile. */
export const TILE_HEIGHT = 8;
/** Hashes in a full tile; entries in a full bundle. */
export const TILE_WIDTH = 256;

const MAX_TILE_LEVEL = 63;

/** A hash tile; `level` counts tiles, not tree levels. */
export interface TileCoord {
  readonly level: number;
  readonly index: number;
}

/** Where the hashes from which a perfect node is computed lie in its tile. */
export interface NodeInTile {
  readonly tile: TileCoord;
  /** Place of the first hash, 0 to 255. */
  readonly offset: number;
  /** How many hashes: a power of two up to 128. */
  readonly count: number;
}

/** What a tile's path names. `width` is 256 for a full one. */
export type TileRef =
  | { readonly kind: "hashes"; readonly level: number; readonly index: number; readonly width: number }
  | { readonly kind: "entries"; readonly index: number; readonly width: number };

/** `1234067` as `x001/x234/067`. */
function indexPath(index: number): string {
  checkAscend(index);
  const groups: string[] = [];
  let rest = index;
  do {
    groups.unshift(`${groups.length === 0 ? "" : "x"}${String(rest % 1000).padStart(3, "0")}`);
    rest = Math.floor(rest / 1000);
  } while (rest > 0);
  return groups.join("/");
}

function widthSuffix(width: number): string {
  if (width === TILE_WIDTH) return "";
  if (!Number.isInteger(width) || width < 1 || width > TILE_WIDTH) {
    throw new RunsealError("out-of-range", "a tile is 1 to 256 wide");
  }
  return `.p/${width}`;
}

/**
 * Path of a hash tile, as `tile/0/x001/x234/067.p/12`.
 *
 * @param width hashes in it: 1 to 255 for a partial tile, 256 (the default) for a full one
 * @throws `RunsealError("out-of-range")`
 */
export function tilePath(level: number, index: number, width: number = TILE_WIDTH): string {
  checkAscend(level, MAX_TILE_LEVEL);
  return `tile/${level}/${indexPath(index)}${widthSuffix(width)}`;
}

/**
 * Path of an entry bundle, as `tile/entries/x001/x234/067.p/12`.
 *
 * @param width entries in it: 1 to 255 for a partial bundle, 256 (the default) for a full one
 * @throws `RunsealError("out-of-range")`
 */
export function entriesPath(index: number, width: number = TILE_WIDTH): string {
  return `tile/entries/${indexPath(index)}${widthSuffix(width)}`;
}

const TILE_PATH = /^tile\/(entries|0|[1-9]\d?)\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/;

/**
 * What the path names, or undefined where it is no path that `tilePath` or `entriesPath` writes. One tile has one
 * path: an index with a leading group of zeros is refused. So is an index over 2^53, which no tree here can have.
 */
export function parseTilePath(path: string): TileRef | undefined {
  const [, level, groups, partial] = TILE_PATH.exec(path) ?? [];
  if (level === undefined || groups === undefined || groups.startsWith("x000/")) return undefined;
  const index = Number(groups.replaceAll(/[x/]/g, ""));
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  if (!Number.isSafeInteger(index) || (partial !== undefined && width >= TILE_WIDTH)) return undefined;
  if (level === "entries") return { kind: "entries", index, width };
  return Number(level) > MAX_TILE_LEVEL ? undefined : { kind: "hashes", level: Number(level), index, width };
}

/** Hashes that the tile has in a tree of that size: 0 (there is no such tile) to 256 (it is full). */
export function tileWidth(level: number, index: number, size: number): number {
  checkAscend(level);
  checkAscend(index);
  checkAscend(size);
  const nodes = Math.floor(size / TILE_WIDTH ** level);
  return Math.min(Math.max(nodes - index * TILE_WIDTH, 0), TILE_WIDTH);
}

/**
 * The tiles that are full in a tree of `newSize` and were not in one of `oldSize`, the lowest level first. Those of
 * level 0 are the full entry bundles too.
 *
 * @throws `RunsealError("out-of-range")` unless oldSize <= newSize
 */
export function newFullTiles(oldSize: number, newSize: number): TileCoord[] {
  checkAscend(oldSize, newSize);
  const out: TileCoord[] = [];
  for (let level = 0, leaves = TILE_WIDTH; leaves <= newSize; level++, leaves *= TILE_WIDTH) {
    const end = Math.floor(newSize / leaves);
    for (let index = Math.floor(oldSize / leaves); index < end; index++) out.push({ level, index });
  }
  return out;
}

/** The partial tiles of a tree of that size, with their widths, the lowest level first. */
export function partialTiles(size: number): (TileCoord & { readonly width: number })[] {
  checkAscend(size);
  const out: (TileCoord & { width: number })[] = [];
  for (let level = 0, nodes = size; nodes > 0; level++, nodes = Math.floor(nodes / TILE_WIDTH)) {
    const width = nodes % TILE_WIDTH;
    if (width > 0) out.push({ level, index: Math.floor(nodes / TILE_WIDTH), width });
  }
  return out;
}

/** The tile that a perfect node is computed from, and where in it. */
export function nodeInTile(node: NodeCoord): NodeInTile {
  checkAscend(node.level);
  checkAscend(node.index);
  const level = Math.floor(node.level / TILE_HEIGHT);
  const count = 2 ** (node.level % TILE_HEIGHT);
  const perTile = TILE_WIDTH / count;
  return {
    tile: { level, index: Math.floor(node.index / perTile) },
    offset: (node.index % perTile) * count,
    count,
  };
}

/**
 * Hash of a perfect node from the bytes of its tile (`nodeInTile(node).tile`), full or partial.
 *
 * @throws `RunsealError("bad-tile")` where the bytes are not whole hashes, or too few
 */
export function nodeFromTile(crypto: CryptoPort, node: NodeCoord, tile: Uint8Array): Uint8Array {
  const { offset, count } = nodeInTile(node);
  if (tile.length % HASH_BYTES !== 0 || tile.length > TILE_WIDTH * HASH_BYTES) {
    throw new RunsealError("bad-tile", "the tile is not 1 to 256 hashes");
  }
  if ((offset + count) * HASH_BYTES > tile.length) {
    throw new RunsealError("bad-tile", "the tile does not reach the node");
  }
  // The hashes are the leaves of a tree of their own, which is the node.
  const edge = new RightEdge(crypto);
  for (let at = offset; at < offset + count; at++) {
    edge.append(tile.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));
  }
  return edge.root();
}
