/**
 * The leaf of a log of heads: dCBOR of
 * `["runseal.heads.v1", registry_id, batch, time, [[log_id, size, root, epoch]...]]`. docs/format.md section 14.
 *
 * @module
 */
import { compareBytes } from "../bytes.ts";
import type { CborValue } from "../cbor/decode.ts";
import { encodeCbor } from "../cbor/encode.ts";
import { decodeTagged } from "../entry/tagged-array.ts";
import { RunsealError } from "../errors.ts";
import { MAX_TIME } from "../time.ts";

export const HEADS_TAG = "runseal.heads.v1";
/** So that a leaf fits into an entry bundle, whose lengths have 16 bits. */
export const MAX_HEADS = 700;

/** The head of one log, as a leaf lists it. */
export interface ListedHead {
  /** 32 bytes; in the service's log, the registry id of the tenant whose log it is. */
  readonly logId: Uint8Array;
  /** Entries of the log; 1 or more. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
  /** Epoch of the head's signer. */
  readonly epoch: number;
}

export interface HeadsLeaf {
  /** 32 bytes. */
  readonly registryId: Uint8Array;
  /** Counts the leaves of this form, from 1. */
  readonly batch: number;
  /** Nanoseconds since the epoch. */
  readonly time: bigint;
  /** Sorted by log id, each log once, 1 to 700. */
  readonly heads: readonly ListedHead[];
}

function malformed(what: string): RunsealError {
  return new RunsealError("malformed-heads", `the ${what} of the list of heads is not as the format demands`);
}

function isCount(value: unknown, least: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least;
}

function isHash(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === 32;
}

/** Throws `RunsealError("malformed-heads")` for a leaf that the format does not allow. */
function check(leaf: HeadsLeaf): void {
  if (!isHash(leaf.registryId)) throw malformed("registry id");
  if (!isCount(leaf.batch, 1)) throw malformed("batch");
  if (leaf.time < 0n || leaf.time > MAX_TIME) throw malformed("time");
  if (leaf.heads.length < 1 || leaf.heads.length > MAX_HEADS) throw malformed("length");
  let last: Uint8Array | null = null;
  for (const { logId, size, root, epoch } of leaf.heads) {
    if (!isHash(logId) || !isHash(root) || !isCount(size, 1) || !isCount(epoch, 0)) throw malformed("head");
    if (last !== null && compareBytes(last, logId) >= 0) throw malformed("order");
    last = logId;
  }
}

/**
 * The leaf's bytes.
 *
 * @throws `RunsealError("malformed-heads")` where it could not be read back
 */
export function encodeHeadsLeaf(leaf: HeadsLeaf): Uint8Array {
  check(leaf);
  const heads = leaf.heads.map((head): CborValue => [head.logId, head.size, head.root, head.epoch]);
  return encodeCbor([HEADS_TAG, leaf.registryId, leaf.batch, leaf.time, heads]);
}

function headOf(value: CborValue): ListedHead {
  if (!Array.isArray(value) || value.length !== 4) throw malformed("head");
  const [logId, size, root, epoch] = value;
  return { logId, size, root, epoch } as ListedHead;
}

/**
 * Decodes a leaf strictly: encoding it again gives the same bytes.
 *
 * @returns null for a well-formed array that begins with another text (a registry record, a later version)
 * @throws `RunsealError` with code `malformed-heads`, `malformed-cbor`, `unsupported-cbor` or `not-tagged`
 */
export function decodeHeadsLeaf(data: Uint8Array): HeadsLeaf | null {
  const value = decodeTagged(data, HEADS_TAG);
  if (value === null) return null;
  const [, registryId, batch, time, heads] = value;
  if (value.length !== 5 || !Array.isArray(heads)) throw malformed("shape");
  if (typeof time !== "number" && typeof time !== "bigint") throw malformed("time");
  const leaf = { registryId, batch, time: BigInt(time), heads: heads.map(headOf) } as HeadsLeaf;
  check(leaf);
  return leaf;
}
