/**
 * Proofs that stand alone (c2sp.org/tlog-proof@v1): an entry's index, its inclusion path, and the checkpoint that the
 * path leads to, in one text.
 *
 * @module
 */
import { fromBase64, toBase64 } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import type { ProofFault } from "../merkle/verify.ts";
import { verifyInclusion } from "../merkle/verify.ts";
import type { Checkpoint } from "./checkpoint-text.ts";
import { parseCheckpointText, parseDecimal, parseHash } from "./checkpoint-text.ts";
import type { VerifiedSignature } from "./signed-note.ts";
import { openNote } from "./signed-note.ts";
import type { NoteKey } from "./vkey.ts";

const HEADER = "c2sp.org/tlog-proof@v1";
/** No path in a tree of up to 2^63 leaves is longer. */
const MAX_HASHES = 63;

/** A proof of inclusion with its checkpoint. */
export interface TlogProof {
  /** Index of the entry, from 0. */
  readonly index: number;
  /** From the leaf's sibling up to the root's child, 32 bytes each. */
  readonly hashes: readonly Uint8Array[];
  /** The signed note, as the log gave it. */
  readonly checkpoint: string;
  /** Opaque data of the application. Nothing authenticates it. */
  readonly extra?: Uint8Array;
}

/** What a verified proof shows. */
export type TlogProofCheck =
  | {
      readonly ok: true;
      readonly checkpoint: Checkpoint;
      /** By the log's keys and the witnesses': how many witnesses are enough is the caller's policy. */
      readonly signatures: readonly VerifiedSignature[];
    }
  | {
      readonly ok: false;
      readonly reason:
        | ProofFault
        /** The checkpoint can't be read, or a known key's signature on it does not verify. */
        | "bad-checkpoint"
        /** None of the log's keys signed the checkpoint. */
        | "unsigned"
        /** The checkpoint is of another log. */
        | "other-origin";
    };

function malformed(what: string): RunsealError {
  return new RunsealError("malformed-proof", `the proof's ${what} is not as the format demands`);
}

/**
 * The text of a proof.
 *
 * @throws `RunsealError("malformed-proof")` where it could not be read back
 */
export function formatTlogProof({ index, hashes, checkpoint, extra }: TlogProof): string {
  const lines = [HEADER];
  if (extra !== undefined && extra.length > 0) lines.push(`extra ${toBase64(extra)}`);
  lines.push(`index ${index}`, ...hashes.map(toBase64), "", checkpoint);
  const text = lines.join("\n");
  parseTlogProof(text);
  return text;
}

/**
 * Takes a proof apart. Nothing is verified, and the checkpoint is not looked into.
 *
 * @throws `RunsealError("malformed-proof")`
 */
export function parseTlogProof(text: string): TlogProof {
  const border = text.indexOf("\n\n");
  if (border < 0) throw malformed("shape");
  const [header, ...lines] = text.slice(0, border).split("\n");
  if (header !== HEADER) throw malformed("header");
  const extra = lines[0]?.startsWith("extra ") ? parseExtra(lines.shift()?.slice(6) ?? "") : undefined;
  const indexLine = lines.shift() ?? "";
  const index = indexLine.startsWith("index ") ? parseDecimal(indexLine.slice(6)) : undefined;
  if (index === undefined) throw malformed("index");
  if (lines.length > MAX_HASHES) throw malformed("length");
  const hashes = lines.map((line) => {
    const hash = parseHash(line);
    if (hash === undefined) throw malformed("hash");
    return hash;
  });
  const checkpoint = text.slice(border + 2);
  if (!checkpoint.endsWith("\n")) throw malformed("checkpoint");
  return extra === undefined ? { index, hashes, checkpoint } : { index, hashes, checkpoint, extra };
}

function parseExtra(base64: string): Uint8Array {
  let extra: Uint8Array;
  try {
    extra = fromBase64(base64);
  } catch {
    throw malformed("extra data");
  }
  // Where there is none, the line is left out: one proof has one text.
  if (extra.length === 0) throw malformed("extra data");
  return extra;
}

/**
 * Whether the leaf with that hash is in the log of that origin, under a checkpoint that one of the log's keys signed.
 *
 * @param witnessKeys keys whose cosignatures are to be verified too
 */
export function verifyTlogProof(
  crypto: CryptoPort,
  proof: TlogProof,
  leafHash: Uint8Array,
  origin: string,
  logKeys: readonly NoteKey[],
  witnessKeys: readonly NoteKey[] = [],
): TlogProofCheck {
  let checkpoint: Checkpoint;
  let signatures: readonly VerifiedSignature[];
  try {
    const note = openNote(crypto, proof.checkpoint, [...logKeys, ...witnessKeys]);
    checkpoint = parseCheckpointText(note.text);
    signatures = note.verified;
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { ok: false, reason: error.code === "unverified-note" ? "unsigned" : "bad-checkpoint" };
  }
  if (!signatures.some(({ key }) => logKeys.includes(key))) return { ok: false, reason: "unsigned" };
  if (checkpoint.origin !== origin) return { ok: false, reason: "other-origin" };
  const { size, root } = checkpoint;
  const check = verifyInclusion(crypto, proof.index, size, leafHash, proof.hashes, root);
  return check.ok ? { ok: true, checkpoint, signatures } : check;
}
