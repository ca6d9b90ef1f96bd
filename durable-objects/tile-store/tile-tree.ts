/**
 * A log's tree between commits: the hashes of the last, partial tile in memory, and every full tile (and the
 * partial ones of the upper levels) in storage. Each append costs one node at most per level it completes.
 *
 * @module
 */
import { concat } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { HASH_BYTES as HASH } from "../../shared/merkle/hash.ts";
import type { NodeCoord, TreeNode } from "../../shared/merkle/nodes.ts";
import { nodeFromTile, nodeInTile, TILE_HEIGHT, TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import type { TileStore } from "./tile-table.ts";

export class TileTree {
  readonly #storage: TileStore;
  readonly #crypto: CryptoPort;
  /** Leaf hashes of the last tile, fewer than 256. */
  #partial: Uint8Array[] = [];
  #size = 0;

  constructor(storage: TileStore, crypto: CryptoPort) {
    this.#storage = storage;
    this.#crypto = crypto;
  }

  /** Takes over the state that storage confirmed; `partial` holds the hashes after the last full tile. */
  load(size: number, partial: Uint8Array[]): void {
    this.#size = size;
    this.#partial = partial;
  }

  /**
   * Adds the leaf hashes of one commit, inside its transaction: full tiles and completed upper nodes are written.
   * What is in memory changes only by `load` or `adopt`, after the transaction.
   *
   * @returns the new partial tile, for `adopt`
   */
  write(hashes: readonly Uint8Array[], completed: readonly TreeNode[]): Uint8Array[] {
    let partial = [...this.#partial];
    let tile = Math.floor(this.#size / TILE_WIDTH);
    for (const hash of hashes) {
      partial.push(hash);
      if (partial.length === TILE_WIDTH) {
        this.#storage.setTile(0, tile, joined(partial));
        partial = [];
        tile += 1;
      }
    }
    for (const node of completed) {
      if (node.level % TILE_HEIGHT !== 0 || node.level === 0) continue;
      const level = node.level / TILE_HEIGHT;
      const upper = Math.floor(node.index / TILE_WIDTH);
      const before = node.index % TILE_WIDTH === 0 ? new Uint8Array() : this.#storage.tile(level, upper);
      if (before === null || before.length !== (node.index % TILE_WIDTH) * HASH) {
        throw new RunsealError("storage-inconsistent", "a tile of the log is missing or of the wrong width");
      }
      this.#storage.setTile(level, upper, concat(before, node.hash));
    }
    return partial;
  }

  /** Takes over what a committed `write` gave. */
  adopt(size: number, partial: Uint8Array[]): void {
    this.load(size, partial);
  }

  /** The hashes of a tile as far as it is filled; null where there is none. */
  tile(level: number, tile: number): Uint8Array | null {
    if (level === 0 && tile === Math.floor(this.#size / TILE_WIDTH)) {
      return this.#partial.length === 0 ? null : joined(this.#partial);
    }
    return this.#storage.tile(level, tile);
  }

  /** The hash of a perfect subtree. Throws `RunsealError("storage-inconsistent")` where it is not complete. */
  node(node: NodeCoord): Uint8Array {
    const { tile, offset, count } = nodeInTile(node);
    const hashes = this.tile(tile.level, tile.index);
    if (hashes === null || hashes.length < (offset + count) * HASH) {
      throw new RunsealError("storage-inconsistent", "a node of the tree is not stored");
    }
    return nodeFromTile(this.#crypto, node, hashes);
  }

  /** Leaf hashes [begin, end) one after the other. */
  leafHashes(begin: number, end: number): Uint8Array {
    const out = new Uint8Array(Math.max(0, end - begin) * HASH);
    let at = begin;
    while (at < end) {
      const tile = Math.floor(at / TILE_WIDTH);
      const hashes = this.tile(0, tile);
      const from = (at % TILE_WIDTH) * HASH;
      const count = Math.min(end - at, TILE_WIDTH - (at % TILE_WIDTH));
      if (hashes === null || hashes.length < from + count * HASH) {
        throw new RunsealError("storage-inconsistent", "a leaf hash is not stored");
      }
      out.set(hashes.subarray(from, from + count * HASH), (at - begin) * HASH);
      at += count;
    }
    return out;
  }
}

/** Hashes one after the other. */
function joined(hashes: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(hashes.length * HASH);
  for (let i = 0; i < hashes.length; i++) out.set(hashes[i] ?? EMPTY, i * HASH);
  return out;
}

const EMPTY = new Uint8Array();
