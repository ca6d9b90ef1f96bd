/**
 * What a log knows of entry ids without asking D1: the ids of its most recent entries, complete from a time on. An
 * id is new for certain when every entry that could carry it would be among those (issue "exactly once"): because
 * the index is complete, or because the id carries its own time (UUIDv7, ULID) and that is recent.
 *
 * @module
 */
import { timeOfId } from "../../shared/ids.ts";
import { IdTable } from "./id-table.ts";

/** How far a client's clock may be off, in milliseconds, for the time inside its ids to be believed. */
export const CLOCK_SKEW_MS = 5 * 60_000;
/** Bounds of the memory. An object, so that a test can lower them. */
export const ID_LIMITS = {
  /** Ids that are remembered of any log, half of them at least, apart from those that D1 does not hold yet. */
  remembered: 100_000,
  /**
   * Milliseconds over which ids are remembered, however many there are: longer than the skew, so that a busy log, too,
   * takes ids of now without D1.
   */
  windowMs: CLOCK_SKEW_MS + 60_000,
  /** Ids at most over that time, 16 MB: 2,500 entries a second. Of a log with more, ids are looked up in D1. */
  perWindow: 1_000_000,
};

/** What an accepted id makes of `futureUntil`: the latest time (ms) in an id that was ahead of the clock by more than the skew. */
export function futureAfter(id: string, nowMs: number, current: number): number {
  const time = timeOfId(id);
  return time !== null && time > nowMs + CLOCK_SKEW_MS && time > current ? time : current;
}

/** Entries that follow each other, and when the last of them was recorded, in milliseconds. */
interface Stretch {
  count: number;
  lastSeq: number;
  lastMs: number;
}

export class IdIndex {
  readonly #idOf: (seq: number) => string;
  readonly #table = new IdTable();
  /** What is in the table, by the time of recording: a note for each entry would take more room than the ids. */
  readonly #stretches: Stretch[] = [];
  /** Every entry recorded at or after this time (ms) is in the index; 0: every entry of the log is. */
  #completeFrom = 0;
  /** Sequence number of the newest entry whose id may be forgotten; 0: none is. */
  #forgottenUpTo = 0;
  #lastSeq = 0;
  #evictions: number;
  #futureUntil: number;

  /**
   * @param idOf the id of a stored entry, by its sequence number; what it throws, `get` throws
   * @param futureUntil see `futureAfter`
   * @param evictions those of the index that this one takes over from, and one more
   */
  constructor(idOf: (seq: number) => string, futureUntil = 0, evictions = 0) {
    this.#idOf = idOf;
    this.#futureUntil = futureUntil;
    this.#evictions = evictions;
  }

  /** Counts evictions: what an id was found to be before one must be found again. */
  get evictions(): number {
    return this.#evictions;
  }

  /** D1 must hold the entries up to this one for a look-up there to say that an id is new. */
  get forgottenUpTo(): number {
    return this.#forgottenUpTo;
  }

  /** The entry up to which the index knows the log. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The entry's sequence number, where the id is remembered. */
  get(id: string): number | undefined {
    return this.#table.find(id, (seq) => this.#idOf(seq) === id);
  }

  /** Whether the id can't be that of an entry outside the index. */
  isCertainlyNew(id: string, nowMs: number): boolean {
    if (this.#completeFrom === 0) return true;
    const time = timeOfId(id);
    if (time === null || time > nowMs + CLOCK_SKEW_MS || time <= this.#futureUntil) return false;
    return time - CLOCK_SKEW_MS >= this.#completeFrom;
  }

  /** So that `add` finds room after a commit, when nothing may fail any more. Throws where there is no memory for it. */
  makeRoom(count: number): void {
    this.#table.makeRoom(count);
  }

  /** Remembers an accepted id; called in the order of the log. */
  add(id: string, seq: number, recordedAtMs: number): void {
    this.#table.add(id, seq);
    this.#lastSeq = seq;
    const last = this.#stretches.at(-1);
    // Half of what is remembered has a hundred of them.
    if (last === undefined || last.count >= ID_LIMITS.remembered / 200) {
      this.#stretches.push({ count: 1, lastSeq: seq, lastMs: recordedAtMs });
      return;
    }
    last.count += 1;
    last.lastSeq = seq;
    last.lastMs = recordedAtMs;
  }

  /** Takes over `futureUntil` after the commit that stored it. */
  setFutureUntil(time: number): void {
    this.#futureUntil = time;
  }

  /** Declares from when on (ms) the index is complete, and up to which entry it may not be; 0, 0 for the whole log. */
  setCompleteFrom(time: number, forgottenUpTo: number): void {
    this.#completeFrom = time;
    this.#forgottenUpTo = forgottenUpTo;
    this.#lastSeq = Math.max(this.#lastSeq, forgottenUpTo);
  }

  /**
   * Forgets the oldest ids beyond the bounds, but none after `flushedSeq`: while D1 is away the index stays as complete as
   * it was. Seldom and many at a time, for who has asked D1 must ask again after it.
   */
  evict(flushedSeq: number): void {
    const { count } = this.#table;
    const [oldest] = this.#stretches;
    const newest = this.#stretches.at(-1);
    if (oldest === undefined || newest === undefined || count <= ID_LIMITS.remembered) return;
    const { windowMs, perWindow, remembered } = ID_LIMITS;
    const full = count > perWindow;
    if (!full && newest.lastMs - oldest.lastMs < windowMs * 1.2) return;
    const kept = full ? perWindow * 0.9 : remembered / 2;
    const upTo = Math.min(newest.lastSeq - Math.ceil(kept), flushedSeq);
    const untilMs = full ? newest.lastMs : newest.lastMs - windowMs;
    let forgotten = 0;
    let lastMs = 0;
    for (const stretch of this.#stretches) {
      if (stretch.lastMs > untilMs) break;
      forgotten = Math.min(stretch.lastSeq, upTo);
      lastMs = stretch.lastMs;
      if (stretch.lastSeq >= upTo) break;
    }
    if (forgotten - this.#table.firstSeq + 1 < Math.max(1, kept / 10)) return;
    // Recorded times are whole milliseconds and never fall: later entries may share this one.
    this.#completeFrom = lastMs + 1;
    this.#evictions += 1;
    this.#forgottenUpTo = forgotten;
    this.#table.forgetUpTo(forgotten);
    while ((this.#stretches[0]?.lastSeq ?? Number.POSITIVE_INFINITY) <= forgotten) this.#stretches.shift();
  }
}
