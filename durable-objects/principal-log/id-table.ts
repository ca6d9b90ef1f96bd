/**
 * Which entries of a stretch of the log may carry an id. Of each id the table has 64 bits of a keyed hash, 16 bytes in all,
 * so that a million ids take 16 MB and not the 100 MB that they would as strings. The hash only says where to look: the
 * caller compares the id itself.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";

/** Writes the two halves of an id's hash. */
export type IdHash = (id: string, halves: Uint32Array) => void;

/** Entries that there is room for at first; a power of two. */
const MIN_ROOM = 1024;

/**
 * A hash under a random key, so that ids which collide can't be prepared beforehand. It is no cryptographic one: a collision
 * costs the reading of an entry, and no more.
 */
export function keyedHash(): IdHash {
  const [key1 = 0, key2 = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (id, halves) => {
    let a = key1;
    let b = key2;
    for (let i = 0; i < id.length; i++) {
      const unit = id.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x9e3779b1);
      b = Math.imul(b ^ unit ^ (a >>> 15), 0x85ebca77);
    }
    a ^= a >>> 16;
    b ^= b >>> 13;
    halves[0] = Math.imul(a, 0xc2b2ae3d) ^ b;
    halves[1] = Math.imul(b, 0x27d4eb2f) ^ a;
  };
}

export class IdTable {
  readonly #hash: IdHash;
  readonly #halves = new Uint32Array(2);
  /** Both halves of each entry's hash, at its sequence number modulo the room. */
  #hashes = new Uint32Array(2 * MIN_ROOM);
  /** Sequence numbers, each at or after the place that its hash gives (linear probing); 0 where there is none. */
  #slots = new Uint32Array(2 * MIN_ROOM);
  #room = MIN_ROOM;
  #firstSeq = 1;
  #count = 0;

  constructor(hash: IdHash = keyedHash()) {
    this.#hash = hash;
  }

  get count(): number {
    return this.#count;
  }

  /** The oldest entry that is here, where there is one. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  /** Makes room for so many more entries. Throws where there is no memory for them, and changes nothing then. */
  makeRoom(count: number): void {
    let room = this.#room;
    while (room < this.#count + count) room *= 2;
    if (room > this.#room) this.#resize(room);
  }

  /**
   * Throws `RunsealError("storage-inconsistent")` where the entry does not follow the last one.
   *
   * @param seq at most 2^32 - 1
   */
  add(id: string, seq: number): void {
    if (this.#count === 0) this.#firstSeq = seq;
    if (seq !== this.#firstSeq + this.#count)
      throw new RunsealError("storage-inconsistent", "the memory of ids has a gap");
    this.makeRoom(1);
    this.#hash(id, this.#halves);
    const at = 2 * (seq & (this.#room - 1));
    this.#hashes[at] = this.#halves[0] ?? 0;
    this.#hashes[at + 1] = this.#halves[1] ?? 0;
    this.#count += 1;
    this.#place(seq);
  }

  /**
   * The sequence number of the id's entry.
   *
   * @param isOf whether the entry of a sequence number carries the id: another one may have its hash
   */
  find(id: string, isOf: (seq: number) => boolean): number | undefined {
    this.#hash(id, this.#halves);
    const [high = 0, low = 0] = this.#halves;
    const mask = this.#slots.length - 1;
    for (let slot = high & mask; ; slot = (slot + 1) & mask) {
      const seq = this.#slots[slot] ?? 0;
      if (seq === 0) return undefined;
      const at = 2 * (seq & (this.#room - 1));
      if (this.#hashes[at] === high && this.#hashes[at + 1] === low && isOf(seq)) return seq;
    }
  }

  /** Takes out the entries up to this one. */
  forgetUpTo(seq: number): void {
    for (; this.#count > 0 && this.#firstSeq <= seq; this.#firstSeq++, this.#count--)
      this.#remove(this.#firstSeq);
    let room = this.#room;
    while (room > MIN_ROOM && this.#count < room / 4) room /= 2;
    if (room === this.#room) return;
    try {
      this.#resize(room);
    } catch {
      // No memory for a smaller table beside this one: it stays as wide as it is.
    }
  }

  /** The slot that the entry's hash gives. */
  #home(seq: number): number {
    return (this.#hashes[2 * (seq & (this.#room - 1))] ?? 0) & (this.#slots.length - 1);
  }

  #place(seq: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#home(seq);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = seq;
  }

  /** Moves what follows into the gap, where it belongs there or before: a search ends at a gap. */
  #remove(seq: number): void {
    const mask = this.#slots.length - 1;
    let gap = this.#home(seq);
    while (this.#slots[gap] !== seq) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; ; slot = (slot + 1) & mask) {
      const next = this.#slots[slot] ?? 0;
      if (next === 0) break;
      if (((slot - this.#home(next)) & mask) >= ((slot - gap) & mask)) {
        this.#slots[gap] = next;
        gap = slot;
      }
    }
    this.#slots[gap] = 0;
  }

  #resize(room: number): void {
    const old = this.#hashes;
    const { length } = old;
    // Both before either is put in place: there may be no memory for the second.
    const [hashes, slots] = [new Uint32Array(2 * room), new Uint32Array(2 * room)];
    this.#hashes = hashes;
    this.#slots = slots;
    this.#room = room;
    for (let seq = this.#firstSeq; seq < this.#firstSeq + this.#count; seq++) {
      const from = (2 * seq) & (length - 1);
      const to = 2 * (seq & (room - 1));
      hashes[to] = old[from] ?? 0;
      hashes[to + 1] = old[from + 1] ?? 0;
      this.#place(seq);
    }
  }
}
