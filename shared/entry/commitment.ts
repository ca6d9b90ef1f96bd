/**
 * Field commitments: SHA-256(dCBOR(["runseal.field.v1", section, name, salt, canonical text])).
 * A commitment binds nothing of the log; the leaf that holds it does.
 *
 * @module
 */
import { CborWriter, wellFormedUtf8 } from "../cbor/encode.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";

export const FIELD_TAG = "runseal.field.v1";
/** Bytes of a salt. */
export const SALT_BYTES = 16;
/** Bytes of a commitment. */
export const COMMITMENT_BYTES = 32;

/** The sections whose members are committed field by field. */
export const SECTIONS = ["action", "authorization", "outcome"] as const;
export type SectionName = (typeof SECTIONS)[number];

/** What discloses one field: hashed together it gives the commitment in the leaf. */
export interface FieldOpening {
  readonly section: SectionName;
  readonly name: string;
  /** 16 bytes. */
  readonly salt: Uint8Array;
  /** Canonical JSON text of the value. */
  readonly text: string;
}

/** Characters up to which a text is copied by hand, where it is all ASCII: a call of the encoder costs more. */
const SHORT_TEXT = 512;
/** Field names of a section that an encoded beginning is kept for: schemas have fewer, and what a bundle names is anybody's. */
const MAX_BEGINNINGS = 2048;

/** Everything before the salt's bytes, by section and name. */
const beginnings: Readonly<Record<SectionName, Map<string, Uint8Array>>> = {
  action: new Map(),
  authorization: new Map(),
  outcome: new Map(),
};

// Hashing is synchronous and keeps nothing, so that one buffer serves every call.
let scratch = new Uint8Array(4096);

function beginningOf(section: SectionName, name: string): Uint8Array {
  const ofSection = beginnings[section];
  const known = ofSection.get(name);
  if (known !== undefined) return known;
  const writer = new CborWriter();
  writer.arrayHead(5).text(FIELD_TAG).text(section).text(name).bytes(new Uint8Array(SALT_BYTES));
  const beginning = writer.finish().slice(0, -SALT_BYTES);
  if (ofSection.size < MAX_BEGINNINGS) ofSection.set(name, beginning);
  return beginning;
}

function reserve(bytes: number): void {
  if (scratch.length >= bytes) return;
  const grown = new Uint8Array(2 * bytes);
  grown.set(scratch);
  scratch = grown;
}

/** Writes the head of a text of so many bytes; answers where the text starts. */
function textHead(at: number, length: number): number {
  if (length < 24) {
    scratch[at] = 0x60 | length;
    return at + 1;
  }
  const bytes = length < 0x100 ? 1 : length < 0x1_0000 ? 2 : 4;
  scratch[at] = 0x77 + bytes - (bytes >> 2);
  for (let i = 0; i < bytes; i++) scratch[at + bytes - i] = length >>> (8 * i);
  return at + 1 + bytes;
}

/** Writes a short text of ASCII alone; answers where it ends, or -1 where it is not one. */
function asciiText(at: number, text: string): number {
  const { length } = text;
  if (length > SHORT_TEXT) return -1;
  const start = textHead(at, length);
  const buffer = scratch;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return -1;
    buffer[start + i] = unit;
  }
  return start + length;
}

/** Commits fields, one after the other, with one buffer for all. */
export class FieldCommitter {
  readonly #crypto: CryptoPort;

  constructor(crypto: CryptoPort) {
    this.#crypto = crypto;
  }

  /**
   * The commitment, 32 bytes, and the UTF-8 bytes of the text. Throws `RunsealError("bad-cbor-value")` for a text with an
   * unpaired surrogate, which UTF-8 can't carry, and `RunsealError("bad-salt")` for a salt that has not 16 bytes.
   */
  commit(
    section: SectionName,
    name: string,
    salt: Uint8Array,
    text: string,
  ): { commitment: Uint8Array; textBytes: number } {
    if (salt.length !== SALT_BYTES) throw new RunsealError("bad-salt", "a salt has 16 bytes");
    const beginning = beginningOf(section, name);
    const at = beginning.length + SALT_BYTES;
    reserve(at + 3 + SHORT_TEXT);
    scratch.set(beginning);
    scratch.set(salt, beginning.length);
    let end = asciiText(at, text);
    let textBytes = text.length;
    if (end < 0) {
      const encoded = wellFormedUtf8(text);
      textBytes = encoded.length;
      reserve(at + 5 + textBytes);
      const start = textHead(at, textBytes);
      scratch.set(encoded, start);
      end = start + textBytes;
    }
    return { commitment: this.#crypto.sha256(scratch.subarray(0, end)), textBytes };
  }
}

/** The commitment to a field: 32 bytes. */
export function commitField(crypto: CryptoPort, { section, name, salt, text }: FieldOpening): Uint8Array {
  return new FieldCommitter(crypto).commit(section, name, salt, text).commitment;
}
