/**
 * Walks the leaves of a log of heads, from the first: the records of the registry come in their order, batches count,
 * time does not fall, and no log's head is ever lowered, replaced or signed under an earlier epoch.
 *
 * @module
 */
import { equalBytes, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { RightEdge } from "../merkle/edge.ts";
import { leafHash } from "../merkle/hash.ts";
import { openCheckpoint } from "../note/checkpoint.ts";
import { decodeRecord, ROLES } from "../registry/record.ts";
import type { ListedHead } from "./leaf.ts";
import { decodeHeadsLeaf } from "./leaf.ts";

export type HeadsIssueCode =
  | "malformed-leaf"
  | "unsupported-leaf"
  | "foreign-registry"
  | "broken-registry"
  | "batch-gap"
  | "time-regression"
  | "head-lowered"
  | "head-forked"
  | "epoch-regression"
  | "epoch-ahead"
  | "unverified-checkpoint"
  | "size-mismatch"
  | "root-mismatch";

export interface HeadsIssue {
  readonly code: HeadsIssueCode;
  /** Index of the leaf, from 0; the number of leaves for what is wrong with the checkpoint. */
  readonly index: number;
  /** The log that it is about, hex, where it is about one. */
  readonly logId?: string;
}

/** The last head of a log, and where it was listed first and last. */
export interface SeenHead extends ListedHead {
  /** Index of the first leaf that lists this size. */
  readonly firstIndex: number;
  readonly lastIndex: number;
  /** Time of the last leaf that lists the log, nanoseconds. */
  readonly lastTime: bigint;
}

export interface HeadsWalkOptions {
  /** 32 bytes. */
  readonly registryId: Uint8Array;
  /** Whether registry records are leaves: in a tenant's log, not in the service's. */
  readonly withRecords: boolean;
}

export class HeadsWalker {
  readonly #crypto: CryptoPort;
  readonly #options: HeadsWalkOptions;
  readonly #edge: RightEdge;
  readonly #issues: HeadsIssue[] = [];
  readonly #heads = new Map<string, SeenHead>();
  readonly #keys: Uint8Array[] = [];
  #epoch = -1;
  #recordHash: Uint8Array | null = null;
  #batch = 0;
  #time = 0n;

  constructor(crypto: CryptoPort, options: HeadsWalkOptions) {
    this.#crypto = crypto;
    this.#options = options;
    this.#edge = new RightEdge(crypto);
  }

  /** What is wrong so far, in the order of the leaves. */
  get issues(): readonly HeadsIssue[] {
    return this.#issues;
  }

  /** The last head of each log by its id in hex. One that is no longer reported keeps its last head: it shows. */
  get heads(): ReadonlyMap<string, SeenHead> {
    return this.#heads;
  }

  get size(): number {
    return this.#edge.size;
  }

  /** Epoch of the last registry record; -1 before the first. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Takes the next leaf. */
  add(leaf: Uint8Array): void {
    const index = this.#edge.size;
    this.#edge.append(leafHash(this.#crypto, leaf));
    try {
      if (!this.#addHeads(leaf, index)) this.#addRecord(leaf, index);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      this.#issue(error.code === "unsupported-registry" ? "unsupported-leaf" : "malformed-leaf", index);
    }
  }

  /**
   * Compares the leaves with a signed head of their log.
   *
   * @param origin the log's origin, which is the name of its keys
   * @param keys the keys to trust; for a tenant's log those of role log from the records that were walked, if not given
   */
  end(note: string, origin: string, keys: readonly Uint8Array[] = this.#keys): void {
    const index = this.#edge.size;
    try {
      const { checkpoint } = openCheckpoint(this.#crypto, note, origin, keys);
      if (checkpoint.origin !== origin) this.#issue("unverified-checkpoint", index);
      else if (checkpoint.size !== index) this.#issue("size-mismatch", index);
      else if (!equalBytes(checkpoint.root, this.#edge.root())) this.#issue("root-mismatch", index);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      this.#issue("unverified-checkpoint", index);
    }
  }

  #issue(code: HeadsIssueCode, index: number, logId?: string): void {
    this.#issues.push({ code, index, ...(logId === undefined ? {} : { logId }) });
  }

  #addHeads(bytes: Uint8Array, index: number): boolean {
    const leaf = decodeHeadsLeaf(bytes);
    if (leaf === null) return false;
    if (!equalBytes(leaf.registryId, this.#options.registryId)) this.#issue("foreign-registry", index);
    if (leaf.batch !== this.#batch + 1) this.#issue("batch-gap", index);
    if (leaf.time < this.#time) this.#issue("time-regression", index);
    this.#batch = leaf.batch;
    this.#time = leaf.time;
    for (const head of leaf.heads) this.#addHead(head, index, leaf.time);
    return true;
  }

  #addHead(head: ListedHead, index: number, time: bigint): void {
    const logId = toHex(head.logId);
    const last = this.#heads.get(logId);
    if (this.#options.withRecords && head.epoch > this.#epoch) this.#issue("epoch-ahead", index, logId);
    if (last !== undefined) {
      const lowered = head.size < last.size;
      const forked = head.size === last.size && !equalBytes(head.root, last.root);
      if (lowered || forked) this.#issue(lowered ? "head-lowered" : "head-forked", index, logId);
      if (head.epoch < last.epoch) this.#issue("epoch-regression", index, logId);
      // What was listed once counts: a lowered head does not take its place.
      if (lowered || forked) return;
    }
    const firstIndex = last?.size === head.size ? last.firstIndex : index;
    this.#heads.set(logId, { ...head, firstIndex, lastIndex: index, lastTime: time });
  }

  #addRecord(bytes: Uint8Array, index: number): void {
    const record = decodeRecord(bytes);
    const hash = this.#crypto.sha256(bytes);
    const follows =
      this.#recordHash === null
        ? equalBytes(hash, this.#options.registryId)
        : equalBytes(record.prev, this.#recordHash);
    if (!this.#options.withRecords || record.epoch !== this.#epoch + 1 || !follows) {
      this.#issue("broken-registry", index);
      return;
    }
    this.#epoch = record.epoch;
    this.#recordHash = hash;
    for (const { role, key } of record.add) if (role === ROLES.log) this.#keys.push(key);
  }
}
