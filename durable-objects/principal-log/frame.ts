/**
 * How entries travel from the Worker to their log, and how a segment stores them: byte strings, each behind its length
 * in 32 bits, little-endian; and beside them their rows (shared/entry/row.ts), one a line. In a request the byte
 * strings are the leaves' bodies, in a segment the leaves. The log parses neither to order them.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";

/** Bytes of the length before each byte string. */
export const LENGTH_BYTES = 4;

/** An entry on its way, or as a segment holds it. */
export interface FramedEntry {
  /** The leaf, or in a request its body. */
  readonly bytes: Uint8Array;
  /** The row: see shared/entry/row.ts. It has no line feed in it. */
  readonly row: string;
}

/** Entries joined. */
export interface Frame {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly rows: string;
}

/** Joins entries. */
export function encodeFrame(entries: readonly FramedEntry[]): Frame {
  let length = 0;
  for (const { bytes } of entries) length += LENGTH_BYTES + bytes.length;
  const out = new Uint8Array(length);
  const view = new DataView(out.buffer);
  let at = 0;
  for (const { bytes } of entries) {
    view.setUint32(at, bytes.length, true);
    at += LENGTH_BYTES;
    out.set(bytes, at);
    at += bytes.length;
  }
  return { bytes: out, rows: entries.map(({ row }) => row).join("\n") };
}

/**
 * Splits byte strings, all of them or those from one place up to another; they are views into what was joined. Throws
 * `RunsealError("malformed-frame")`.
 */
export function decodeBytes(
  joined: Uint8Array,
  begin = 0,
  end: number = Number.POSITIVE_INFINITY,
): Uint8Array[] {
  const view = new DataView(joined.buffer, joined.byteOffset, joined.byteLength);
  const out: Uint8Array[] = [];
  for (let at = 0, place = 0; at < joined.length && place < end; place++) {
    const length = at + LENGTH_BYTES <= joined.length ? view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    at += LENGTH_BYTES;
    if (at + length > joined.length) throw new RunsealError("malformed-frame", "a frame is cut short");
    if (place >= begin) out.push(joined.subarray(at, at + length));
    at += length;
  }
  return out;
}

/** Splits entries. Throws `RunsealError("malformed-frame")`. */
export function decodeFrame(frame: { readonly bytes: Uint8Array; readonly rows: string }): FramedEntry[] {
  const bytes = decodeBytes(frame.bytes);
  const rows = bytes.length === 0 ? [] : frame.rows.split("\n");
  if (rows.length !== bytes.length)
    throw new RunsealError("malformed-frame", "a frame has fewer rows than entries");
  return bytes.map((one, i) => ({ bytes: one, row: rows[i] ?? "" }));
}
