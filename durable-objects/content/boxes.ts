/**
 * The content object: values and salts of consecutive entries, each in an AES-256-GCM box of its own under a random key
 * of its own. Who deletes an entry's key has erased its box. docs/storage.md has
 * the bytes:
 *
 *     "runseal.content.v1\n" | nonce, 12 bytes | first seq, 64 bits | count, 32 bits | length of each box, 32 bits | boxes
 *
 * Integers are little-endian. A box is ciphertext and tag; its length is 0 where the entry has no value. The plaintext is
 * `values U+0001 salts`, as in shared/entry/row.ts; the additional data are `"runseal.content.v1\n" | log id | entry id`.
 *
 * A key seals one plaintext in its life: an entry's content changes by erasure alone, and that deletes the key. All boxes
 * of an object can so share a nonce; it is random all the same, for an object that is sealed again after a lost answer.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createDecipheriv, randomBytes } from "node:crypto";
import { concat, equalBytes, utf8 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";

export const KEY_BYTES = 32;
const MAGIC = utf8("runseal.content.v1\n");
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_AT = MAGIC.length;
const FIRST_AT = NONCE_AT + NONCE_BYTES;
const COUNT_AT = FIRST_AT + 8;
const LENGTHS_AT = COUNT_AT + 4;
const CIPHER = "aes-256-gcm";

/** An entry on its way into a box. */
export interface BoxEntry {
  readonly id: string;
  /** Null where there is nothing to seal, or where its key was deleted. */
  readonly sealed: { readonly key: Uint8Array; readonly text: string } | null;
}

function additionalData(logId: Uint8Array, id: string): Uint8Array {
  return concat(MAGIC, logId, utf8(id));
}

/** New random keys, joined. */
export function newKeys(count: number): Uint8Array {
  return new Uint8Array(randomBytes(count * KEY_BYTES));
}

/**
 * Seals consecutive entries into one object. By Web Crypto: a cipher of `node:crypto` takes twice the time in workerd, for
 * it is several objects an entry.
 */
export async function sealBoxes(
  logId: Uint8Array,
  firstSeq: number,
  entries: readonly BoxEntry[],
): Promise<Uint8Array> {
  const texts = entries.map(({ sealed }) => (sealed === null ? null : utf8(sealed.text)));
  const lengths = texts.map((text) => (text === null ? 0 : text.length + TAG_BYTES));
  const boxesAt = LENGTHS_AT + 4 * entries.length;
  const out = new Uint8Array(lengths.reduce((sum, length) => sum + length, boxesAt));
  const view = new DataView(out.buffer);
  const nonce = randomBytes(NONCE_BYTES);
  out.set(MAGIC);
  out.set(nonce, NONCE_AT);
  view.setBigUint64(FIRST_AT, BigInt(firstSeq), true);
  view.setUint32(COUNT_AT, entries.length, true);
  let at = boxesAt;
  for (const [i, { id, sealed }] of entries.entries()) {
    view.setUint32(LENGTHS_AT + 4 * i, lengths[i] ?? 0, true);
    const text = texts[i];
    if (sealed === null || text === null || text === undefined) continue;
    const key = await crypto.subtle.importKey("raw", sealed.key, "AES-GCM", false, ["encrypt"]);
    const additional = additionalData(logId, id);
    const algorithm = { name: "AES-GCM", iv: nonce, additionalData: additional, tagLength: 8 * TAG_BYTES };
    out.set(new Uint8Array(await crypto.subtle.encrypt(algorithm, key, text)), at);
    at += text.length + TAG_BYTES;
  }
  return out;
}

/** A content object that was read from R2. Nothing in it is trusted: a box opens with its key, or it does not. */
export class BoxReader {
  readonly #bytes: Uint8Array;
  readonly #starts: number[] = [];
  readonly firstSeq: number;
  readonly count: number;

  /** Throws `RunsealError("content-altered")` where the bytes are no content object. */
  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < LENGTHS_AT || !equalBytes(bytes.subarray(0, NONCE_AT), MAGIC)) throw altered();
    this.#bytes = bytes;
    this.firstSeq = Number(view.getBigUint64(FIRST_AT, true));
    this.count = view.getUint32(COUNT_AT, true);
    let at = LENGTHS_AT + 4 * this.count;
    if (at > bytes.length) throw altered();
    for (let i = 0; i < this.count; i++) {
      this.#starts.push(at);
      at += view.getUint32(LENGTHS_AT + 4 * i, true);
    }
    this.#starts.push(at);
    if (at !== bytes.length) throw altered();
  }

  /** Whether the entry had no value when it was sealed. */
  isEmpty(index: number): boolean {
    return this.#starts[index] === this.#starts[index + 1];
  }

  /** The text of a box. Throws `RunsealError("content-altered")` where it does not open. */
  open(index: number, key: Uint8Array, logId: Uint8Array, id: string): string {
    const box = this.#bytes.subarray(this.#starts[index], this.#starts[index + 1]);
    if (box.length < TAG_BYTES) throw altered();
    try {
      const decipher = createDecipheriv(CIPHER, key, this.#bytes.subarray(NONCE_AT, FIRST_AT));
      decipher.setAAD(additionalData(logId, id));
      decipher.setAuthTag(box.subarray(box.length - TAG_BYTES));
      const opened = decipher.update(box.subarray(0, box.length - TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString("utf8");
    } catch {
      throw altered();
    }
  }
}

function altered(): RunsealError {
  return new RunsealError("content-altered", "a content object is not the one that was stored");
}
