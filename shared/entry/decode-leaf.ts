/**
 * Decodes a leaf strictly: any bytes that our encoder would not have written are refused.
 *
 * @module
 */
import type { CborValue } from "../cbor/decode.ts";
import { RunsealError } from "../errors.ts";
import { isOpaqueId } from "../ids.ts";
import type { Actor, Commitments, Leaf, Reporter, TaggedSection } from "./leaf.ts";
import { ENTRY_TAG, LEAF_MEMBERS, REPORTERS } from "./leaf.ts";
import { MAX_FIELDS, MAX_LEAF_BYTES } from "./limits.ts";
import { decodeTagged } from "./tagged-array.ts";

const UINT64 = 1n << 64n;
const FIELD_NAME = /^[a-z0-9_.]{1,64}$/;
const KIND = /^[a-z0-9_]+(\.[A-Za-z0-9_-]+)+$/;

function malformed(what: string): RunsealError {
  return new RunsealError("malformed-leaf", `the leaf's ${what} is not as the format demands`);
}

function bytes(value: CborValue | undefined, length: number, what: string): Uint8Array {
  if (value instanceof Uint8Array && value.length === length) return value;
  throw malformed(what);
}

function uint(value: CborValue | undefined, what: string): bigint {
  if (typeof value === "number" && value >= 0) return BigInt(value);
  if (typeof value === "bigint" && value >= 0n && value < UINT64) return value;
  throw malformed(what);
}

function smallUint(value: CborValue | undefined, what: string): number {
  if (typeof value === "number" && value >= 0) return value;
  throw malformed(what);
}

function opaque(value: CborValue | undefined, what: string): string {
  if (typeof value === "string" && isOpaqueId(value)) return value;
  throw malformed(what);
}

function opaqueOrNull(value: CborValue | undefined, what: string): string | null {
  return value === null ? null : opaque(value, what);
}

function array(value: CborValue | undefined, length: number, what: string): readonly CborValue[] {
  if (Array.isArray(value) && value.length === length) return value;
  throw malformed(what);
}

function commitments(value: CborValue | undefined, what: string): Commitments {
  if (!(value instanceof Map)) throw malformed(what);
  const out = new Map<string, Uint8Array>();
  for (const [name, commitment] of value) {
    if (typeof name !== "string" || !FIELD_NAME.test(name)) throw malformed(what);
    out.set(name, bytes(commitment, 32, what));
  }
  return out;
}

function tagged(value: CborValue | undefined, what: string): TaggedSection | null {
  if (value === null) return null;
  const [tag, fields] = array(value, 2, what);
  if (typeof tag !== "string" || !FIELD_NAME.test(tag)) throw malformed(what);
  return { tag, fields: commitments(fields, what) };
}

function actorOf(value: CborValue | undefined): Actor | null {
  if (value === null) return null;
  const [type, id, codeHash] = array(value, 3, "actor");
  return {
    type: opaque(type, "actor"),
    id: opaque(id, "actor"),
    codeHash: codeHash === null ? null : bytes(codeHash, 32, "actor"),
  };
}

function submitterOf(value: CborValue | undefined): Leaf["submitter"] {
  const [credential, reporter] = array(value, 2, "submitter");
  if (!(REPORTERS as readonly CborValue[]).includes(reporter ?? null)) throw malformed("submitter");
  return { credential: bytes(credential, 16, "submitter"), reporter: reporter as Reporter };
}

function clientOf(value: CborValue | undefined): Leaf["client"] {
  if (value === null) return null;
  const [key, signature] = array(value, 2, "client");
  return { key: bytes(key, 32, "client"), signature: bytes(signature, 64, "client") };
}

/**
 * The leaf in these bytes.
 *
 * @throws `RunsealError` with code `unsupported-leaf` for a well-formed array of another tag or version, and
 * `malformed-cbor`, `unsupported-cbor`, `not-tagged` or `malformed-leaf` for anything that is no leaf
 */
export function decodeLeaf(data: Uint8Array): Leaf {
  const value = decodeTagged(data, ENTRY_TAG);
  if (value === null)
    throw new RunsealError("unsupported-leaf", "the leaf's tag is not one that this version knows");
  if (value.length !== LEAF_MEMBERS) throw malformed("shape");
  if (data.length > MAX_LEAF_BYTES) throw malformed("length");
  const kind = value[7];
  if (typeof kind !== "string" || kind.length > 128 || !KIND.test(kind)) throw malformed("kind");
  const leaf: Leaf = {
    logId: bytes(value[1], 32, "log_id"),
    seq: smallUint(value[2], "seq"),
    prev: bytes(value[3], 32, "prev"),
    recordedAt: uint(value[4], "recorded_at"),
    occurredAt: value[5] === null ? null : uint(value[5], "occurred_at"),
    id: opaque(value[6], "id"),
    kind,
    session: opaqueOrNull(value[8], "session"),
    run: opaqueOrNull(value[9], "run"),
    step: opaqueOrNull(value[10], "step"),
    call: opaqueOrNull(value[11], "call"),
    actor: actorOf(value[12]),
    submitter: submitterOf(value[13]),
    action: commitments(value[14], "action"),
    authorization: tagged(value[15], "authorization"),
    outcome: tagged(value[16], "outcome"),
    client: clientOf(value[17]),
    epoch: smallUint(value[18], "epoch"),
    key: bytes(value[19], 32, "key"),
  };
  if (leaf.seq < 1) throw malformed("seq");
  const fields = leaf.action.size + (leaf.authorization?.fields.size ?? 0) + (leaf.outcome?.fields.size ?? 0);
  if (fields > MAX_FIELDS) throw malformed("number of fields");
  return leaf;
}
