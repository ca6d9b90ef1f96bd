/**
 * One principal's part of a queue: what waits, in order, and the loop that sends it, one batch at a time. What failed
 * for a passing reason is sent again as it is; its ids make that harmless. Whatever can't be kept or is refused becomes
 * a `host.loss` entry at its place in the order.
 *
 * @module
 */
import { uuidv7 } from "../shared/ids.ts";
import { ProblemError } from "./client.ts";
import type { WindowLimits } from "./limits.ts";
import { fitting, isTooLarge, NO_LIMITS, sizeOf } from "./limits.ts";

export type LossReason = "queue_full" | "too_large" | "refused";

/** An entry on its way. */
export interface QueuedEntry {
  readonly text: string;
  /** UTF-8 bytes of the text. */
  readonly size: number;
  /** What the entry is: `own` entries are the queue's, and count against no bound. */
  readonly own: "loss" | "gap" | null;
  /** The gap's id, to be forgotten once it is stored. */
  readonly gapId?: string;
}

/** Entries that were not kept; grows until it is sent. */
interface OpenLoss {
  readonly reason: LossReason;
  count: number;
  readonly firstMs: number;
  lastMs: number;
}

/** An entry, or a loss that is not an entry yet. */
type Item = QueuedEntry | OpenLoss;

export interface LaneContext {
  /** Sends entries as NDJSON; throws `ProblemError`. */
  readonly send: (texts: readonly string[]) => Promise<SendAnswer>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly now: () => number;
  readonly random: () => number;
  readonly batchEntries: number;
  readonly batchBytes: number;
  readonly lingerMs: number;
  readonly maxBackoffMs: number;
  /** To be awaited before anything is sent. */
  readonly ready: () => Promise<void>;
  /** Entries left the queue: stored, or refused with the problem. */
  readonly settled: (entry: QueuedEntry, problem: unknown) => void;
  /** An attempt failed and will be made again. */
  readonly failed: (error: unknown, pauseMs: number) => void;
}

export interface SendAnswer {
  /** One an entry. */
  readonly results: readonly SendResult[];
  /** Null where the answer says nothing of limits, also where there are some. */
  readonly limits: WindowLimits | null;
}

export interface SendResult {
  /** Null: it is stored. */
  readonly error: unknown;
}

const MIN_BACKOFF_MS = 100;
/** A longer Retry-After is believed for so long; then it is asked for again. */
const MAX_RETRY_AFTER_MS = 15 * 60_000;

export class Lane {
  readonly #context: LaneContext;
  readonly #items: Item[] = [];
  readonly #waiting: { target: number; readonly resolve: () => void }[] = [];
  #added = 0;
  #settled = 0;
  #running = false;
  #stopped = false;
  /** Entries a batch, lowered where the service says that a batch is too large. */
  #batchEntries: number;
  /** The same, lowered where a limit was reached, and raised again with each batch that passes. */
  #share: number;
  /** What can pass at all, as the service said last. */
  #limits = NO_LIMITS;
  /** Sends what there is without waiting for more. */
  #hurry = false;

  constructor(context: LaneContext) {
    this.#context = context;
    this.#batchEntries = context.batchEntries;
    this.#share = context.batchEntries;
  }

  /** Entries and losses that wait. */
  get length(): number {
    return this.#items.length;
  }

  push(entry: QueuedEntry): void {
    this.#add(entry);
    this.#start();
  }

  /** Notes an entry that is not kept, at this place. */
  lose(reason: LossReason): void {
    const nowMs = this.#context.now();
    const open = this.#openLoss(reason);
    if (open !== null) {
      open.count += 1;
      open.lastMs = nowMs;
    } else this.#add({ reason, count: 1, firstMs: nowMs, lastMs: nowMs });
    this.#start();
  }

  /** Resolves once everything that waits now has left the queue. */
  drained(): Promise<void> {
    if (this.#settled === this.#added) return Promise.resolve();
    this.#hurry = true;
    return new Promise((resolve) => this.#waiting.push({ target: this.#added, resolve }));
  }

  /** Sends nothing more. */
  stop(): void {
    this.#stopped = true;
  }

  /** One loss a reason between two entries, however the reasons take turns: more would be memory without a bound. */
  #openLoss(reason: LossReason): OpenLoss | null {
    for (let i = this.#items.length - 1; i >= 0; i--) {
      const item = this.#items[i];
      if (item === undefined || !isLoss(item)) return null;
      if (item.reason === reason) return item;
    }
    return null;
  }

  #add(item: Item): void {
    this.#items.push(item);
    this.#added += 1;
  }

  #start(): void {
    if (this.#running || this.#stopped) return;
    this.#running = true;
    void this.#run().finally(() => {
      this.#running = false;
      // What came in after the loop's last look.
      if (this.#items.length > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    for (let attempt = 0; this.#items.length > 0 && !this.#stopped; ) {
      if (attempt === 0 && !this.#hurry && this.#items.length < this.#mostEntries)
        await this.#context.sleep(this.#context.lingerMs);
      const batch = this.#batch();
      try {
        await this.#context.ready();
        const { results, limits } = await this.#context.send(batch.map(({ text }) => text));
        this.#take(batch, results);
        this.#limits = limits ?? this.#limits;
        this.#share = Math.min(this.#context.batchEntries, 2 * this.#share);
        attempt = 0;
      } catch (error) {
        if (this.#isAtFault(error, batch) || this.#neverPasses(error, batch)) {
          attempt = 0;
          continue;
        }
        this.#sendLess(error, batch);
        attempt += 1;
        const pause = this.#pause(error, attempt);
        this.#context.failed(error, pause);
        await this.#context.sleep(pause);
      }
    }
  }

  get #mostEntries(): number {
    return Math.min(this.#batchEntries, this.#share, this.#limits.entries);
  }

  /** The next entries, as many as one request takes; a loss among them is closed and becomes an entry. */
  #batch(): QueuedEntry[] {
    const batch: QueuedEntry[] = [];
    const maxBytes = Math.min(this.#context.batchBytes, this.#limits.bytes);
    let bytes = 0;
    let isBehindSent = false;
    for (const [i, item] of this.#items.entries()) {
      // Behind a loss that was sent already, and whose answer is awaited, it goes on growing: attempts make no further ones.
      if (batch.length > 0 && (batch.length >= this.#mostEntries || (isLoss(item) && isBehindSent))) break;
      isBehindSent = !isLoss(item) && item.own === "loss";
      const entry = isLoss(item) ? this.#close(i, item) : item;
      if (batch.length > 0 && bytes + entry.size > maxBytes) break;
      batch.push(entry);
      bytes += entry.size + 1;
    }
    return batch;
  }

  /** From here on its text stays as it is, id included: it may be sent more than once. */
  #close(at: number, { reason, count, firstMs, lastMs }: OpenLoss): QueuedEntry {
    const time = (ms: number): string => new Date(ms).toISOString();
    const text = JSON.stringify({
      id: uuidv7(this.#context.now(), crypto.getRandomValues(new Uint8Array(16))),
      kind: "host.loss",
      action: { calls: { count, first_at: time(firstMs), last_at: time(lastMs) }, reason },
    });
    const entry: QueuedEntry = { text, size: sizeOf(text), own: "loss" };
    this.#items[at] = entry;
    return entry;
  }

  /** Takes a batch out that was answered; `reason` is why what was refused of it is lost. */
  #take(batch: readonly QueuedEntry[], results: readonly SendResult[], reason: LossReason = "refused"): void {
    if (results.length !== batch.length)
      throw new ProblemError(0, { title: "the answer does not have one result for each entry" });
    this.#items.splice(0, batch.length);
    let refused = 0;
    batch.forEach((entry, i) => {
      const error = results[i]?.error ?? null;
      if (error !== null && entry.own === null) refused += 1;
      this.#context.settled(entry, error);
    });
    this.#hurry = this.#items.length > 0 && this.#waiting.length > 0;
    if (refused > 0) {
      // Before whatever else waits, and whoever waits for those waits for this, too.
      const nowMs = this.#context.now();
      this.#items.unshift({ reason, count: refused, firstMs: nowMs, lastMs: nowMs });
      this.#added += 1;
      for (const waiting of this.#waiting) waiting.target += 1;
      this.#hurry = this.#waiting.length > 0;
    }
    this.#settled += batch.length;
    for (let i = this.#waiting.length - 1; i >= 0; i--) {
      const waiting = this.#waiting[i];
      if (waiting === undefined || waiting.target > this.#settled) continue;
      this.#waiting.splice(i, 1);
      waiting.resolve();
    }
  }

  /**
   * Whether the request itself is what is wrong: then it is cut in halves until the entry is alone that is at fault, and
   * that one is refused.
   */
  #isAtFault(error: unknown, batch: readonly QueuedEntry[]): boolean {
    if (!(error instanceof ProblemError) || ![400, 413, 415, 422].includes(error.status)) return false;
    if (batch.length > 1) {
      this.#batchEntries = Math.ceil(batch.length / 2);
      return true;
    }
    this.#take(batch, [{ error: error.problem }]);
    this.#batchEntries = this.#context.batchEntries;
    return true;
  }

  /** Whether the one entry of the batch is more than a limit ever takes: it is refused, or it would be in the way for ever. */
  #neverPasses(error: unknown, batch: readonly QueuedEntry[]): boolean {
    const [entry] = batch;
    if (!(error instanceof ProblemError) || error.status !== 429 || entry === undefined) return false;
    if (batch.length > 1 || !isTooLarge(entry.size, error.limits)) return false;
    this.#limits = error.limits;
    this.#take(batch, [{ error: error.problem }], "too_large");
    return true;
  }

  /**
   * A limit has no room for the batch: no more at once than it takes in a window. Where that is as much, half: others
   * may draw on it as well, and what is left then fits less and less.
   */
  #sendLess(error: unknown, batch: readonly QueuedEntry[]): void {
    if (!(error instanceof ProblemError) || error.status !== 429) return;
    this.#limits = error.limits;
    const sizes = batch.map(({ size }) => size);
    if (fitting(sizes, error.limits) === batch.length) this.#share = Math.ceil(batch.length / 2);
  }

  /**
   * Twice as long each time, and at least what the service asks for: that may be nothing, or a date that is past. A part by
   * chance, so that clients spread.
   */
  #pause(error: unknown, attempt: number): number {
    const { maxBackoffMs, random } = this.#context;
    const seconds = (error instanceof ProblemError ? error.retryAfter : null) ?? 0;
    const asked = Math.min(MAX_RETRY_AFTER_MS, seconds * 1000) * (1 + random() / 4);
    const backoff =
      Math.min(maxBackoffMs, MIN_BACKOFF_MS * 2 ** Math.min(attempt, 20)) * (0.5 + random() / 2);
    return Math.max(asked, backoff);
  }
}

function isLoss(item: Item): item is OpenLoss {
  return "reason" in item;
}
