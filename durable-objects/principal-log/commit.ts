/**
 * The group commit: orders, hashes, stores and signs the entries of all waiting requests in one transaction. There
 * is no await in here, so no other event can come between choosing a sequence number and committing it.
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import type { CryptoPort, Signer } from "../../shared/crypto/port.ts";
import { LeafSealer } from "../../shared/entry/leaf.ts";
import { MAX_LEAF_BYTES, MAX_SEGMENT_BYTES } from "../../shared/entry/limits.ts";
import { RunsealError } from "../../shared/errors.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import type { TreeNode } from "../../shared/merkle/nodes.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { compareSubmissions } from "./compare.ts";
import type { FramedEntry } from "./frame.ts";
import { decodeFrame, encodeFrame, LENGTH_BYTES } from "./frame.ts";
import { signHead } from "./head-signing.ts";
import type { IdIndex } from "./id-index.ts";
import { futureAfter } from "./id-index.ts";
import type { LogStorage, StoredHead } from "./storage.ts";
import type { IdempotentRequest, ItemOutcome } from "./types.ts";

/** An entry found outside the log's own memory, by its id. */
export interface KnownEntry {
  readonly seq: number;
  readonly hash: string;
  /** The leaf, or null where only the receipt is known. */
  readonly leaf: Uint8Array;
  /** The row's JSON as in a segment. */
  readonly row: string;
}

/** One request on its way into a commit. */
export interface PendingRequest {
  readonly ids: readonly string[];
  readonly entries: readonly FramedEntry[];
  readonly atomic: boolean;
  /** Entries that D1 was found to hold under one of the ids. */
  readonly known: ReadonlyMap<string, KnownEntry>;
  /** Where the answer is to be remembered. */
  readonly idempotency?: IdempotentRequest | undefined;
}

/** What a commit is made with. */
export interface CommitContext {
  readonly crypto: CryptoPort;
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly ids: IdIndex;
  readonly origin: string;
  readonly logId: Uint8Array;
  readonly epoch: number;
  readonly signer: Signer;
  /** The key that signed the head before, where it is another one. */
  readonly retiring: Signer | null;
  readonly nowMs: number;
}

/** What a successful commit changed; memory takes it over once the transaction has ended. */
export interface CommitResult {
  readonly outcomes: readonly (readonly ItemOutcome[])[];
  readonly head: StoredHead;
  readonly partial: Uint8Array[];
  /** Ids of the entries stored now, with their sequence numbers, in order. */
  readonly stored: readonly (readonly [string, number])[];
  readonly storedBytes: number;
}

interface NewEntry {
  readonly id: string;
  readonly seq: number;
  readonly hash: Uint8Array;
  readonly framed: FramedEntry;
}

/** A stored entry, from its segment. Throws `RunsealError("storage-inconsistent")`. */
export function storedEntry(storage: LogStorage, seq: number): FramedEntry {
  const segment = storage.segmentOf(seq);
  const entry =
    segment === null
      ? undefined
      : decodeFrame({ bytes: segment.leaves, rows: segment.rows })[seq - segment.firstSeq];
  if (entry === undefined) throw new RunsealError("storage-inconsistent", "a segment of the log is missing");
  return entry;
}

/**
 * Commits the requests in their order. Must run inside a storage transaction, with memory equal to storage.
 *
 * @param base the head that storage holds
 * @throws whatever storage throws; nothing in memory was changed then
 */
export function commitGroup(
  context: CommitContext,
  base: StoredHead,
  requests: readonly PendingRequest[],
): CommitResult {
  const { crypto, storage, nowMs } = context;
  const edge = base.edge.clone();
  const sealer = new LeafSealer({
    logId: context.logId,
    epoch: context.epoch,
    key: context.signer.publicKey,
  });
  const clock = BigInt(nowMs) * 1_000_000n;
  const recordedAt = clock > base.recordedAt ? clock : base.recordedAt;
  const fresh = new Map<string, NewEntry>();
  const completed: TreeNode[] = [];
  let prev = base.lastHash;
  let seq = base.size;
  let futureUntil = base.futureUntil;

  function seen(id: string, framed: FramedEntry): ItemOutcome | null {
    const inGroup = fresh.get(id);
    if (inGroup !== undefined) return judge(inGroup.seq, toHex(inGroup.hash), inGroup.framed, framed);
    const remembered = context.ids.get(id);
    if (remembered !== undefined) {
      const old = storedEntry(storage, remembered);
      return judge(remembered, toHex(leafHash(crypto, old.bytes)), old, framed);
    }
    return null;
  }

  function judge(oldSeq: number, hash: string, old: FramedEntry, submitted: FramedEntry): ItemOutcome {
    const differs = compareSubmissions(crypto, old, submitted);
    if (differs === "erased") return { status: "erased", seq: oldSeq, hash };
    return differs.length === 0 ? { status: "seen", seq: oldSeq, hash } : { status: "conflict", differs };
  }

  function decide(request: PendingRequest, index: number): ItemOutcome | null {
    const id = request.ids[index] ?? "";
    const framed = request.entries[index];
    if (framed === undefined) throw new RunsealError("malformed-frame", "a frame has fewer entries than ids");
    const known = seen(id, framed);
    if (known !== null) return known;
    const indexed = request.known.get(id);
    if (indexed === undefined) return null;
    return judge(indexed.seq, indexed.hash, { bytes: indexed.leaf, row: indexed.row }, framed);
  }

  function store(id: string, framed: FramedEntry): ItemOutcome {
    seq += 1;
    const hashed = sealer.hashed(seq, prev, recordedAt, framed.bytes);
    const leaf = hashed.subarray(1);
    if (leaf.length > MAX_LEAF_BYTES)
      throw new RunsealError("leaf-too-large", "a leaf is larger than 16 KiB");
    const hash = crypto.sha256(hashed);
    for (const node of edge.take(hash)) completed.push(node);
    prev = hash;
    fresh.set(id, { id, seq, hash, framed: { bytes: leaf, row: framed.row } });
    futureUntil = futureAfter(id, nowMs, futureUntil);
    return { status: "stored", seq, hash: toHex(hash) };
  }

  const outcomes: ItemOutcome[][] = [];
  for (const request of requests) {
    if (request.atomic) {
      const decided = request.ids.map((_, index) => decide(request, index));
      const twice = conflictsWithin(crypto, request);
      const refused = decided.some((outcome, i) => isRefusal(outcome) || twice[i] !== null);
      if (refused) {
        outcomes.push(
          decided.map((outcome, i) =>
            isRefusal(outcome) ? outcome : (twice[i] ?? { status: "not-stored" }),
          ),
        );
        continue;
      }
    }
    outcomes.push(
      request.ids.map((id, index) => decide(request, index) ?? store(id, request.entries[index] ?? EMPTY)),
    );
  }

  const entries = [...fresh.values()];
  if (entries.length === 0) {
    return { outcomes, head: base, partial: [], stored: [], storedBytes: 0 };
  }
  const storedBytes = writeSegments(storage, entries, Number(recordedAt / 1_000_000n));
  const partial = context.tree.write(
    entries.map((entry) => entry.hash),
    completed,
  );
  const head: StoredHead = {
    size: seq,
    lastHash: prev,
    recordedAt,
    epoch: context.epoch,
    edge,
    checkpoint: signHead(crypto, context.origin, context.signer, context.retiring, {
      size: seq,
      root: edge.root(),
    }),
    futureUntil,
  };
  storage.setHead(head);
  return {
    outcomes,
    head,
    partial,
    stored: entries.map((entry) => [entry.id, entry.seq] as const),
    storedBytes,
  };
}

const EMPTY: FramedEntry = { bytes: new Uint8Array(), row: "" };

function isRefusal(outcome: ItemOutcome | null): outcome is ItemOutcome {
  return outcome !== null && (outcome.status === "conflict" || outcome.status === "erased");
}

/** For each entry of a request: a conflict where an earlier one of the same request has its id with other content. */
function conflictsWithin(crypto: CryptoPort, request: PendingRequest): (ItemOutcome | null)[] {
  const first = new Map<string, FramedEntry>();
  return request.ids.map((id, index) => {
    const framed = request.entries[index] ?? EMPTY;
    const earlier = first.get(id);
    if (earlier === undefined) {
      first.set(id, framed);
      return null;
    }
    const differs = compareSubmissions(crypto, earlier, framed, "body");
    return differs === "erased" || differs.length > 0
      ? { status: "conflict", differs: differs === "erased" ? [] : differs }
      : null;
  });
}

/** Writes the entries as segments of bounded size; answers the bytes written. */
function writeSegments(storage: LogStorage, entries: readonly NewEntry[], recordedAtMs: number): number {
  let total = 0;
  let pending: FramedEntry[] = [];
  let bytes = 0;
  let firstSeq = entries[0]?.seq ?? 0;
  const write = (): void => {
    if (pending.length === 0) return;
    const { bytes: leaves, rows } = encodeFrame(pending);
    storage.addSegment({ firstSeq, count: pending.length, recordedAtMs, leaves, rows });
    total += bytes;
    firstSeq += pending.length;
    pending = [];
    bytes = 0;
  };
  for (const { framed } of entries) {
    // A UTF-16 unit takes at most three bytes of UTF-8. A single entry fits in any case: its values are bounded in bytes.
    const size = LENGTH_BYTES + framed.bytes.length + 3 * framed.row.length;
    if (bytes > 0 && bytes + size > MAX_SEGMENT_BYTES) write();
    pending.push(framed);
    bytes += size;
  }
  write();
  return total;
}
