/**
 * Signed notes (c2sp.org/signed-note): a text, an empty line, and a line for each signature. The rules are those of
 * Go's golang.org/x/mod/sumdb/note, with one more: base64 must be canonical, so that no bit of a note can change
 * unnoticed.
 *
 * @module
 */
import { concat, fromBase64, fromUtf8, toBase64, utf8 } from "../bytes.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { verifyCosignature } from "./cosignature.ts";
import type { NoteKey } from "./vkey.ts";
import { isKeyName, isSupportedType, keyIdBytes, logKey, readKeyId, SIGNATURE_TYPES } from "./vkey.ts";

/** The most signatures that a note may have, as in Go. */
export const MAX_NOTE_SIGNATURES = 100;
/** The longest note that is read, in UTF-16 units. */
export const MAX_NOTE_LENGTH = 1_000_000;

const EM_DASH = "\u2014";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const NOT_IN_NOTE = /[\u0000-\u0009\u000b-\u001f\p{Surrogate}]/u;

/** A signature line, taken apart. */
export interface NoteSignature {
  /** Name of the key. */
  readonly name: string;
  /** Big-endian number of 4 bytes: see `NoteKey`. */
  readonly keyId: number;
  /** What follows the key id: for Ed25519 64 bytes, for a cosignature 72. */
  readonly signature: Uint8Array;
}

/** A note whose signatures nobody looked at. */
export interface Note {
  /** Ends with a newline; it is what is signed. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A signature that a known key made. */
export interface VerifiedSignature extends NoteSignature {
  readonly key: NoteKey;
  /** POSIX seconds that a cosignature asserts; null for the other types. */
  readonly timestamp: bigint | null;
}

/** A note with at least one verified signature. */
export interface OpenedNote {
  readonly text: string;
  /** At most one for each key, in the note's order. */
  readonly verified: readonly VerifiedSignature[];
  /** By unknown keys and of types that we don't verify; equal lines once. They mean nothing. */
  readonly unverified: readonly NoteSignature[];
}

/** Who signs a note, and under what name. */
export interface NoteSigner {
  readonly name: string;
  readonly signer: Signer;
}

function malformed(): RunsealError {
  return new RunsealError("malformed-note", "not a signed note");
}

/** Whether the text can be signed: not empty, ends with a newline, has no other control characters. */
export function isNoteText(text: string): boolean {
  return text.endsWith("\n") && !NOT_IN_NOTE.test(text);
}

/** The line of a signature, with its newline. */
export function formatSignatureLine({ name, keyId, signature }: NoteSignature): string {
  return `${EM_DASH} ${name} ${toBase64(concat(keyIdBytes(keyId), signature))}\n`;
}

/**
 * The signature in a line, without its newline.
 *
 * @throws `RunsealError("malformed-note")`
 */
export function parseSignatureLine(line: string): NoteSignature {
  const [dash, name, base64, ...more] = line.split(" ");
  if (dash !== EM_DASH || name === undefined || base64 === undefined || more.length > 0) throw malformed();
  if (!isKeyName(name)) throw malformed();
  let bytes: Uint8Array;
  try {
    bytes = fromBase64(base64);
  } catch {
    throw malformed();
  }
  if (bytes.length < 5) throw malformed();
  return { name, keyId: readKeyId(bytes), signature: bytes.slice(4) };
}

/**
 * Signature lines, each with its newline: at least one, at most 100.
 *
 * @throws `RunsealError("malformed-note")`
 */
export function parseSignatureLines(lines: string): NoteSignature[] {
  if (!lines.endsWith("\n")) throw malformed();
  const parts = lines.slice(0, -1).split("\n");
  // Counted first, so that no time goes into a note of very many signatures.
  if (parts.length > MAX_NOTE_SIGNATURES) throw malformed();
  return parts.map(parseSignatureLine);
}

/**
 * Takes a note apart. Nothing is verified: the text must not be trusted.
 *
 * @throws `RunsealError("malformed-note")`
 */
export function parseNote(note: string | Uint8Array): Note {
  if (note.length > 3 * MAX_NOTE_LENGTH) throw malformed();
  let whole: string;
  try {
    whole = typeof note === "string" ? note : fromUtf8(note);
  } catch {
    throw malformed();
  }
  if (whole.length > MAX_NOTE_LENGTH || NOT_IN_NOTE.test(whole)) throw malformed();
  // The text may have empty lines too: the last one is the border.
  const border = whole.lastIndexOf("\n\n");
  if (border < 0) throw malformed();
  return { text: whole.slice(0, border + 1), signatures: parseSignatureLines(whole.slice(border + 2)) };
}

/**
 * The note of that text and those signatures.
 *
 * @throws `RunsealError("malformed-note")` where it could not be read back
 */
export function formatNote(note: Note): string {
  const { length } = note.signatures;
  if (!isNoteText(note.text) || length === 0 || length > MAX_NOTE_SIGNATURES) throw malformed();
  if (note.signatures.some((one) => !isKeyName(one.name) || one.signature.length === 0)) throw malformed();
  return `${note.text}\n${note.signatures.map(formatSignatureLine).join("")}`;
}

/** The note with more signatures after its own, such as cosignatures. Throws `RunsealError("malformed-note")`. */
export function addSignatures(note: string, more: readonly NoteSignature[]): string {
  const { text, signatures } = parseNote(note);
  return formatNote({ text, signatures: [...signatures, ...more] });
}

/** Whether the key made the signature, and when a cosignature says that it did. */
function verify(
  crypto: CryptoPort,
  key: NoteKey,
  text: Uint8Array,
  signature: Uint8Array,
): { readonly timestamp: bigint | null } | undefined {
  if (key.type === SIGNATURE_TYPES.cosignature)
    return verifyCosignature(crypto, key.publicKey, text, signature);
  return crypto.verifyEd25519(key.publicKey, text, signature) ? { timestamp: null } : undefined;
}

const idOf = ({ name, keyId }: { readonly name: string; readonly keyId: number }): string =>
  `${name}+${keyId}`;

/**
 * Verifies a note under the known keys, as Go's `note.Open` does. Signatures by other keys are ignored, even where
 * they share name or key id with a known one; keys of types that we don't verify count as unknown.
 *
 * @throws `RunsealError` with code `malformed-note`; `ambiguous-key` where two known keys share name and key id and a
 * signature has these; `invalid-signature` where a known key's signature does not verify; `unverified-note` where no
 * known key signed
 */
export function openNote(
  crypto: CryptoPort,
  note: string | Uint8Array,
  keys: readonly NoteKey[],
): OpenedNote {
  const { text, signatures } = parseNote(note);
  const known = new Map<string, NoteKey[]>();
  for (const key of keys) {
    if (isSupportedType(key.type)) known.set(idOf(key), [...(known.get(idOf(key)) ?? []), key]);
  }
  const signed = utf8(text);
  const verified = new Map<string, VerifiedSignature>();
  const unverified = new Map<string, NoteSignature>();
  for (const one of signatures) {
    const [key, another] = known.get(idOf(one)) ?? [];
    if (key === undefined) {
      unverified.set(formatSignatureLine(one), one);
      continue;
    }
    if (another !== undefined) {
      throw new RunsealError("ambiguous-key", "two known keys have the name and key id of a signature");
    }
    // A second signature by the same key is dropped unread, as Go does.
    if (verified.has(idOf(one))) continue;
    const made = verify(crypto, key, signed, one.signature);
    if (made === undefined) {
      throw new RunsealError("invalid-signature", "a known key's signature does not verify");
    }
    verified.set(idOf(one), { ...one, key, timestamp: made.timestamp });
  }
  if (verified.size === 0) throw new RunsealError("unverified-note", "no known key signed the note");
  return { text, verified: [...verified.values()], unverified: [...unverified.values()] };
}

/** A signer's key under the name that it signed with last: that of its log, for every head. */
const lastKeys = new WeakMap<Signer, NoteKey>();

function keyOf(crypto: CryptoPort, { name, signer }: NoteSigner): NoteKey {
  const last = lastKeys.get(signer);
  if (last?.name === name) return last;
  const key = logKey(crypto, name, signer.publicKey);
  lastKeys.set(signer, key);
  return key;
}

/**
 * Signs a text with Ed25519 (type 0x01), one line for each signer.
 *
 * @throws `RunsealError("malformed-note")` for a text that does not end with a newline or has other control
 * characters, and for no signers; `RunsealError("bad-key")` for a name that can't be one
 */
export function signNote(crypto: CryptoPort, text: string, signers: readonly NoteSigner[]): string {
  if (!isNoteText(text)) throw malformed();
  const signed = utf8(text);
  const signatures = signers.map((one) => ({
    name: one.name,
    keyId: keyOf(crypto, one).keyId,
    signature: one.signer.sign(signed),
  }));
  return formatNote({ text, signatures });
}
