/**
 * Identifiers: the opaque ids of the envelope, and ids that carry a time (UUIDv7, ULID).
 *
 * The envelope is permanent and in the clear, so an id is a short token without
 * spaces or punctuation that invites free text.
 *
 * @module
 */
import { RunsealError } from "./errors.ts";

/** An opaque identifier: 1 to 128 of `[A-Za-z0-9._:-]`. */
export const OPAQUE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Whether the text is an opaque identifier. */
export function isOpaqueId(text: string): boolean {
  return OPAQUE_ID.test(text);
}

/** Milliseconds that the 48 bits of a UUIDv7 or ULID hold at most. */
const MAX_MS = 2 ** 48 - 1;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Characters of a ULID that hold its time: 50 bits, of which the first two are zero. */
const ULID_TIME_CHARS = 10;

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}

/**
 * A UUIDv7 (RFC 9562 section 5.7) in its canonical lower-case form. `nowMs` is unix time in milliseconds (a fraction
 * is dropped); of the 16 random bytes the last ten are used, less the six bits of version and variant. Throws
 * `RunsealError("bad-id")` where the time does not fit 48 bits or the bytes are not 16.
 */
export function uuidv7(nowMs: number, random16: Uint8Array): string {
  const ms = Math.floor(nowMs);
  if (!(ms >= 0 && ms <= MAX_MS)) throw new RunsealError("bad-id", "the time does not fit a UUIDv7");
  if (random16.length !== 16) throw new RunsealError("bad-id", "a UUIDv7 is made of 16 random bytes");
  const time = hex(ms, 12);
  let tail = "";
  for (let i = 6; i < 16; i++) {
    const byte = random16[i] ?? 0;
    tail += hex(i === 6 ? 0x70 | (byte & 0x0f) : i === 8 ? 0x80 | (byte & 0x3f) : byte, 2);
  }
  return `${time.slice(0, 8)}-${time.slice(8)}-${tail.slice(0, 4)}-${tail.slice(4, 8)}-${tail.slice(8)}`;
}

/**
 * The unix time in milliseconds inside a UUIDv7 (lower-case, with dashes) or a ULID (26 upper-case Crockford
 * characters); null for any other id. It is what the id's maker claims, no more.
 */
export function timeOfId(id: string): number | null {
  if (id.length === 36 && UUID_V7.test(id)) return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  if (id.length !== 26 || !ULID.test(id)) return null;
  let ms = 0;
  for (let i = 0; i < ULID_TIME_CHARS; i++) ms = ms * 32 + CROCKFORD.indexOf(id.charAt(i));
  return ms;
}
