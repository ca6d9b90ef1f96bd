/**
 * Strict decoding of deterministic CBOR (RFC 8949 section 4.2.1): whatever our encoder would not have written is
 * refused, so that decoding and encoding again always gives the same bytes.
 *
 * @module
 */
import { compareBytes, fromUtf8 } from "../bytes.ts";
import { RunsealError } from "../errors.ts";

/** A map key that we carry. Byte strings and nested keys would lose their identity in a JavaScript Map. */
export type CborKey = string | number | bigint;

/** A value of the part of CBOR that we carry: integers, byte and text strings, arrays, maps, false, true, null. */
export type CborValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | CborValue[]
  | Map<CborKey, CborValue>;

/** The deepest nesting of arrays, maps and tags that is read or written. */
export const MAX_CBOR_DEPTH = 64;

/** Up to this length, reading ASCII by hand is faster than the platform's decoder. */
const SHORT_TEXT = 32;

class Decoder {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** The first item of a type that we don't carry: reported only once all the rest is known to be well-formed. */
  #unsupported: string | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  whole(): CborValue {
    const value = this.#item(0);
    if (this.#at !== this.#bytes.length) throw this.#malformed("bytes follow the item");
    if (this.#unsupported !== undefined) throw new RunsealError("unsupported-cbor", this.#unsupported);
    return value;
  }

  #malformed(reason: string): RunsealError {
    return new RunsealError("malformed-cbor", `not deterministic CBOR at byte ${this.#at}: ${reason}`);
  }

  #skipUnsupported(what: string): null {
    this.#unsupported ??= `CBOR ${what} before byte ${this.#at} is not carried`;
    return null;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw this.#malformed("the item is cut short");
    this.#at++;
    return byte;
  }

  /** Big-endian number of up to 4 bytes. */
  #number(length: number): number {
    let value = 0;
    for (let i = 0; i < length; i++) value = value * 256 + this.#byte();
    return value;
  }

  #take(length: number | bigint): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw this.#malformed("the item is cut short");
    const start = this.#at;
    this.#at += Number(length);
    return this.#bytes.subarray(start, this.#at);
  }

  /** The argument of an item's head, its shortest form demanded. */
  #argument(info: number): number | bigint {
    if (info < 24) return info;
    if (info > 27) throw this.#malformed(info === 31 ? "an indefinite length or a break" : "a reserved head");
    const value = info === 27 ? this.#argument64() : this.#number(2 ** (info - 24));
    const least = info === 24 ? 24 : info === 25 ? 0x100 : info === 26 ? 0x1_0000 : 0x1_0000_0000;
    if (value < least) throw this.#malformed("a head that is not in its shortest form");
    return value;
  }

  #argument64(): number | bigint {
    const high = this.#number(4);
    const low = this.#number(4);
    const value = high * 0x1_0000_0000 + low;
    return Number.isSafeInteger(value) ? value : (BigInt(high) << 32n) | BigInt(low);
  }

  #item(depth: number): CborValue {
    const initial = this.#byte();
    const info = initial & 0x1f;
    const major = initial >> 5;
    if (major === 7) return this.#simple(info);
    const argument = this.#argument(info);
    switch (major) {
      case 0:
        return argument;
      case 1:
        return negative(argument);
      case 2:
        return this.#take(argument).slice();
      case 3:
        return this.#text(this.#take(argument));
      case 4:
        return this.#array(argument, depth + 1);
      case 5:
        return this.#map(argument, depth + 1);
      default:
        this.#checkDepth(depth + 1);
        this.#item(depth + 1);
        return this.#skipUnsupported("tag");
    }
  }

  #simple(info: number): CborValue {
    if (info === 20) return false;
    if (info === 21) return true;
    if (info === 22) return null;
    if (info < 24) return this.#skipUnsupported("simple value");
    if (info === 24) {
      if (this.#byte() < 32) throw this.#malformed("a simple value that is not in its shortest form");
      return this.#skipUnsupported("simple value");
    }
    if (info > 27) throw this.#malformed(info === 31 ? "a break" : "a reserved head");
    this.#take(2 ** (info - 24));
    return this.#skipUnsupported("floating-point number");
  }

  #text(bytes: Uint8Array): string {
    if (bytes.length <= SHORT_TEXT && bytes.every((byte) => byte < 0x80))
      return String.fromCharCode(...bytes);
    try {
      return fromUtf8(bytes);
    } catch {
      throw this.#malformed("a text string that is not UTF-8");
    }
  }

  #checkDepth(depth: number): void {
    if (depth > MAX_CBOR_DEPTH) throw this.#malformed(`nesting over ${MAX_CBOR_DEPTH}`);
  }

  #array(argument: number | bigint, depth: number): CborValue[] {
    this.#checkDepth(depth);
    const out: CborValue[] = [];
    // Nothing is allocated for a count that the bytes don't bear out: the first missing item ends it.
    for (let i = 0; i < argument; i++) out.push(this.#item(depth));
    return out;
  }

  #map(argument: number | bigint, depth: number): Map<CborKey, CborValue> {
    this.#checkDepth(depth);
    const out = new Map<CborKey, CborValue>();
    let previous: Uint8Array | undefined;
    for (let i = 0; i < argument; i++) {
      const start = this.#at;
      const key = this.#item(depth);
      const encoded = this.#bytes.subarray(start, this.#at);
      if (previous !== undefined && compareBytes(previous, encoded) >= 0) {
        throw this.#malformed("map keys that repeat or are not in order");
      }
      previous = encoded;
      const value = this.#item(depth);
      if (typeof key === "string" || typeof key === "number" || typeof key === "bigint") out.set(key, value);
      else this.#skipUnsupported("map key");
    }
    return out;
  }
}

function negative(argument: number | bigint): number | bigint {
  const value = typeof argument === "number" ? -1 - argument : -1n - argument;
  return typeof value === "bigint" || Number.isSafeInteger(value) ? value : -1n - BigInt(argument);
}

/**
 * The one item that the bytes are. Integers come back as numbers where those are exact (safe), else as bigints.
 * Byte strings are copies.
 *
 * @throws `RunsealError` with code `malformed-cbor` for bytes that are not deterministic CBOR (cut short, followed
 * by others, heads not shortest, indefinite lengths, keys out of order or repeated, bad UTF-8, nesting over 64), and
 * `unsupported-cbor` for deterministic CBOR with an item of a type that we don't carry: tags, floating-point
 * numbers, `undefined` and other simple values, map keys other than integers and text
 */
export function decodeCbor(bytes: Uint8Array): CborValue {
  return new Decoder(bytes).whole();
}
