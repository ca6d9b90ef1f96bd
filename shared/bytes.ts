/**
 * Bytes: hex, base64, UTF-8, comparison. Small, dependency-free, the same in every runtime.
 *
 * @module
 */
import { RunsealError } from "./errors.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Code units of the hex digits. */
const HEX_DIGIT = new TextEncoder().encode("0123456789abcdef");
const HEX_VALUE = new Uint8Array(128);
for (let i = 0; i < 16; i++) HEX_VALUE["0123456789abcdef".charCodeAt(i)] = i;
/** 0 for the hex digits. */
const NOT_HEX = new Uint8Array(128).fill(1);
for (const digit of HEX_DIGIT) NOT_HEX[digit] = 0;
const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** UTF-8 bytes of the text (unpaired surrogates become U+FFFD, as in the platform's encoder). */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Text of UTF-8 bytes. Throws `RunsealError("bad-utf8")` where they are not valid UTF-8. */
export function fromUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new RunsealError("bad-utf8", "the bytes are not valid UTF-8");
  }
}

/** What newer engines have built in (ECMAScript, Uint8Array to and from base64 and hex); much faster than ours. */
interface NativeBytes {
  toHex?(): string;
  toBase64?(): string;
}
interface NativeBytesConstructor {
  fromHex?(text: string): Uint8Array<ArrayBuffer>;
  fromBase64?(text: string, options: { lastChunkHandling: "strict" }): Uint8Array<ArrayBuffer>;
}
const Native = Uint8Array as NativeBytesConstructor;
const hasNative =
  Native.fromBase64 !== undefined && (Uint8Array.prototype as NativeBytes).toBase64 !== undefined;

/** Whether the text is the lower-case hex of the bytes. */
export function equalsHex(bytes: Uint8Array, text: string): boolean {
  if (text.length !== 2 * bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    if (
      HEX_DIGIT[byte >> 4] !== text.charCodeAt(2 * i) ||
      HEX_DIGIT[byte & 15] !== text.charCodeAt(2 * i + 1)
    )
      return false;
  }
  return true;
}

/** Whether a part of the text is lower-case hex digits. A loop: on short texts a regular expression takes longer. */
export function isHex(text: string, from: number, to: number): boolean {
  let bad = to > text.length ? 1 : 0;
  for (let i = from; i < to; i++) bad |= NOT_HEX[text.charCodeAt(i)] ?? 1;
  return bad === 0;
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  const native = (bytes as NativeBytes).toHex?.();
  if (native !== undefined) return native;
  let out = "";
  for (const byte of bytes) out += HEX[byte];
  return out;
}

/** Bytes of lower-case hex; `length`, where given, is the number of bytes demanded. Throws `RunsealError("bad-hex")`. */
export function fromHex(text: string, length?: number): Uint8Array {
  if (text.length % 2 !== 0 || !isHex(text, 0, text.length))
    throw new RunsealError("bad-hex", "not lower-case hex");
  if (length !== undefined && text.length !== 2 * length) {
    throw new RunsealError("bad-hex", `not ${length} bytes of hex`);
  }
  if (Native.fromHex !== undefined) return Native.fromHex(text);
  const out = new Uint8Array(text.length / 2);
  for (let i = 0; i < out.length; i++) {
    out[i] = (HEX_VALUE[text.charCodeAt(2 * i)] ?? 0) * 16 + (HEX_VALUE[text.charCodeAt(2 * i + 1)] ?? 0);
  }
  return out;
}

/** Standard base64 with padding (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  const native = (bytes as NativeBytes).toBase64?.();
  if (native !== undefined) return native;
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x2000) {
    binary += String.fromCharCode(...bytes.subarray(i, i + 0x2000));
  }
  return btoa(binary);
}

/** Bytes of standard base64. Padding and zero trailing bits are demanded. Throws `RunsealError("bad-base64")`. */
export function fromBase64(text: string): Uint8Array {
  if (hasNative) {
    try {
      // The built-in skips white space, which is no base64 here.
      if (!/[\t\n\f\r ]/.test(text)) {
        const bytes = Native.fromBase64?.(text, { lastChunkHandling: "strict" });
        if (bytes !== undefined) return bytes;
      }
    } catch {
      // Refused below, as everywhere.
    }
    throw new RunsealError("bad-base64", "not standard base64 in its canonical form");
  }
  return decodeBase64(text);
}

/** Values of the base64 digits by code unit; 255 for any other. */
const DIGITS = new Uint8Array(128).fill(255);
for (let i = 0; i < 64; i++) {
  DIGITS["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".charCodeAt(i)] = i;
}

function decodeBase64(text: string): Uint8Array {
  const out = new Uint8Array(Math.floor((text.length / 4) * 3));
  const end = decodeBase64Into(text, out, 0);
  if (end < 0) throw new RunsealError("bad-base64", "not standard base64 in its canonical form");
  return out.length === end ? out : out.slice(0, end);
}

/**
 * Writes the bytes of standard base64 from a place on; there must be room for three bytes for each four characters.
 *
 * @returns where they end; -1 where the text is not base64 in its canonical form
 */
export function decodeBase64Into(text: string, out: Uint8Array, start: number): number {
  const { length } = text;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = length - padding;
  let bad = length % 4 !== 0 || (padding > 0 && length === padding) ? 255 : 0;
  let at = start;
  let i = 0;
  for (; i + 4 <= digits; i += 4) {
    const a = digit(text, i);
    const b = digit(text, i + 1);
    const c = digit(text, i + 2);
    const d = digit(text, i + 3);
    bad |= a | b | c | d;
    out[at++] = (a << 2) | (b >> 4);
    out[at++] = (b << 4) | (c >> 2);
    out[at++] = (c << 6) | d;
  }
  if (padding > 0 && bad < 64) {
    const a = digit(text, i);
    const b = digit(text, i + 1);
    bad |= a | b;
    out[at++] = (a << 2) | (b >> 4);
    if (padding === 1) {
      const c = digit(text, i + 2);
      out[at++] = (b << 4) | (c >> 2);
      // Bits that no byte takes must be zero: one text for the same bytes.
      bad |= c | ((c & 3) === 0 ? 0 : 255);
    } else {
      bad |= (b & 15) === 0 ? 0 : 255;
    }
  }
  return bad > 63 ? -1 : at;
}

function digit(text: string, at: number): number {
  return DIGITS[text.charCodeAt(at)] ?? 255;
}

/** One array of all the parts. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Lexicographic order of bytes: negative, zero or positive. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Equality of public bytes. For secrets use `equalSecret`. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && compareBytes(a, b) === 0;
}

/** Equality in time that depends on the lengths alone. */
export function equalSecret(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
