/**
 * Writes deterministic CBOR (RFC 8949 section 4.2.1): shortest heads, definite lengths, map keys in the order of
 * their encoded bytes. `CborWriter` is for fixed shapes on the ingest path, `encodeCbor` for small values.
 *
 * @module
 */
import { compareBytes, utf8 } from "../bytes.ts";
import { RunsealError } from "../errors.ts";
import type { Slab } from "../slab.ts";
import type { CborKey } from "./decode.ts";
import { MAX_CBOR_DEPTH } from "./decode.ts";

/** What `encodeCbor` takes: a `CborValue`, or the same with read-only containers. */
export type CborInput =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly CborInput[]
  | ReadonlyMap<CborKey, CborInput>;

const UINT = 0x00;
const NEGATIVE = 0x20;
const BYTES = 0x40;
const TEXT = 0x60;
const ARRAY = 0x80;
const MAP = 0xa0;
const FALSE = 0xf4;
const TRUE = 0xf5;
const NULL = 0xf6;

/** The longest head: one byte and eight of argument. */
const MAX_HEAD = 9;
/** Up to this length, writing ASCII by hand is faster than the platform's encoder. */
const SHORT_TEXT = 64;

/** A buffer that is given back is kept for the next writer up to this size. */
const MAX_SPARE = 0x1_0000;
const NO_BUFFER: Uint8Array = new Uint8Array(0);

/**
 * One buffer that no writer holds: allocating one costs more than writing a leaf into it. Nothing of it shows, for
 * what a writer gives out is a copy of what it wrote itself.
 */
let spare: Uint8Array = NO_BUFFER;

function takeBuffer(capacity: number): Uint8Array {
  if (spare.length < capacity) return new Uint8Array(Math.max(capacity, 1024));
  const buffer = spare;
  spare = NO_BUFFER;
  return buffer;
}

/** Strings of lib ES2024, which every runtime that we support has. */
interface WellFormedString {
  isWellFormed(): boolean;
}

function refuse(message: string): RunsealError {
  return new RunsealError("bad-cbor-value", message);
}

/** UTF-8 of a text. Throws `RunsealError("bad-cbor-value")` for an unpaired surrogate, which UTF-8 can't carry. */
export function wellFormedUtf8(text: string): Uint8Array {
  if (!(text as unknown as WellFormedString).isWellFormed()) throw refuse("a text has an unpaired surrogate");
  return utf8(text);
}

/**
 * Appends items to a growing buffer. It writes what it is told: that a head's count matches the items that follow,
 * and that map keys come in order, is the caller's part.
 */
export class CborWriter {
  #buffer: Uint8Array;
  #length = 0;

  /** @param capacity bytes expected; the buffer doubles as needed */
  constructor(capacity = 256) {
    this.#buffer = takeBuffer(capacity);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#buffer.length) return;
    const grown = takeBuffer(Math.max(needed, 2 * this.#buffer.length));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }

  #push(byte: number): void {
    this.#buffer[this.#length++] = byte;
  }

  /** Big-endian, `length` up to 4. */
  #pushNumber(value: number, length: number): void {
    for (let shift = 8 * (length - 1); shift >= 0; shift -= 8) this.#push((value >>> shift) & 0xff);
  }

  /** Room for the head must have been reserved. */
  #head(major: number, argument: number): void {
    if (argument < 24) {
      this.#push(major | argument);
    } else if (argument < 0x100) {
      this.#push(major | 24);
      this.#push(argument);
    } else if (argument < 0x1_0000) {
      this.#push(major | 25);
      this.#pushNumber(argument, 2);
    } else if (argument < 0x1_0000_0000) {
      this.#push(major | 26);
      this.#pushNumber(argument, 4);
    } else {
      const high = Math.floor(argument / 0x1_0000_0000);
      this.#push(major | 27);
      this.#pushNumber(high, 4);
      this.#pushNumber(argument - high * 0x1_0000_0000, 4);
    }
  }

  #bigHead(major: number, argument: bigint): void {
    if (argument <= Number.MAX_SAFE_INTEGER) {
      this.#head(major, Number(argument));
      return;
    }
    this.#push(major | 27);
    this.#pushNumber(Number(argument >> 32n), 4);
    this.#pushNumber(Number(argument & 0xffff_ffffn), 4);
  }

  #integer(major: number, argument: number | bigint): this {
    const fits =
      typeof argument === "number"
        ? Number.isSafeInteger(argument) && argument >= 0
        : argument >= 0n && argument < 1n << 64n;
    if (!fits) throw refuse("an integer is not exact or out of CBOR's range");
    this.#reserve(MAX_HEAD);
    if (typeof argument === "number") this.#head(major, argument);
    else this.#bigHead(major, argument);
    return this;
  }

  /** Begins an array of `count` items. */
  arrayHead(count: number): this {
    return this.#integer(ARRAY, count);
  }

  /** Begins a map of `count` pairs; the caller writes key, value, key, value, in dCBOR order of the keys. */
  mapHead(count: number): this {
    return this.#integer(MAP, count);
  }

  /** An integer from 0 to 2^64 - 1; a number must be safe. Throws `RunsealError("bad-cbor-value")`. */
  uint(value: number | bigint): this {
    return this.#integer(UINT, value);
  }

  /** An integer from -2^64 to -1; a number must be safe. Throws `RunsealError("bad-cbor-value")`. */
  negint(value: number | bigint): this {
    if (typeof value === "number" && !Number.isSafeInteger(value))
      throw refuse("a number is not a safe integer");
    return this.#integer(NEGATIVE, -1n - BigInt(value));
  }

  /** A byte string. */
  bytes(value: Uint8Array): this {
    this.#reserve(MAX_HEAD + value.length);
    this.#head(BYTES, value.length);
    return this.raw(value);
  }

  /** A text string. Throws `RunsealError("bad-cbor-value")` for an unpaired surrogate, which UTF-8 can't carry. */
  text(value: string): this {
    if (value.length <= SHORT_TEXT && this.#shortAscii(value)) return this;
    const encoded = wellFormedUtf8(value);
    this.#reserve(MAX_HEAD + encoded.length);
    this.#head(TEXT, encoded.length);
    return this.raw(encoded);
  }

  /** Writes the text if it is all ASCII; else writes nothing and answers false. */
  #shortAscii(value: string): boolean {
    const start = this.#length;
    const length = value.length;
    this.#reserve(MAX_HEAD + length);
    this.#head(TEXT, length);
    const buffer = this.#buffer;
    const at = this.#length;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) {
        this.#length = start;
        return false;
      }
      buffer[at + i] = unit;
    }
    this.#length = at + length;
    return true;
  }

  /** null. */
  nil(): this {
    this.#reserve(1);
    this.#push(NULL);
    return this;
  }

  /** false or true. */
  bool(value: boolean): this {
    this.#reserve(1);
    this.#push(value ? TRUE : FALSE);
    return this;
  }

  /** Bytes as they are: items encoded elsewhere. */
  raw(encoded: Uint8Array): this {
    this.#reserve(encoded.length);
    this.#buffer.set(encoded, this.#length);
    this.#length += encoded.length;
    return this;
  }

  /** A copy of what was written, in the slab if one is given. The writer is empty afterwards and can be used again. */
  finish(slab?: Slab): Uint8Array {
    const out = slab?.take(this.#length) ?? new Uint8Array(this.#length);
    out.set(this.#buffer.subarray(0, this.#length));
    if (this.#buffer.length <= MAX_SPARE) spare = this.#buffer;
    this.#buffer = NO_BUFFER;
    this.#length = 0;
    return out;
  }
}

function writeInteger(writer: CborWriter, value: number | bigint): void {
  if (typeof value === "number" && !Number.isSafeInteger(value))
    throw refuse("a number is not a safe integer");
  if (value < 0) writer.negint(value);
  else writer.uint(value);
}

function writeMap(writer: CborWriter, map: ReadonlyMap<CborKey, CborInput>, depth: number): void {
  const pairs = [...map].map(([key, value]) => ({ key: encodeCbor(key), value }));
  pairs.sort((a, b) => compareBytes(a.key, b.key));
  writer.mapHead(pairs.length);
  let previous: Uint8Array | undefined;
  for (const { key, value } of pairs) {
    // 1 and 1n are two keys of a Map and one of CBOR.
    if (previous !== undefined && compareBytes(previous, key) === 0)
      throw refuse("two map keys encode alike");
    previous = key;
    writer.raw(key);
    write(writer, value, depth);
  }
}

function isMap(
  value: readonly CborInput[] | ReadonlyMap<CborKey, CborInput>,
): value is ReadonlyMap<CborKey, CborInput> {
  return value instanceof Map;
}

function write(writer: CborWriter, value: CborInput, depth: number): void {
  if (value === null) writer.nil();
  else if (typeof value === "string") writer.text(value);
  else if (typeof value === "boolean") writer.bool(value);
  else if (typeof value === "number" || typeof value === "bigint") writeInteger(writer, value);
  else if (value instanceof Uint8Array) writer.bytes(value);
  else if (depth === MAX_CBOR_DEPTH) throw refuse(`nesting over ${MAX_CBOR_DEPTH}`);
  else if (isMap(value)) writeMap(writer, value, depth + 1);
  else if (Array.isArray(value)) {
    writer.arrayHead(value.length);
    for (const item of value) write(writer, item, depth + 1);
  } else throw refuse("a value is of no type that CBOR carries here");
}

/**
 * The deterministic encoding of a value. Map keys are sorted by their encoded bytes.
 *
 * @throws `RunsealError("bad-cbor-value")` for a number that is not a safe integer, an integer out of range, an
 * unpaired surrogate, two keys that encode alike, nesting over 64
 */
export function encodeCbor(value: CborInput): Uint8Array {
  const writer = new CborWriter();
  write(writer, value, 0);
  return writer.finish();
}
