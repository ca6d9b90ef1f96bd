/**
 * Timestamped Ed25519 cosignatures of witnesses (c2sp.org/tlog-cosignature, signature type 0x04): the statement that,
 * as of that time, this is the largest consistent tree that the witness has seen of the log.
 *
 * @module
 */
import { concat, utf8 } from "../bytes.ts";
import { ED25519_SIGNATURE_BYTES } from "../crypto/ed25519-strict.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { parseCheckpointText } from "./checkpoint-text.ts";
import type { NoteSignature } from "./signed-note.ts";
import { witnessKey } from "./vkey.ts";

const TIMESTAMP_BYTES = 8;
/** The largest timestamp that the specification allows. */
const MAX_TIMESTAMP = (1n << 63n) - 1n;

/** What is signed: two lines, then the checkpoint's text with its last newline. */
function cosignedMessage(timestamp: bigint, text: Uint8Array): Uint8Array {
  return concat(utf8(`cosignature/v1\ntime ${timestamp}\n`), text);
}

/**
 * Verifies the signature part of a cosignature line: 8 bytes of big-endian POSIX seconds, then 64 of Ed25519.
 *
 * @param text UTF-8 of the note's text
 * @returns the time that is signed, or undefined where the key did not sign this
 */
export function verifyCosignature(
  crypto: CryptoPort,
  publicKey: Uint8Array,
  text: Uint8Array,
  signature: Uint8Array,
): { readonly timestamp: bigint } | undefined {
  if (signature.length !== TIMESTAMP_BYTES + ED25519_SIGNATURE_BYTES) return undefined;
  const timestamp = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
  if (timestamp > MAX_TIMESTAMP) return undefined;
  const message = cosignedMessage(timestamp, text);
  return crypto.verifyEd25519(publicKey, message, signature.subarray(TIMESTAMP_BYTES))
    ? { timestamp }
    : undefined;
}

/**
 * Cosigns a checkpoint. That it is consistent with all that the witness cosigned before is the caller's to check.
 *
 * @param name the witness' key name
 * @param text the checkpoint's text, without signatures
 * @param timestamp POSIX seconds
 * @throws `RunsealError("malformed-checkpoint")` for a text that is no checkpoint, `RunsealError("bad-timestamp")`,
 * `RunsealError("bad-key")` for a name that can't be one
 */
export function cosign(
  crypto: CryptoPort,
  name: string,
  signer: Signer,
  text: string,
  timestamp: bigint,
): NoteSignature {
  parseCheckpointText(text);
  if (timestamp < 0n || timestamp > MAX_TIMESTAMP)
    throw new RunsealError("bad-timestamp", "the time is out of range");
  const time = new Uint8Array(TIMESTAMP_BYTES);
  new DataView(time.buffer).setBigUint64(0, timestamp);
  return {
    name,
    keyId: witnessKey(crypto, name, signer.publicKey).keyId,
    signature: concat(time, signer.sign(cosignedMessage(timestamp, utf8(text)))),
  };
}
