/**
 * Where a log of heads lists a log, with the proof of it: what ties a head to the log of heads in a bundle.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes, fromHex, toHex } from "../../shared/bytes.ts";
import { decodeHeadsLeaf, MAX_HEADS } from "../../shared/heads/leaf.ts";
import { inclusionPaths } from "../tile-store/proofs.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { HeadStorage } from "./storage.ts";
import type { ProvenListing } from "./types.ts";

/**
 * Batches that are looked at, from the last one backwards: every known head is listed again at least each ten minutes,
 * and batches are five seconds apart at least. A log that is not among them was never listed.
 */
const MAX_BATCHES = 200;

/**
 * The last leaf before `before` that lists the log.
 *
 * @param size the head under which the leaf is proved; at least `before`
 * @returns null where it was not listed yet
 */
export function lastListing(
  storage: HeadStorage,
  tree: TileTree,
  logId: string,
  before: number,
  size: number,
): ProvenListing | null {
  const id = fromHex(logId, 32);
  const { recordEpoch } = storage.state() ?? { recordEpoch: -1 };
  // Only a tenant's log holds records; the service's has a leaf for each head.
  const perLeaf = recordEpoch < 0 ? 1 : MAX_HEADS;
  const perBatch = Math.ceil(storage.countAfter(0) / perLeaf) + 1;
  const from = Math.max(0, before - MAX_BATCHES * perBatch);
  for (let to = before; ; ) {
    const index = storage.lastLeafWith(id, from, to);
    if (index === null) return null;
    const [leaf] = storage.leaves(index, index + 1);
    const head = leaf === undefined ? undefined : headIn(leaf, id);
    if (leaf !== undefined && head !== undefined) {
      const [path] = inclusionPaths(nativeCrypto, tree, [index + 1], size);
      return path === undefined ? null : { index, leaf, path, size: head.size, root: toHex(head.root) };
    }
    // The bytes stood elsewhere in it, by chance or in a registry record.
    to = index;
  }
}

function headIn(leaf: Uint8Array, logId: Uint8Array) {
  return decodeHeadsLeaf(leaf)?.heads.find((head) => equalBytes(head.logId, logId));
}
