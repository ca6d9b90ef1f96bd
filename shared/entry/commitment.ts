/**
 * Field commitments (design section 3): SHA-256(dCBOR(["runseal.field.v1", section, name, salt, canonical text])).
 * A commitment binds nothing of the log; the leaf that holds it does.
 *
 * @module
 */
import { CborWriter } from "../cbor/encode.ts";
import type { CryptoPort } from "../crypto/port.ts";

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

/** Commits the fields of one entry after the other, with one buffer for all. */
export class FieldCommitter {
  readonly #crypto: CryptoPort;

  constructor(crypto: CryptoPort) {
    this.#crypto = crypto;
  }

  /** The commitment, 32 bytes, and the UTF-8 bytes of the text. */
  commit(
    section: SectionName,
    name: string,
    salt: Uint8Array,
    text: string,
  ): { commitment: Uint8Array; textBytes: number } {
    const writer = new CborWriter(text.length + 96);
    writer.arrayHead(5);
    writer.text(FIELD_TAG);
    writer.text(section);
    writer.text(name);
    writer.bytes(salt);
    writer.text(text);
    const encoded = writer.finish();
    return {
      commitment: this.#crypto.sha256(encoded),
      textBytes: textBytesOf(encoded.length, section, name),
    };
  }
}

/** UTF-8 bytes of the text, from the encoded length: what is left of the heads and the other members. */
function textBytesOf(encodedLength: number, section: string, name: string): number {
  const others = 1 + (1 + FIELD_TAG.length) + (1 + section.length) + (name.length < 24 ? 1 : 2) + name.length;
  const withHead = encodedLength - others - (1 + SALT_BYTES);
  const head = withHead <= 24 ? 1 : withHead <= 257 ? 2 : withHead <= 65_538 ? 3 : 5;
  return withHead - head;
}

/** The commitment to a field: 32 bytes. */
export function commitField(crypto: CryptoPort, { section, name, salt, text }: FieldOpening): Uint8Array {
  return new FieldCommitter(crypto).commit(section, name, salt, text).commitment;
}
