/**
 * The leaves of one batch: heads by log id, at most 700 a leaf (in the service's log one, docs/heads.md), and each new registry record after the heads that were
 * signed before it (a head of a retired key counts if it is listed before the record).
 *
 * @module
 */
import { fromHex } from "../../shared/bytes.ts";
import { encodeHeadsLeaf, MAX_HEADS } from "../../shared/heads/leaf.ts";
import type { StoredReport } from "./storage.ts";

export interface NewRecord {
  readonly epoch: number;
  /** The record's bytes. */
  readonly bytes: Uint8Array;
}

export interface BatchInput {
  /** 32 bytes. */
  readonly registryId: Uint8Array;
  /** Lists so far. */
  readonly batch: number;
  /** Nanoseconds. */
  readonly time: bigint;
  /** Sorted by log id. */
  readonly heads: readonly StoredReport[];
  /** In order, those that are no leaves yet. */
  readonly records: readonly NewRecord[];
  /** Epoch of the last record that is a leaf, or will be; null where records are none: then no head waits. */
  readonly recordEpoch: number | null;
}

export interface Batch {
  readonly leaves: readonly Uint8Array[];
  /** Lists, those of this batch included. */
  readonly batch: number;
  /** Number of the first report that has to wait for its epoch's record; null for none. */
  readonly firstWaiting: number | null;
}

export function buildBatch(input: BatchInput): Batch {
  const leaves: Uint8Array[] = [];
  let { batch } = input;
  // In the service's log each tenant has a leaf of its own, which can be shown to it without showing another.
  const perLeaf = input.recordEpoch === null ? 1 : MAX_HEADS;
  const list = (heads: readonly StoredReport[]): void => {
    for (let at = 0; at < heads.length; at += perLeaf) {
      batch += 1;
      const listed = heads.slice(at, at + perLeaf).map(({ logId, size, root, epoch }) => {
        return { logId: fromHex(logId, 32), size, root: fromHex(root, 32), epoch };
      });
      leaves.push(encodeHeadsLeaf({ registryId: input.registryId, batch, time: input.time, heads: listed }));
    }
  };
  let left = input.heads;
  for (const record of input.records) {
    list(left.filter(({ epoch }) => epoch < record.epoch));
    left = left.filter(({ epoch }) => epoch >= record.epoch);
    leaves.push(record.bytes);
  }
  const last = input.recordEpoch;
  list(left.filter(({ epoch }) => last === null || epoch <= last));
  const waiting = left.filter(({ epoch }) => last !== null && epoch > last).map(({ report }) => report);
  return { leaves, batch, firstWaiting: waiting.length === 0 ? null : Math.min(...waiting) };
}
