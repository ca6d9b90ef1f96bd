/**
 * One batch of a log of heads, inside one transaction: leaves, tiles, and the signed head.
 *
 * @module
 */
import { fromHex, toHex } from "../../shared/bytes.ts";
import type { CryptoPort, Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import type { TreeNode } from "../../shared/merkle/nodes.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { NewRecord } from "./batch.ts";
import { buildBatch } from "./batch.ts";
import { nextInterval, REPUBLISH_MS } from "./schedule.ts";
import type { HeadStorage } from "./storage.ts";

export interface ListContext {
  readonly crypto: CryptoPort;
  readonly storage: HeadStorage;
  readonly tree: TileTree;
  readonly origin: string;
  /** Leaves of the log as memory has it. */
  readonly size: number;
  /** Number of the last report. */
  readonly reports: number;
  readonly nowMs: number;
  /** The current key first. */
  readonly signers: readonly [Signer, ...Signer[]];
  /** Epoch of the current key. */
  readonly epoch: number;
  /** The registry records in effect; null for the service's log, where records are no leaves and no head waits for one. */
  readonly records: readonly NewRecord[] | null;
}

/**
 * Lists what is new, or everything where that is due.
 *
 * @returns what memory takes over once the transaction is through (`TileTree.adopt`); null: there was nothing to list
 * @throws `RunsealError("storage-inconsistent")`
 */
export function listHeads(context: ListContext): { size: number; partial: Uint8Array[] } | null {
  const { crypto, storage, tree, origin, nowMs, signers } = context;
  const state = storage.state();
  const registryId = storage.registryId();
  if (state === null || registryId === null || state.size !== context.size) {
    throw new RunsealError("storage-inconsistent", "memory and storage disagree on the head");
  }
  const full = nowMs - state.fullAtMs >= REPUBLISH_MS;
  const records = (context.records ?? []).filter(({ epoch }) => epoch > state.recordEpoch);
  const recordEpoch = records.at(-1)?.epoch ?? state.recordEpoch;
  const now = BigInt(nowMs) * 1_000_000n;
  const time = now > state.time ? now : state.time;
  const { leaves, batch, firstWaiting } = buildBatch({
    registryId: fromHex(registryId, 32),
    batch: state.batch,
    time,
    heads: storage.headsAfter(full ? 0 : state.listedReport),
    records,
    recordEpoch: context.records === null ? null : recordEpoch,
  });
  if (leaves.length === 0) return null;
  const edge = RightEdge.fromBytes(crypto, state.edge);
  const hashes = leaves.map((leaf) => leafHash(crypto, leaf));
  const completed: TreeNode[] = hashes.flatMap((hash) => edge.append(hash));
  const partial = tree.write(hashes, completed);
  leaves.forEach((leaf, i) => {
    storage.addLeaf(state.size + i, leaf);
  });
  const head = { origin, size: edge.size, root: edge.root() };
  storage.setState({
    size: edge.size,
    edge: edge.toBytes(),
    checkpoint: signCheckpoint(crypto, origin, signers, head),
    key: toHex(signers[0].publicKey),
    epoch: context.epoch,
    batch,
    time,
    recordEpoch,
    listedReport: firstWaiting === null ? context.reports : firstWaiting - 1,
    signedAtMs: nowMs,
    fullAtMs: full ? nowMs : state.fullAtMs,
    intervalMs: nextInterval(state, nowMs),
  });
  return { size: edge.size, partial };
}
