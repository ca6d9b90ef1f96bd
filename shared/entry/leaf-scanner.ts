/**
 * The items that a leaf is made of (docs/format.md), read in place and checked as the decoder checks them, without
 * building anything.
 *
 * @module
 */
export const NIL = 0xf6;
const BYTES_32 = 0x20;
export const OPAQUE = 1;
const NAME = 2;
const KIND_END = 4;

/** Character classes: of opaque identifiers, of field names and tags, of what follows a kind's dot. */
const CLASSES = new Uint8Array(256);
for (let c = 0; c < 128; c++) {
  const char = String.fromCharCode(c);
  if (/[A-Za-z0-9._:-]/.test(char)) CLASSES[c] = (CLASSES[c] ?? 0) | OPAQUE;
  if (/[a-z0-9_.]/.test(char)) CLASSES[c] = (CLASSES[c] ?? 0) | NAME;
  if (/[A-Za-z0-9_-]/.test(char)) CLASSES[c] = (CLASSES[c] ?? 0) | KIND_END;
}
const DOT = 0x2e;

const REPORTERS = new Set(["agent", "host", "service", "import"]);

/** Reads the items of a leaf one after the other; what is not as it should be turns `good` off. */
export class LeafScanner {
  readonly bytes: Uint8Array;
  at: number;
  /** Turned off by the first thing that is not as it should be. */
  good = true;
  high = 0;
  low = 0;

  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes;
    this.at = at;
  }

  byte(): number {
    const value = this.bytes[this.at];
    this.at += 1;
    if (value !== undefined) return value;
    this.good = false;
    return -1;
  }

  fail(): void {
    this.good = false;
  }

  /** An unsigned integer in its shortest form, into `high` and `low`. */
  uint(): void {
    const head = this.byte();
    this.high = 0;
    if (head < 24) this.low = head;
    else if (head === 24) {
      this.low = this.byte();
      if (this.low < 24) this.fail();
    } else if (head === 25) {
      this.low = this.byte() * 256 + this.byte();
      if (this.low < 0x100) this.fail();
    } else if (head === 26) {
      this.low = this.#word();
      if (this.low < 0x1_0000) this.fail();
    } else if (head === 27) {
      this.high = this.#word();
      this.low = this.#word();
      if (this.high === 0) this.fail();
    } else this.fail();
  }

  #word(): number {
    return ((this.byte() * 256 + this.byte()) * 256 + this.byte()) * 256 + this.byte();
  }

  /** An unsigned integer up to 2^53 - 1. */
  small(): number {
    this.uint();
    const value = this.high * 0x1_0000_0000 + this.low;
    if (!Number.isSafeInteger(value)) this.fail();
    return value;
  }

  /** A byte string of 32 bytes: where it starts. */
  bytes32(): number {
    if (this.byte() !== 0x58 || this.byte() !== BYTES_32) this.fail();
    const start = this.at;
    this.at += 32;
    return start;
  }

  /** The length of a text string. */
  textLength(head: number): number {
    if (head >= 0x60 && head < 0x78) return head - 0x60;
    const length = head === 0x78 ? this.byte() : 0;
    if (length < 24) this.fail();
    return length;
  }

  /** A text of 1 to `most` characters of a class. */
  text(charClass: number, most: number, head = this.byte()): void {
    const length = this.textLength(head);
    if (length < 1 || length > most) this.fail();
    const end = this.at + length;
    const { bytes } = this;
    for (let i = this.at; i < end; i++) {
      if (((CLASSES[bytes[i] ?? 255] ?? 0) & charClass) === 0) this.good = false;
    }
    this.at = end;
  }

  textOrNil(): void {
    const head = this.byte();
    if (head !== NIL) this.text(OPAQUE, 128, head);
  }

  /** A kind: words of names, then of whatever a kind may end in, with single dots between. */
  kind(): void {
    const length = this.textLength(this.byte());
    if (length > 128) this.fail();
    const end = this.at + length;
    let first = true;
    let word = 0;
    for (let i = this.at; i < end; i++) {
      const c = this.bytes[i] ?? 255;
      if (c === DOT) {
        if (word === 0) this.good = false;
        word = 0;
        first = false;
      } else {
        word += 1;
        const wanted = first ? NAME : KIND_END;
        if (((CLASSES[c] ?? 0) & wanted) === 0) this.good = false;
      }
    }
    if (first || word === 0) this.fail();
    this.at = end;
  }

  reporter(): void {
    const length = this.textLength(this.byte());
    let text = "";
    for (let i = 0; i < length && i < 8; i++) text += String.fromCharCode(this.bytes[this.at + i] ?? 0);
    if (!REPORTERS.has(text)) this.fail();
    this.at += length;
  }

  /** A map of commitments: how many. Names come in the order of their encoded bytes. */
  commitments(): number {
    const head = this.byte();
    const count = head >= 0xa0 && head < 0xb8 ? head - 0xa0 : head === 0xb8 ? this.byte() : -1;
    if (count < 0 || (head === 0xb8 && count < 24)) this.fail();
    let previous = 0;
    let previousEnd = 0;
    for (let i = 0; i < count && this.good; i++) {
      const start = this.at;
      this.text(NAME, 64);
      if (previousEnd > 0 && !this.#after(previous, previousEnd, start, this.at)) this.fail();
      previous = start;
      previousEnd = this.at;
      this.bytes32();
    }
    return count;
  }

  #after(a: number, aEnd: number, b: number, bEnd: number): boolean {
    const { bytes } = this;
    const length = Math.min(aEnd - a, bEnd - b);
    for (let i = 0; i < length; i++) {
      const difference = (bytes[b + i] ?? 0) - (bytes[a + i] ?? 0);
      if (difference !== 0) return difference > 0;
    }
    return bEnd - b > aEnd - a;
  }

  tagged(): number {
    const head = this.byte();
    if (head === NIL) return 0;
    if (head !== 0x82) this.fail();
    this.text(NAME, 64);
    return this.commitments();
  }

  actor(): void {
    const head = this.byte();
    if (head === NIL) return;
    if (head !== 0x83) this.fail();
    this.text(OPAQUE, 128);
    this.text(OPAQUE, 128);
    if (this.bytes[this.at] === NIL) this.at += 1;
    else this.bytes32();
  }

  client(): boolean {
    const head = this.byte();
    if (head === NIL) return false;
    if (head !== 0x82) this.fail();
    this.bytes32();
    if (this.byte() !== 0x58 || this.byte() !== 64) this.fail();
    this.at += 64;
    return true;
  }
}
