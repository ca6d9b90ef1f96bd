/**
 * How entries travel from the Worker to their log, and how a segment stores them: pairs of byte strings behind two
 * 32-bit little-endian lengths. In a request the first of a pair is a leaf's body, in a segment the leaf; the second
 * is the entry's row, the JSON that D1 will hold. The log never parses either to order them.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";

/** Bytes of the two lengths before each pair. */
export const PAIR_HEAD_BYTES = 8;

export interface FramePair {
  readonly first: Uint8Array;
  readonly second: Uint8Array;
}

/** Joins pairs into one byte string. */
export function encodeFrame(pairs: readonly FramePair[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const { first, second } of pairs) length += PAIR_HEAD_BYTES + first.length + second.length;
  const out = new Uint8Array(length);
  const view = new DataView(out.buffer);
  let at = 0;
  for (const { first, second } of pairs) {
    view.setUint32(at, first.length, true);
    view.setUint32(at + 4, second.length, true);
    at += PAIR_HEAD_BYTES;
    out.set(first, at);
    at += first.length;
    out.set(second, at);
    at += second.length;
  }
  return out;
}

/** Splits a byte string into its pairs; they are views into it. Throws `RunsealError("malformed-frame")`. */
export function decodeFrame(bytes: Uint8Array): FramePair[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pairs: FramePair[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + PAIR_HEAD_BYTES > bytes.length) throw new RunsealError("malformed-frame", "a frame is cut short");
    const firstLength = view.getUint32(at, true);
    const secondLength = view.getUint32(at + 4, true);
    at += PAIR_HEAD_BYTES;
    if (at + firstLength + secondLength > bytes.length) {
      throw new RunsealError("malformed-frame", "a frame is cut short");
    }
    const first = bytes.subarray(at, at + firstLength);
    at += firstLength;
    pairs.push({ first, second: bytes.subarray(at, at + secondLength) });
    at += secondLength;
  }
  return pairs;
}
