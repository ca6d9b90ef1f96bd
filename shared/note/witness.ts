/**
 * The witness protocol (c2sp.org/tlog-witness): the body of `add-checkpoint`, its answers, and what a witness has to
 * answer. Keeping the latest checkpoint of each log, at once with the check, is the caller's part.
 *
 * @module
 */
import { equalBytes, fromUtf8, toBase64 } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { EMPTY_ROOT } from "../merkle/hash.ts";
import { verifyConsistency } from "../merkle/verify.ts";
import type { UnverifiedCheckpoint } from "./checkpoint.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import type { Checkpoint } from "./checkpoint-text.ts";
import { parseDecimal, parseHash } from "./checkpoint-text.ts";
import type { NoteSignature } from "./signed-note.ts";
import { formatSignatureLine, openNote, parseSignatureLines } from "./signed-note.ts";
import type { NoteKey } from "./vkey.ts";

/** A client must not send more consistency proof lines. */
export const MAX_CONSISTENCY_HASHES = 63;
/** Content type of the answer 409, which carries the size that the witness has. */
export const SIZE_CONTENT_TYPE = "text/x.tlog.size";

/** The body of an `add-checkpoint` request. */
export interface AddCheckpoint {
  /** Size of the latest checkpoint that the witness cosigned, as the client knows it; 0 for none. */
  readonly oldSize: number;
  /** Consistency proof from there to the new checkpoint. */
  readonly proof: readonly Uint8Array[];
  /** The new checkpoint: a signed note. */
  readonly checkpoint: string;
}

/** What the witness knows of a log. */
export interface WitnessedLog {
  readonly keys: readonly NoteKey[];
  /** The latest checkpoint that it cosigned, or null. */
  readonly latest: { readonly size: number; readonly root: Uint8Array } | null;
}

/** What to answer: for 200, cosign `text` once the checkpoint is kept; for 409, `size` is what the witness has. */
export type AddCheckpointAnswer =
  | { readonly status: 200; readonly checkpoint: Checkpoint; readonly text: string }
  | { readonly status: 400 | 403 | 404 | 422 }
  | { readonly status: 409; readonly size: number };

function malformed(): RunsealError {
  return new RunsealError("malformed-request", "not an add-checkpoint request");
}

/** The body of a request. Throws `RunsealError("malformed-request")` where it could not be read back. */
export function formatAddCheckpoint({ oldSize, proof, checkpoint }: AddCheckpoint): string {
  const body = [`old ${oldSize}`, ...proof.map(toBase64), "", checkpoint].join("\n");
  parseAddCheckpoint(body);
  return body;
}

/**
 * Takes a request's body apart. Nothing is verified, and the checkpoint is not looked into.
 *
 * @throws `RunsealError("malformed-request")`
 */
export function parseAddCheckpoint(body: string | Uint8Array): AddCheckpoint {
  let text: string;
  try {
    text = typeof body === "string" ? body : fromUtf8(body);
  } catch {
    throw malformed();
  }
  const border = text.indexOf("\n\n");
  if (border < 0 || !text.endsWith("\n")) throw malformed();
  const [first = "", ...lines] = text.slice(0, border).split("\n");
  const oldSize = first.startsWith("old ") ? parseDecimal(first.slice(4)) : undefined;
  if (oldSize === undefined || lines.length > MAX_CONSISTENCY_HASHES) throw malformed();
  const proof = lines.map((line) => {
    const hash = parseHash(line);
    if (hash === undefined) throw malformed();
    return hash;
  });
  const checkpoint = text.slice(border + 2);
  if (checkpoint === "") throw malformed();
  return { oldSize, proof, checkpoint };
}

/** The body of the answer 200: the witness' signature lines. */
export function formatCosignatures(signatures: readonly NoteSignature[]): string {
  return signatures.map(formatSignatureLine).join("");
}

/**
 * The signatures in the body of an answer 200. They are not verified: add them to the note (`addSignatures`), open
 * it with the witness' keys, and keep those that verify.
 *
 * @throws `RunsealError("malformed-note")`
 */
export function parseCosignatures(body: string): NoteSignature[] {
  return parseSignatureLines(body);
}

/** The body of the answer 409. */
export function formatSizeConflict(size: number): string {
  return `${size}\n`;
}

/** The size in the body of an answer 409, or undefined where it is none. */
export function parseSizeConflict(body: string): number | undefined {
  return body.endsWith("\n") ? parseDecimal(body.slice(0, -1)) : undefined;
}

/**
 * What a witness answers to a request, by the rules of the specification and in its order.
 *
 * @param logOf what the witness knows of the log with that origin
 */
export function judgeAddCheckpoint(
  crypto: CryptoPort,
  request: AddCheckpoint,
  logOf: (origin: string) => WitnessedLog | undefined,
): AddCheckpointAnswer {
  let unverified: UnverifiedCheckpoint;
  try {
    unverified = parseCheckpoint(request.checkpoint);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { status: 400 };
  }
  const { checkpoint, text } = unverified;
  const log = logOf(checkpoint.origin);
  if (log === undefined) return { status: 404 };
  try {
    openNote(crypto, request.checkpoint, log.keys);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { status: 403 };
  }
  if (request.oldSize > checkpoint.size) return { status: 400 };
  const latest = log.latest ?? { size: 0, root: EMPTY_ROOT };
  if (request.oldSize !== latest.size) return { status: 409, size: latest.size };
  if (checkpoint.size === latest.size && !equalBytes(checkpoint.root, latest.root)) {
    return { status: 409, size: latest.size };
  }
  const { oldSize, proof } = request;
  const check = verifyConsistency(crypto, oldSize, checkpoint.size, proof, latest.root, checkpoint.root);
  return check.ok ? { status: 200, checkpoint, text } : { status: 422 };
}
