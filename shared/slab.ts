/**
 * Many short byte strings in one allocation. An engine keeps an array beyond 64 bytes outside its heap, and to allocate it
 * there takes longer than to hash it. What is taken here keeps the whole slab alive: it is for what lives no longer than a
 * request or a commit.
 *
 * @module
 */

/** Bytes of the first slab, and of the largest: each is four times the one before, so that a single string costs little. */
const FIRST_BYTES = 1024;
const MOST_BYTES = 64 * 1024;
/** Bytes beyond which a string gets an allocation of its own. */
const LARGE = MOST_BYTES / 4;

export class Slab {
  #bytes = new Uint8Array();
  #used = 0;

  /** That many bytes, all zero, which nobody else gets. */
  take(length: number): Uint8Array {
    if (length > LARGE) return new Uint8Array(length);
    if (this.#used + length > this.#bytes.length) {
      const next = Math.max(FIRST_BYTES, Math.min(MOST_BYTES, 4 * this.#bytes.length));
      this.#bytes = new Uint8Array(Math.max(length, next));
      this.#used = 0;
    }
    this.#used += length;
    return this.#bytes.subarray(this.#used - length, this.#used);
  }
}
