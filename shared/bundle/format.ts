/**
 * The bundle `bundle.v1`: NDJSON with everything that offline verification needs. Line 1 names the
 * log; the registry records follow; then, for each entry in order, its leaf (or only its hash, where the leaf is
 * withheld or outside the exported range), its content and what is disclosed of it; last the checkpoint, and what
 * anchors it. docs/format.md is the specification.
 *
 * @module
 */
import { fromBase64, fromHex } from "../bytes.ts";
import type { SectionName } from "../entry/commitment.ts";
import { RunsealError } from "../errors.ts";

/** The version that line 1 names. */
export const BUNDLE_VERSION = "bundle.v1";
/** Characters of one line: an entry's content in JSON, with room for its escapes. */
export const MAX_LINE_CHARS = 16 * 1024 * 1024;

/** Line 1. */
export interface BundleHeader {
  readonly runseal: typeof BUNDLE_VERSION;
  /** Hash of the tenant's genesis record, hex. */
  readonly registry_id: string;
  readonly origin: string;
  /** The exported range: leaves outside of it are there as hashes alone. `to` is `from` - 1 where it is empty. */
  readonly from: number;
  readonly to: number;
}

/** The opening of one field. */
export interface FieldLine {
  readonly section: SectionName;
  readonly name: string;
  /** 16 bytes, hex. */
  readonly salt: string;
  /** Canonical JSON text, as a string: its bytes are what is committed. */
  readonly text: string;
}

export interface RegistryLine {
  readonly t: "registry";
  readonly epoch: number;
  /** Base64 of the record. */
  readonly record: string;
  /** Hex. */
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

export interface LeafLine {
  readonly t: "leaf";
  readonly seq: number;
  /** Leaf hash, hex. */
  readonly hash: string;
  /** Base64. */
  readonly leaf: string;
  /** The leaf behind the byte that its hash takes in front of it, where the reader decoded it: see LeafBytes. */
  readonly prefixed?: Uint8Array;
}

/** Values of the leaf before: `content` what is stored, `disclosure` what was disclosed of it. */
export interface FieldsLine {
  readonly t: "content" | "disclosure";
  readonly seq: number;
  readonly fields: readonly FieldLine[];
}

/** A leaf of which only the hash is there. */
export interface HashLine {
  readonly t: "hash";
  readonly seq: number;
  readonly hash: string;
}

export interface CheckpointLine {
  readonly t: "checkpoint";
  /** A signed note. */
  readonly checkpoint: string;
}

/** A leaf of a log of heads, proved to be in it, and the proof that the head it lists was gone on from. */
export interface ListingProof {
  /** Signed head of that log. */
  readonly checkpoint: string;
  /** Of the leaf, from 0. */
  readonly index: number;
  /** Base64. */
  readonly leaf: string;
  /** Inclusion path of the leaf under the checkpoint, hex. */
  readonly path: readonly string[];
  /** Consistency path from the listed size, hex: to the log's head, or to that of the tenant's log. */
  readonly consistency: readonly string[];
}

/** A leaf of the tenant's log: a list of heads with this log's in it, or a record of the registry. */
export interface TenantLine extends ListingProof {
  readonly t: "tenant";
}

/** A leaf of the service's log that lists the tenant's log; its checkpoint carries what cosignatures there are. */
export interface CosignatureLine extends ListingProof {
  readonly t: "cosignature";
  /** The service log's key, as a C2SP vkey. */
  readonly vkey: string;
}

export type BundleLine =
  | RegistryLine
  | LeafLine
  | FieldsLine
  | HashLine
  | CheckpointLine
  | TenantLine
  | CosignatureLine;

/** Why a line can't be read; the messages name members, never values. */
export class BundleError extends RunsealError<"malformed-bundle" | "unsupported-bundle"> {
  override readonly name = "BundleError";
  /** Whether the line is no JSON and does not end as one does: the last line of a file that was cut. */
  readonly cut: boolean;

  constructor(code: "malformed-bundle" | "unsupported-bundle", message: string, cut = false) {
    super(code, message);
    this.cut = cut;
  }
}

/** Bytes of a base64 member. Throws `BundleError`. */
export function bundleBytes(text: string): Uint8Array {
  try {
    return fromBase64(text);
  } catch {
    throw new BundleError("malformed-bundle", "a member of the bundle is not base64");
  }
}

/** Bytes of a member that was read as hex. */
export function bundleHash(text: string): Uint8Array {
  return fromHex(text);
}
