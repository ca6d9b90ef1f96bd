/**
 * UTF-8 decoding that can tell where bytes were bad. A byte that is part of no well-formed sequence (Unicode 3.9, table
 * 3-7) becomes the lone surrogate U+DC00 + byte, U+DC80..U+DCFF, as in Python's "surrogateescape"; well-formed UTF-8
 * can't give one. A `JsonReader` with `escapedBytes` then refuses the string that holds it, and reads the rest.
 *
 * @module
 */

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text; not `ok` where bytes were not UTF-8, which are escaped in it. */
export interface DecodedUtf8 {
  readonly ok: boolean;
  readonly text: string;
}

/** Decodes the bytes. A byte order mark stays in the text, as U+FEFF. */
export function decodeUtf8(bytes: Uint8Array): DecodedUtf8 {
  try {
    return { ok: true, text: decoder.decode(bytes) };
  } catch {
    return { ok: false, text: decodeUtf8Lossless(bytes) };
  }
}

/** Decodes the bytes, every bad one escaped: other bytes always give other text. */
export function decodeUtf8Lossless(bytes: Uint8Array): string {
  let out = "";
  let units: number[] = [];
  for (let i = 0; i < bytes.length; ) {
    const length = sequenceLength(bytes, i);
    if (length === 0) units.push(0xdc00 + (bytes[i] ?? 0));
    else pushCodePoint(units, bytes, i, length);
    i += length || 1;
    if (units.length > 0x1000) {
      out += String.fromCharCode(...units);
      units = [];
    }
  }
  return out + String.fromCharCode(...units);
}

/** Bytes of the well-formed sequence at `at`: 1 to 4, or 0 where there is none. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  // The second byte's range excludes overlong forms, surrogates and what is past U+10FFFF.
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  for (let k = 1; k < length; k++) {
    const byte = bytes[at + k] ?? 0;
    if (byte < (k === 1 ? low : 0x80) || byte > (k === 1 ? high : 0xbf)) return 0;
  }
  return length;
}

function pushCodePoint(units: number[], bytes: Uint8Array, at: number, length: number): void {
  const lead = bytes[at] ?? 0;
  let point = length === 1 ? lead : lead & (0x7f >> length);
  for (let k = 1; k < length; k++) point = (point << 6) | ((bytes[at + k] ?? 0) & 0x3f);
  if (point > 0xffff) units.push(0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
  else units.push(point);
}
