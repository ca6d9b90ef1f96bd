/**
 * The text of a checkpoint (c2sp.org/tlog-checkpoint): origin, size, root, and extension lines.
 *
 * @module
 */
import { fromBase64, toBase64 } from "../bytes.ts";
import { RunsealError } from "../errors.ts";
import { HASH_BYTES } from "../merkle/hash.ts";

/** A tree's head, as a checkpoint states it. */
export interface CheckpointHead {
  /** Unique name of the log. */
  readonly origin: string;
  /** Number of leaves. */
  readonly size: number;
  /** Root hash, 32 bytes. */
  readonly root: Uint8Array;
}

/** A checkpoint's text, taken apart. */
export interface Checkpoint extends CheckpointHead {
  /** Lines after the third: opaque, not empty. We write none. */
  readonly extensions: readonly string[];
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const LINE = /^[^\u0000-\u001f\p{Surrogate}]+$/u;
const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

function malformed(what: string): RunsealError {
  return new RunsealError("malformed-checkpoint", `the checkpoint's ${what} is not as the format demands`);
}

/**
 * A size or index in ASCII decimal without leading zeros; undefined for any other text and for numbers over
 * 2^53 - 1.
 */
export function parseDecimal(text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** A 32-byte hash in standard base64; undefined for any other text. */
export function parseHash(text: string): Uint8Array | undefined {
  try {
    const hash = fromBase64(text);
    return hash.length === HASH_BYTES ? hash : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The checkpoint that a note's text is.
 *
 * @throws `RunsealError("malformed-checkpoint")`, also for a root that is not 32 bytes long and a size over 2^53 - 1
 */
export function parseCheckpointText(text: string): Checkpoint {
  if (!text.endsWith("\n")) throw malformed("end");
  const [origin, sizeText, rootText, ...extensions] = text.slice(0, -1).split("\n");
  if (origin === undefined || !LINE.test(origin)) throw malformed("origin");
  const size = parseDecimal(sizeText ?? "");
  if (size === undefined) throw malformed("size");
  const root = parseHash(rootText ?? "");
  if (root === undefined) throw malformed("root");
  if (!extensions.every((line) => LINE.test(line))) throw malformed("extension line");
  return { origin, size, root, extensions };
}

/**
 * The text of a checkpoint.
 *
 * @throws `RunsealError("malformed-checkpoint")` where it could not be read back
 */
export function formatCheckpoint(
  checkpoint: CheckpointHead & { readonly extensions?: readonly string[] },
): string {
  const { origin, size, root, extensions = [] } = checkpoint;
  if (!LINE.test(origin)) throw malformed("origin");
  if (!Number.isSafeInteger(size) || size < 0) throw malformed("size");
  if (root.length !== HASH_BYTES) throw malformed("root");
  if (!extensions.every((line) => LINE.test(line))) throw malformed("extension line");
  return [origin, String(size), toBase64(root), ...extensions, ""].join("\n");
}
