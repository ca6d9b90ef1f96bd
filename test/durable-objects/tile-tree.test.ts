import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LogStorage } from "../../durable-objects/principal-log/storage.ts";
import { consistencyPath, inclusionPaths } from "../../durable-objects/tile-store/proofs.ts";
import { TileTree } from "../../durable-objects/tile-store/tile-tree.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes } from "../../shared/bytes.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import type { TreeNode } from "../../shared/merkle/nodes.ts";
import { verifyConsistency, verifyInclusion } from "../../shared/merkle/verify.ts";

/** A leaf hash of its own for each place. */
function hashOf(index: number): Uint8Array {
  return nativeCrypto.sha256(new Uint8Array(new Uint32Array([index]).buffer));
}

function split(joined: Uint8Array): Uint8Array[] {
  return Array.from({ length: joined.length / 32 }, (_, i) => joined.subarray(32 * i, 32 * i + 32));
}

/** A tree over the storage of an object of its own, which it grows as commits do. */
class GrowingTree {
  readonly tree: TileTree;
  readonly storage: LogStorage;
  readonly edge = new RightEdge(nativeCrypto);
  readonly roots = new Map<number, Uint8Array>();
  partial: Uint8Array[] = [];
  size = 0;

  constructor(state: DurableObjectState) {
    this.storage = new LogStorage(state.storage, nativeCrypto);
    this.tree = new TileTree(this.storage.tiles, nativeCrypto);
  }

  commit(count: number): void {
    const hashes = Array.from({ length: count }, (_, i) => hashOf(this.size + i));
    const completed: TreeNode[] = [];
    for (const hash of hashes) completed.push(...this.edge.append(hash));
    this.partial = this.storage.transaction(() => this.tree.write(hashes, completed));
    this.size += count;
    this.tree.adopt(this.size, this.partial);
    this.roots.set(this.size, this.edge.root());
  }

  /** A transaction that writes tiles and then fails. */
  failedCommit(count: number): void {
    const hashes = Array.from({ length: count }, () => nativeCrypto.sha256(new Uint8Array(7)));
    const edge = this.edge.clone();
    const completed: TreeNode[] = [];
    for (const hash of hashes) completed.push(...edge.append(hash));
    expect(() =>
      this.storage.transaction(() => {
        this.tree.write(hashes, completed);
        throw new Error("no");
      }),
    ).toThrow("no");
  }

  provesItself(): void {
    const root = this.edge.root();
    const seqs = [1, 256, 257, 65_535, 65_536, 65_537, this.size].filter((seq) => seq <= this.size);
    const paths = inclusionPaths(nativeCrypto, this.tree, seqs, this.size);
    seqs.forEach((seq, i) => {
      const path = split(paths[i] ?? new Uint8Array());
      expect([seq, verifyInclusion(nativeCrypto, seq - 1, this.size, hashOf(seq - 1), path, root)]).toEqual([
        seq,
        { ok: true },
      ]);
    });
    for (const [size, old] of this.roots) {
      const path = split(consistencyPath(nativeCrypto, this.tree, size, this.size));
      expect([size, verifyConsistency(nativeCrypto, size, this.size, path, old, root)]).toEqual([
        size,
        { ok: true },
      ]);
    }
  }
}

describe("the tiles of a log", () => {
  it("hold a tree of three levels that proves every size that it had", async () => {
    await runInDurableObject(env.PRINCIPAL_LOG.getByName("tiles"), (_log, state) => {
      const growing = new GrowingTree(state);
      for (const count of [1, 254, 1, 1, 255, 2000, 1, 2000, 500]) growing.commit(count);
      growing.provesItself();
      while (growing.size + 1999 < 65_000) growing.commit(1999);
      growing.failedCommit(2000);
      growing.commit(65_000 - growing.size);
      // The 65,536th leaf completes a tile of level 1 and begins one of level 2, inside of one commit.
      growing.failedCommit(600);
      growing.commit(600);
      growing.commit(500);
      growing.provesItself();
      expect(growing.tree.tile(2, 0)).toHaveLength(32);
      expect(growing.tree.tile(1, 0)).toHaveLength(256 * 32);
      const [top] = split(growing.tree.tile(2, 0) ?? new Uint8Array());
      expect(equalBytes(growing.tree.node({ level: 16, index: 0 }), top ?? new Uint8Array())).toBe(true);
    });
  });

  it("are missed, and not made up, where storage lost one", async () => {
    await runInDurableObject(env.PRINCIPAL_LOG.getByName("lost-tiles"), (_log, state) => {
      const growing = new GrowingTree(state);
      growing.commit(700);
      state.storage.sql.exec("DELETE FROM tiles WHERE level = 0 AND tile = 1");
      expect(() => inclusionPaths(nativeCrypto, growing.tree, [300], 700)).toThrow("not stored");
      state.storage.sql.exec("DELETE FROM tiles WHERE level = 1");
      expect(() => growing.commit(100)).toThrow("missing or of the wrong width");
    });
  });
});
