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
/** Bounds of the memory. An object, so that a test can lower them. */
export const ID_LIMITS = {
  /** Ids kept at most, apart from those that D1 does not hold yet. About 100 bytes each. */
  remembered: 100_000,
};

export class IdIndex {
  readonly #seqs = new Map<string, number>();
  /** Every entry recorded at or after this time (ms) is in the index; 0: every entry of the log is. */
  #completeFrom = 0;
  /** Sequence number of the newest entry whose id may be forgotten; 0: none is. */
  #forgottenUpTo = 0;
  #evictions: number;
  /** The latest time (ms) carried by an accepted id that was ahead of the clock by more than the skew. */
  #futureUntil: number;

  /** @param evictions those of the index that this one takes over from, and one more */
  constructor(futureUntil: number, evictions = 0) {
    this.#futureUntil = futureUntil;
    this.#evictions = evictions;
  }

  /** Counts evictions: what an id was found to be before one must be found again. */
  get evictions(): number {
    return this.#evictions;
  }

  /** To be stored with the head. */
  get futureUntil(): number {
    return this.#futureUntil;
  }

  /** D1 must hold the entries up to this one for a look-up there to say that an id is new. */
  get forgottenUpTo(): number {
    return this.#forgottenUpTo;
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

  /** Declares from when on (ms) the index is complete, and up to which entry it may not be; 0, 0 for the whole log. */
  setCompleteFrom(time: number, forgottenUpTo: number): void {
    this.#completeFrom = time;
    this.#forgottenUpTo = forgottenUpTo;
  }

  /**
   * Forgets the oldest ids beyond the bound, but none after `flushedSeq`.
   *
   * @param recordedAtMs the time at which the entry of a sequence number was recorded
   */
  evict(flushedSeq: number, recordedAtMs: (seq: number) => number): void {
    if (this.#seqs.size <= ID_LIMITS.remembered) return;
    const target = ID_LIMITS.remembered / 2;
    let forgotten = 0;
    for (const [id, seq] of this.#seqs) {
      if (this.#seqs.size <= target || seq > flushedSeq) break;
      this.#seqs.delete(id);
      forgotten = seq;
    }
    // While D1 is away nothing can be forgotten: the index stays as complete as it was.
    if (forgotten === 0) return;
    this.#evictions += 1;
    this.#forgottenUpTo = forgotten;
    // Recorded times are whole milliseconds and never fall: later entries may share this one.
    this.#completeFrom = recordedAtMs(forgotten) + 1;
  }
}
