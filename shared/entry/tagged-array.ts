/**
 * Arrays that begin with a text saying what they are: leaves and registry records. One that begins with another text
 * is of another version, which this one can't judge.
 *
 * @module
 */
import { fromUtf8 } from "../bytes.ts";
import type { CborValue } from "../cbor/decode.ts";
import { decodeCbor } from "../cbor/decode.ts";
import { RunsealError } from "../errors.ts";

/** The text that a CBOR array begins with, where it begins with one of less than 256 bytes; the rest is not looked at. */
function leadingText(data: Uint8Array): string | null {
  const info = (data[0] ?? 0) & 0x1f;
  if ((data[0] ?? 0) >> 5 !== 4 || info > 27) return null;
  const at = info < 24 ? 1 : 1 + 2 ** (info - 24);
  const short = (data[at] ?? 0) & 0x1f;
  if ((data[at] ?? 0) >> 5 !== 3 || short > 24) return null;
  const begin = short < 24 ? at + 1 : at + 2;
  const length = short < 24 ? short : (data[at + 1] ?? 0);
  return fromUtf8(data.subarray(begin, begin + length));
}

/**
 * The array's items where it begins with `tag`; null where it begins with another text. The items of another version
 * may be of types that this one does not carry.
 *
 * @throws `RunsealError` with code `malformed-cbor` or `unsupported-cbor`; `not-tagged` where it is no such array
 */
export function decodeTagged(data: Uint8Array, tag: string): readonly CborValue[] | null {
  let value: CborValue;
  try {
    value = decodeCbor(data);
  } catch (error) {
    const other =
      error instanceof RunsealError && error.code === "unsupported-cbor" ? leadingText(data) : null;
    if (other === null || other === tag) throw error;
    return null;
  }
  if (!Array.isArray(value) || typeof value[0] !== "string") {
    throw new RunsealError("not-tagged", "not an array that begins with a text");
  }
  return value[0] === tag ? value : null;
}
