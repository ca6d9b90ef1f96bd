/**
 * Gives a log back what its storage lost: it was set back, or emptied, and R2 mirrors a head
 * that it does not reach. The entries are taken from R2 and D1 page by page, each is checked, and they become the log's
 * only if together they give the root of the mirrored head, under a valid signature. Else the log stops.
 *
 * What D1 holds beyond the mirrored head is taken as well, as far as it goes on from there: it was acknowledged, and
 * heads over it may be in somebody's hands. docs/operate.md says what that rests on.
 *
 * Until the end the log's head is the old one. The entries wait in its segments behind that head, and the place reached is
 * stored with each page: a crash costs nothing but the page, and one call does a bounded part of the work.
 *
 * @module
 */
import { equalBytes, toHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { MAX_SEGMENT_BYTES } from "../../shared/entry/limits.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import type { TreeNode } from "../../shared/merkle/nodes.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import { checkCheckpoint } from "../../shared/verify/checkpoint.ts";
import { TileTree } from "../tile-store/tile-tree.ts";
import type { FramedEntry } from "./frame.ts";
import { encodeFrame, LENGTH_BYTES } from "./frame.ts";
import { futureAfter } from "./id-index.ts";
import type { CheckedEntry } from "./refill-check.ts";
import { checkFound } from "./refill-check.ts";
import type { RefillSourceContext } from "./refill-source.ts";
import { findEntries } from "./refill-source.ts";
import type { RefillState, RefillStore } from "./refill-store.ts";
import { loadPartialTile } from "./start.ts";
import type { LogStorage, StoredHead } from "./storage.ts";

/** An object, so that a test can lower it. */
export const REFILL_LIMITS = {
  /** Entries that one call takes at most; it goes on with the next one. A few seconds of a Durable Object's time. */
  perCall: 25_000,
};

export interface RefillContext extends RefillSourceContext {
  readonly crypto: CryptoPort;
  readonly storage: LogStorage;
  readonly store: RefillStore;
  readonly origin: string;
  /** The tenant's registry. Throws what the registry throws. */
  readonly registry: () => Promise<RegistryChain>;
  /** Up to which entry D1 holds the log, and that entry's hash (hex). Throws what D1 throws. */
  readonly indexed: () => Promise<{ readonly lastSeq: number; readonly lastHash: string }>;
  /** Makes the audit key of this epoch, or a later one, the one that signs. Throws what the registry throws. */
  readonly ensureKey: (epoch: number) => Promise<void>;
  /** Signs the head of the refilled log. */
  readonly sign: (size: number, root: Uint8Array) => { readonly checkpoint: string; readonly epoch: number };
}

export type RefillOutcome =
  | { readonly kind: "more" }
  | { readonly kind: "done"; readonly report: RefillReport }
  | { readonly kind: "refused"; readonly detail: string };

export interface RefillReport {
  /** First and last entry that was taken back. */
  readonly from: number;
  readonly to: number;
  /** How many of them came without their values. */
  readonly withoutContent: number;
  /** Up to which entry D1 is known to hold the log. */
  readonly flushedSeq: number;
}

/**
 * Does the next part of the work. Throws what D1, R2 and the registry throw: then it is to be tried again.
 *
 * @param head the log's, from storage
 * @param note the mirrored checkpoint, which is of a larger size
 */
export async function refill(context: RefillContext, head: StoredHead, note: string): Promise<RefillOutcome> {
  const { crypto, store, origin } = context;
  const registry = await context.registry();
  const signed = checkCheckpoint(crypto, registry, origin, note, null);
  if (!signed.ok) return refused(`the mirrored head can't be trusted: ${signed.detail}`);
  const mirrored = signed.checkpoint;
  const state = store.read(head.size) ?? begin(context, head, note);
  const writer = new RefillWriter(context, state);
  const started = writer.size;

  while (writer.size < mirrored.size) {
    if (writer.size - started >= REFILL_LIMITS.perCall) return { kind: "more" };
    const found = await findEntries(context, writer.size + 1, mirrored.size);
    if (found.length === 0) return refused(`entry ${writer.size + 1} is neither in R2 nor in D1`);
    const { entries, wrong } = checkFound({ ...context, registry }, writer.place, found);
    if (wrong !== null) return refused(wrong);
    writer.take(entries);
  }
  if (writer.size === mirrored.size) {
    const good = checkCheckpoint(crypto, registry, origin, note, writer.place.epoch);
    if (!good.ok) return refused(`the mirrored head can't be trusted: ${good.detail}`);
    if (!equalBytes(writer.root(), mirrored.root))
      return refused("they do not give the mirrored head's root");
  }

  const indexed = await context.indexed();
  while (writer.size < indexed.lastSeq) {
    if (writer.size - started >= REFILL_LIMITS.perCall) return { kind: "more" };
    const found = await findEntries(context, writer.size + 1, indexed.lastSeq);
    const { entries, wrong } = checkFound({ ...context, registry }, writer.place, found);
    if (entries.length > 0) writer.take(entries);
    // What does not go on from here was not acknowledged by this log.
    if (wrong !== null || entries.length === 0) break;
  }
  await context.ensureKey(writer.place.epoch);
  return { kind: "done", report: writer.finish(head, indexed) };
}

function refused(detail: string): RefillOutcome {
  return { kind: "refused", detail };
}

/** Clears away what may lie behind the head, and notes where to begin. */
function begin({ storage, store }: RefillContext, head: StoredHead, note: string): RefillState {
  const { size, lastHash, recordedAt, epoch, futureUntil } = head;
  const edge = head.edge.toBytes();
  const state = { base: size, size, lastHash, recordedAt, epoch, futureUntil, edge, withoutContent: 0, note };
  storage.transaction(() => {
    storage.dropAfter(size);
    store.write(state);
  });
  return state;
}

/** Puts checked entries behind the log's head. */
class RefillWriter {
  readonly #context: RefillContext;
  readonly #tree: TileTree;
  #state: RefillState;
  #edge: RightEdge;

  constructor(context: RefillContext, state: RefillState) {
    const { crypto, storage } = context;
    this.#context = context;
    this.#state = state;
    this.#edge = RightEdge.fromBytes(crypto, state.edge);
    this.#tree = new TileTree(storage.tiles, crypto);
    this.#tree.load(state.size, loadPartialTile(crypto, storage, state.size));
  }

  get size(): number {
    return this.#state.size;
  }

  get place(): RefillState {
    return this.#state;
  }

  root(): Uint8Array {
    return this.#edge.root();
  }

  /** One transaction. */
  take(entries: readonly CheckedEntry[]): void {
    const last = entries.at(-1);
    if (last === undefined) return;
    const { storage, store } = this.#context;
    const edge = this.#edge.clone();
    const completed: TreeNode[] = entries.flatMap(({ hash }) => edge.append(hash));
    let { futureUntil } = this.#state;
    for (const { id, recordedAt } of entries) {
      futureUntil = futureAfter(id, Number(recordedAt / 1_000_000n), futureUntil);
    }
    const state: RefillState = {
      ...this.#state,
      size: last.seq,
      lastHash: last.hash,
      recordedAt: last.recordedAt,
      epoch: last.epoch,
      futureUntil,
      edge: edge.toBytes(),
      withoutContent: this.#state.withoutContent + entries.filter(({ hasContent }) => !hasContent).length,
    };
    const partial = storage.transaction(() => {
      writeSegments(storage, entries);
      store.write(state);
      return this.#tree.write(
        entries.map(({ hash }) => hash),
        completed,
      );
    });
    this.#tree.adopt(state.size, partial);
    this.#state = state;
    this.#edge = edge;
  }

  /** Makes what was taken the log's, in one transaction. */
  finish(head: StoredHead, indexed: { readonly lastSeq: number; readonly lastHash: string }): RefillReport {
    const { storage, store, sign } = this.#context;
    const { size, lastHash, recordedAt, futureUntil, withoutContent } = this.#state;
    const holds = indexed.lastSeq > 0 && indexed.lastSeq <= size;
    const same =
      holds && toHex(this.#tree.leafHashes(indexed.lastSeq - 1, indexed.lastSeq)) === indexed.lastHash;
    const flushedSeq = same ? indexed.lastSeq : Math.min(storage.progress().flushedSeq, head.size);
    storage.transaction(() => {
      const { checkpoint, epoch } = sign(size, this.#edge.root());
      storage.setHead({ size, lastHash, recordedAt, futureUntil, epoch, edge: this.#edge, checkpoint });
      storage.setProgress({ ...storage.progress(), flushedSeq, arrival: null });
      store.clear();
    });
    return { from: head.size + 1, to: size, withoutContent, flushedSeq };
  }
}

/** Entries of one segment share their time, as those of a commit do: the flush takes it from there. */
function writeSegments(storage: LogStorage, entries: readonly CheckedEntry[]): void {
  let pending: FramedEntry[] = [];
  let bytes = 0;
  let first: CheckedEntry | undefined;
  const write = (): void => {
    if (first === undefined) return;
    const { bytes: leaves, rows } = encodeFrame(pending);
    const recordedAtMs = Number(first.recordedAt / 1_000_000n);
    storage.addSegment({ firstSeq: first.seq, count: pending.length, recordedAtMs, leaves, rows });
    pending = [];
    bytes = 0;
    first = undefined;
  };
  for (const entry of entries) {
    const size = LENGTH_BYTES + entry.leaf.length + 3 * entry.row.length;
    const fits = first?.recordedAt === entry.recordedAt && bytes + size <= MAX_SEGMENT_BYTES;
    if (!fits) write();
    first ??= entry;
    pending.push({ bytes: entry.leaf, row: entry.row });
    bytes += size;
  }
  write();
}

/** The size and root of a checkpoint that nobody verified; null where it is none. */
export function headOfNote(note: string): { readonly size: number; readonly root: string } | null {
  try {
    const { size, root } = parseCheckpoint(note).checkpoint;
    return { size, root: toHex(root) };
  } catch {
    return null;
  }
}
