/**
 * What a log knows of entry ids without asking D1: the ids of its most recent entries, complete from a time on. An
 * id is new for certain when every entry that could carry it would be among those (issue "exactly once"): because
 * the index is complete, or because the id carries its own time (UUIDv7, ULID) and that is recent.
 *
 * @module
 */
import { timeOfId } from "../../shared/ids.ts";

/** How far a client's clock may be off, in milliseconds, for the time inside its ids to be believed. */
export const CLOCK_SKEW_MS = 5 * 60_000;
/** Ids kept at most, apart from those that D1 does not hold yet. About 100 bytes each. */
export const MAX_REMEMBERED_IDS = 100_000;

export class IdIndex {
  readonly #seqs = new Map<string, number>();
  /** Every entry recorded at or after this time (ms) is in the index; 0: every entry of the log is. */
  #completeFrom = 0;
  #evictions = 0;
  /** The latest time (ms) carried by an accepted id that was ahead of the clock by more than the skew. */
  #futureUntil: number;

  constructor(futureUntil: number) {
    this.#futureUntil = futureUntil;
  }

  /** Counts evictions: a look-up in D1 that was made before one must be made again. */
  get evictions(): number {
    return this.#evictions;
  }

  /** To be stored with the head. */
  get futureUntil(): number {
    return this.#futureUntil;
  }

  /** The entry's sequence number, where the id is remembered. */
  get(id: string): number | undefined {
    return this.#seqs.get(id);
  }

  /** Whether the id can't be that of an entry outside the index. */
  isCertainlyNew(id: string, nowMs: number): boolean {
    if (this.#completeFrom === 0) return true;
    const time = timeOfId(id);
    if (time === null || time > nowMs + CLOCK_SKEW_MS || time <= this.#futureUntil) return false;
    return time - CLOCK_SKEW_MS >= this.#completeFrom;
  }

  /** What `futureUntil` becomes when the id is accepted now. */
  futureAfter(id: string, nowMs: number, current: number): number {
    const time = timeOfId(id);
    return time !== null && time > nowMs + CLOCK_SKEW_MS && time > current ? time : current;
  }

  /** Remembers an accepted id; called in the order of the log. */
  add(id: string, seq: number): void {
    this.#seqs.set(id, seq);
  }

  /** Takes over `futureUntil` after the commit that stored it. */
  setFutureUntil(time: number): void {
    this.#futureUntil = time;
  }

  /** Declares from when on (ms) the index is complete; 0 for the whole log. */
  setCompleteFrom(time: number): void {
    this.#completeFrom = time;
  }

  /**
   * Forgets the oldest ids beyond the bound, but none after `flushedSeq`.
   *
   * @param recordedAtMs the time at which the entry of a sequence number was recorded
   */
  evict(flushedSeq: number, recordedAtMs: (seq: number) => number): void {
    if (this.#seqs.size <= MAX_REMEMBERED_IDS) return;
    const target = MAX_REMEMBERED_IDS / 2;
    let oldestKept = 0;
    for (const [id, seq] of this.#seqs) {
      if (this.#seqs.size <= target || seq > flushedSeq) {
        oldestKept = seq;
        break;
      }
      this.#seqs.delete(id);
    }
    this.#evictions += 1;
    // One millisecond later than the last one forgotten could be: recorded times are whole milliseconds.
    this.#completeFrom = recordedAtMs(oldestKept) + 1;
  }
}
