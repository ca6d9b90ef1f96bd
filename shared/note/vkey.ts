/**
 * Keys of signed notes (c2sp.org/signed-note): name, type and public key, the short key id made of them, and their
 * text form, the vkey: `<name>+<key id, 8 hex digits>+<base64 of type byte and key>`.
 *
 * @module
 */
import { concat, fromBase64, fromHex, toBase64, toHex, utf8 } from "../bytes.ts";
import { ED25519_KEY_BYTES } from "../crypto/ed25519-strict.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";

/** The signature types that C2SP has assigned. We make and verify `ed25519` and `cosignature` alone. */
export const SIGNATURE_TYPES = {
  ed25519: 0x01,
  ecdsa: 0x02,
  cosignature: 0x04,
  treeHead: 0x05,
  mlDsa44: 0x06,
} as const;

/** A key that signs notes. */
export interface NoteKey {
  readonly name: string;
  /** With the name, what tells the key's signature lines: the first 4 bytes of a hash, as a big-endian number. */
  readonly keyId: number;
  /** One of `SIGNATURE_TYPES`. */
  readonly type: number;
  /** 32 bytes for the types that we verify. */
  readonly publicKey: Uint8Array;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const NOT_IN_NAME = /[\p{White_Space}\p{Surrogate}+\u0000-\u001f]/u;

/** Whether the text can name a key: not empty, no Unicode spaces, no plus, no control characters. */
export function isKeyName(name: string): boolean {
  return name !== "" && !NOT_IN_NAME.test(name);
}

/** Whether we verify signatures of that type. */
export function isSupportedType(type: number): boolean {
  return type === SIGNATURE_TYPES.ed25519 || type === SIGNATURE_TYPES.cosignature;
}

function keyIdOf(crypto: CryptoPort, name: string, type: number, publicKey: Uint8Array): number {
  const named = (key: Uint8Array) => crypto.sha256(concat(utf8(`${name}\n`), new Uint8Array([type]), key));
  // Two older types have rules of their own: the hash of the key alone, and the log id in place of the key.
  const hash =
    type === SIGNATURE_TYPES.ecdsa
      ? crypto.sha256(publicKey)
      : named(type === SIGNATURE_TYPES.treeHead ? crypto.sha256(publicKey) : publicKey);
  return readKeyId(hash);
}

/** The first 4 bytes as a number. */
export function readKeyId(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
}

/** The key id as 4 bytes. */
export function keyIdBytes(keyId: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, keyId);
  return bytes;
}

/**
 * The note key with that name, type and public key.
 *
 * @throws `RunsealError("bad-key")` for a name that can't be one, a type that is not assigned, or an Ed25519 key of
 * another length than 32 bytes
 */
export function noteKey(crypto: CryptoPort, name: string, type: number, publicKey: Uint8Array): NoteKey {
  if (!isKeyName(name)) throw new RunsealError("bad-key", "this can't be the name of a key");
  if (!Object.values<number>(SIGNATURE_TYPES).includes(type)) {
    throw new RunsealError("bad-key", "the signature type is not assigned");
  }
  if (isSupportedType(type) ? publicKey.length !== ED25519_KEY_BYTES : publicKey.length === 0) {
    throw new RunsealError("bad-key", "the public key has a wrong length");
  }
  return { name, keyId: keyIdOf(crypto, name, type, publicKey), type, publicKey: publicKey.slice() };
}

/** A log's Ed25519 key (type 0x01). */
export function logKey(crypto: CryptoPort, name: string, publicKey: Uint8Array): NoteKey {
  return noteKey(crypto, name, SIGNATURE_TYPES.ed25519, publicKey);
}

/** A witness' Ed25519 key for timestamped cosignatures (type 0x04). */
export function witnessKey(crypto: CryptoPort, name: string, publicKey: Uint8Array): NoteKey {
  return noteKey(crypto, name, SIGNATURE_TYPES.cosignature, publicKey);
}

/** The key's text form. */
export function formatVkey(key: NoteKey): string {
  const material = toBase64(concat(new Uint8Array([key.type]), key.publicKey));
  return `${key.name}+${toHex(keyIdBytes(key.keyId))}+${material}`;
}

const VKEY = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/;

/**
 * The key of a vkey. Keys of all assigned types can be read; signatures by those that we don't verify count as
 * unverified.
 *
 * @throws `RunsealError("bad-vkey")` where the form or the key id is wrong, or the type not assigned
 */
export function parseVkey(crypto: CryptoPort, vkey: string): NoteKey {
  const [, name, id, material] = VKEY.exec(vkey) ?? [];
  if (name === undefined || id === undefined || material === undefined) {
    throw new RunsealError("bad-vkey", "not <name>+<key id>+<key>");
  }
  let key: NoteKey;
  try {
    const bytes = fromBase64(material);
    key = noteKey(crypto, name, bytes[0] ?? 0, bytes.subarray(1));
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new RunsealError("bad-vkey", error.message);
  }
  if (key.keyId !== readKeyId(fromHex(id)))
    throw new RunsealError("bad-vkey", "the key id is not that of the key");
  return key;
}
