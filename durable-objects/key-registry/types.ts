/**
 * What crosses RPC between the Worker and a tenant's key registry. Errors cross as values.
 *
 * @module
 */
import { fromBase64, fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import type { SignedRecord } from "../../shared/registry/record.ts";

/** A record as it crosses RPC and is published: base64 and hex. */
export interface PublishedRecord {
  readonly epoch: number;
  /** Base64 of the record's bytes. */
  readonly record: string;
  /** Hex, sorted by key. */
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

/** A published record, and from when on logs take its epoch. */
export interface RegistryEntry extends PublishedRecord {
  /** Milliseconds since the epoch; never less than the record's before. */
  readonly effectiveAt: number;
}

export interface RegistryState {
  /** Hex. */
  readonly registryId: string;
  /** The epoch in effect when this was answered; `epochInEffect` tells it at another time. */
  readonly epoch: number;
  /** Every published record, those included that are not in effect yet. */
  readonly records: readonly RegistryEntry[];
}

/** A record to be signed by a key that the service does not hold. */
export interface Proposal {
  readonly epoch: number;
  /** Base64 of the record's bytes. */
  readonly record: string;
  /** The record's hash, hex. */
  readonly hash: string;
  /** The bytes that the key signs, hex. */
  readonly message: string;
}

export type RegistryErrorCode =
  | "registry-moved"
  | "registry-pending"
  | "key-registered"
  | "invalid-record"
  | "no-recovery-key"
  | "not-found"
  | "registry-unavailable";

/** Why nothing was recorded. */
export interface RegistryRefusal {
  readonly ok: false;
  readonly code: RegistryErrorCode;
  readonly detail: string;
  /** RFC 6901 pointer into the request's body, where one applies. */
  readonly pointer?: string;
}

export type ProposalOutcome = { readonly ok: true; readonly proposal: Proposal } | RegistryRefusal;

export type RecordOutcome =
  | {
      readonly ok: true;
      readonly entry: RegistryEntry;
      /** Whether the record was there before this call. */
      readonly repeated: boolean;
    }
  | RegistryRefusal;

export function refused(code: RegistryErrorCode, detail: string, pointer?: string): RegistryRefusal {
  return { ok: false, code, detail, ...(pointer === undefined ? {} : { pointer }) };
}

/** The last epoch that has taken effect by then; records are in order. */
export function epochInEffect(records: readonly RegistryEntry[], nowMs: number): number {
  let epoch = 0;
  for (const record of records) {
    if (record.effectiveAt > nowMs) break;
    epoch = record.epoch;
  }
  return epoch;
}

/** The record as it is published. */
export function publishedOf(epoch: number, signed: SignedRecord): PublishedRecord {
  return {
    epoch,
    record: toBase64(signed.bytes),
    signatures: signed.signatures.map(({ key, signature }) => ({
      key: toHex(key),
      signature: toHex(signature),
    })),
  };
}

/** The record as the pure code reads it. */
export function signedRecordOf(published: PublishedRecord): SignedRecord {
  return {
    bytes: fromBase64(published.record),
    signatures: published.signatures.map(({ key, signature }) => ({
      key: fromHex(key, 32),
      signature: fromHex(signature, 64),
    })),
  };
}
