/**
 * The record that comes next in a registry, and whether one that was sent is it.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { compareBytes, equalBytes, fromBase64, fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { isLowOrder } from "../../shared/crypto/ed25519-strict.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import type {
  Binding,
  Op,
  RecordSignature,
  RegistryRecord,
  Role,
  SignedRecord,
} from "../../shared/registry/record.ts";
import { decodeRecord, encodeRecord, OPS, ROLES, signRecord } from "../../shared/registry/record.ts";
import { signedMessage } from "../../shared/signing.ts";
import type { Proposal, RegistryRefusal } from "./types.ts";
import { refused } from "./types.ts";

/** How far the time of a record that was sent may be from the clock. */
const MAX_AGE_NS = 24n * 3_600_000_000_000n;

function now(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}

/** The next record of the chain. */
export function nextRecord(
  chain: RegistryChain,
  op: Op,
  add: readonly Binding[],
  retire: readonly Binding[] = [],
): RegistryRecord {
  return { epoch: chain.epoch + 1, prev: chain.head, time: now(), op, add, retire, genesis: null };
}

/** The record as somebody else is asked to sign it. */
export function proposalOf(record: RegistryRecord): Proposal {
  const bytes = encodeRecord(record);
  const hash = nativeCrypto.sha256(bytes);
  return {
    epoch: record.epoch,
    record: toBase64(bytes),
    hash: toHex(hash),
    message: toHex(signedMessage("registry", hash)),
  };
}

/** A record that was sent back, with the one signature that came with it. */
export interface SignedProposal {
  readonly bytes: Uint8Array;
  readonly record: RegistryRecord;
  readonly added: Binding;
  readonly signature: RecordSignature;
}

/**
 * Reads a record that was sent back, and checks all that does not depend on its operation.
 *
 * @param signer the key that must have signed; null: the key that the record adds
 */
export function readProposal(
  chain: RegistryChain,
  op: Op,
  recordText: string,
  signatureText: string,
  signer: Uint8Array | null,
): SignedProposal | RegistryRefusal {
  let bytes: Uint8Array;
  let record: RegistryRecord;
  let signature: Uint8Array;
  try {
    bytes = fromBase64(recordText);
    record = decodeRecord(bytes);
    signature = fromHex(signatureText, 64);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return refused("invalid-record", error.message, "/record");
  }
  const [added] = record.add;
  if (record.op !== op || added === undefined || record.add.length !== 1) {
    return refused("invalid-record", "the record is of another operation", "/record");
  }
  if (record.epoch !== chain.epoch + 1 || !equalBytes(record.prev, chain.head)) {
    return refused("registry-moved", "the record does not follow the latest one");
  }
  const age = now() - record.time;
  if (age > MAX_AGE_NS || age < -MAX_AGE_NS) {
    return refused("invalid-record", "the record's time is more than a day off", "/record");
  }
  const unfit = unfitKey(chain, added.key, "/record");
  if (unfit !== null) return unfit;
  const key = signer ?? added.key;
  const message = signedMessage("registry", nativeCrypto.sha256(bytes));
  if (!nativeCrypto.verifyEd25519(key, message, signature)) {
    return refused("invalid-record", "the signature does not verify", "/signature");
  }
  return { bytes, record, added, signature: { key, signature } };
}

/** Why a key can't be added; null where it can. */
export function unfitKey(chain: RegistryChain, key: Uint8Array, pointer: string): RegistryRefusal | null {
  if (isLowOrder(key)) return refused("invalid-record", "the key is of small order", pointer);
  if (chain.isRegistered(key)) {
    return refused("key-registered", "the key is registered, or was: a key is registered once", pointer);
  }
  return null;
}

/** Signatures in the order in which they are published. */
export function sortedSignatures(signatures: readonly RecordSignature[]): RecordSignature[] {
  return [...signatures].sort((a, b) => compareBytes(a.key, b.key));
}

/** Whether the record puts another audit key in the place of one that is lost. */
export function recoversAudit({ bytes }: SignedRecord): boolean {
  const { op, add } = decodeRecord(bytes);
  return op === OPS.recover && add.some((binding) => binding.role === ROLES.audit);
}

/** Whether the record (base64) gives the role to another key. */
export function isRotation(record: string, role: Role): boolean {
  const { op, add } = decodeRecord(fromBase64(record));
  return op === OPS.rotate && add.some((binding) => binding.role === role);
}

/** The record with the signatures of the signers, and those that others made. */
export function countersign(
  bytes: Uint8Array,
  signers: readonly Signer[],
  others: readonly RecordSignature[],
): SignedRecord {
  const { signatures } = signRecord(nativeCrypto, decodeRecord(bytes), signers);
  return { bytes, signatures: sortedSignatures([...signatures, ...others]) };
}
