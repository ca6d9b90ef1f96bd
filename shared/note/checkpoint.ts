/**
 * Checkpoints: signed notes whose text is a tree's head (c2sp.org/tlog-checkpoint).
 *
 * @module
 */
import { equalBytes } from "../bytes.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import type { Checkpoint, CheckpointHead } from "./checkpoint-text.ts";
import { formatCheckpoint, parseCheckpointText } from "./checkpoint-text.ts";
import type { NoteSignature } from "./signed-note.ts";
import { openNote, parseNote, signNote } from "./signed-note.ts";
import { logKey } from "./vkey.ts";

export type { Checkpoint, CheckpointHead } from "./checkpoint-text.ts";
export { formatCheckpoint, parseCheckpointText } from "./checkpoint-text.ts";

/** A checkpoint that nobody verified. */
export interface UnverifiedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** The note's text. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A checkpoint that at least one of the log's keys signed. */
export interface OpenedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** The note's text. */
  readonly text: string;
  /** The given keys that signed, in the order of their signatures. */
  readonly keys: Uint8Array[];
}

/**
 * Signs a head with Ed25519 (type 0x01) under one key name, which for our logs is the origin: with the keys of one
 * signer, or, for the first head after a rotation, of two.
 *
 * @throws `RunsealError`: `malformed-checkpoint`, `malformed-note` for no signers, `bad-key` for a name that can't be
 * one
 */
export function signCheckpoint(
  crypto: CryptoPort,
  name: string,
  signers: readonly Signer[],
  checkpoint: CheckpointHead & { readonly extensions?: readonly string[] },
): string {
  return signNote(
    crypto,
    formatCheckpoint(checkpoint),
    signers.map((signer) => ({ name, signer })),
  );
}

/**
 * Takes a checkpoint apart without verifying it.
 *
 * @throws `RunsealError`: `malformed-note` or `malformed-checkpoint`
 */
export function parseCheckpoint(note: string | Uint8Array): UnverifiedCheckpoint {
  const { text, signatures } = parseNote(note);
  return { checkpoint: parseCheckpointText(text), text, signatures };
}

/**
 * Verifies a checkpoint under the Ed25519 keys of its log. Other signatures are ignored. The origin is whatever it
 * is: the caller compares it.
 *
 * @param name the name of the log's keys in signature lines
 * @param keys public keys, 32 bytes each
 * @throws `RunsealError` as `openNote` does (`unverified-note` where none of the keys signed), or with code
 * `malformed-checkpoint`
 */
export function openCheckpoint(
  crypto: CryptoPort,
  note: string | Uint8Array,
  name: string,
  keys: readonly Uint8Array[],
): OpenedCheckpoint {
  const { text, verified } = openNote(
    crypto,
    note,
    keys.map((key) => logKey(crypto, name, key)),
  );
  const signed = verified.flatMap((one) => keys.find((key) => equalBytes(key, one.key.publicKey)) ?? []);
  return { checkpoint: parseCheckpointText(text), text, keys: signed };
}
