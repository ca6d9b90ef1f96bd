/**
 * Key registry records: a hash chain that says which key held which role from which epoch on.
 *
 * @module
 */
import { compareBytes, equalBytes } from "../bytes.ts";
import type { CborValue } from "../cbor/decode.ts";
import { encodeCbor } from "../cbor/encode.ts";
import type { CryptoPort, Signer } from "../crypto/port.ts";
import { decodeTagged } from "../entry/tagged-array.ts";
import { RunsealError } from "../errors.ts";
import { signedMessage } from "../signing.ts";

export const REGISTRY_TAG = "runseal.registry.v1";

/** Roles of a key, by their number in the record. */
export const ROLES = {
  audit: 1,
  log: 2,
  client: 3,
  witness: 4,
  astrid_audit: 5,
  astrid_v1: 6,
  recovery: 7,
} as const;
export type RoleName = keyof typeof ROLES;
export type Role = (typeof ROLES)[RoleName];

/** Roles of keys that the service does not hold: such keys are added and retired. */
export const OPEN_ROLES = ["client", "witness", "astrid_audit", "astrid_v1"] as const;
export type OpenRole = (typeof OPEN_ROLES)[number];
/** Roles of keys that the service holds: they are rotated, or replaced by means of the recovery key. */
export const MANAGED_ROLES = ["audit", "log"] as const;
export type ManagedRole = (typeof MANAGED_ROLES)[number];

/** Operations, by their number in the record. */
export const OPS = { genesis: 0, rotate: 1, add: 2, retire: 3, recover: 4 } as const;
export type OpName = keyof typeof OPS;
export type Op = (typeof OPS)[OpName];

/** A key in a role. */
export interface Binding {
  readonly role: Role;
  /** Ed25519 public key, 32 bytes. */
  readonly key: Uint8Array;
}

export interface RegistryRecord {
  /** 0 for genesis, then without a gap. */
  readonly epoch: number;
  /** Hash of the record before; 32 zero bytes for genesis. */
  readonly prev: Uint8Array;
  /** Nanoseconds since the epoch. */
  readonly time: bigint;
  readonly op: Op;
  /** Strictly sorted by (role, key). */
  readonly add: readonly Binding[];
  /** Strictly sorted by (role, key). */
  readonly retire: readonly Binding[];
  /** Genesis only: the tenant's origin and 16 random bytes. */
  readonly genesis: { readonly origin: string; readonly nonce: Uint8Array } | null;
}

/** A signature over a record, by one of the keys that it names or by the current audit key. */
export interface RecordSignature {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** A record as it is stored and published: its bytes and the signatures over them, sorted by key. */
export interface SignedRecord {
  readonly bytes: Uint8Array;
  readonly signatures: readonly RecordSignature[];
}

const ZERO = new Uint8Array(32);

/** Order of bindings in a record: by role, then by the key's bytes. */
export function compareBindings(a: Binding, b: Binding): number {
  return a.role - b.role || compareBytes(a.key, b.key);
}

function bindingsToCbor(bindings: readonly Binding[]): CborValue {
  return bindings.map((binding): CborValue => [binding.role, binding.key]);
}

/** The record's deterministic CBOR. */
export function encodeRecord(record: RegistryRecord): Uint8Array {
  const members: CborValue[] = [
    REGISTRY_TAG,
    record.epoch,
    record.prev,
    record.time,
    record.op,
    bindingsToCbor(record.add),
    bindingsToCbor(record.retire),
  ];
  if (record.genesis !== null) members.push(record.genesis.origin, record.genesis.nonce);
  return encodeCbor(members);
}

function malformed(what: string): RunsealError {
  return new RunsealError("malformed-registry", `the registry record's ${what} is not as the format demands`);
}

function isRole(value: CborValue): value is Role {
  return typeof value === "number" && value >= 1 && value <= 7;
}

function bindings(value: CborValue | undefined, what: string): Binding[] {
  if (!Array.isArray(value)) throw malformed(what);
  const out: Binding[] = [];
  for (const item of value) {
    if (!Array.isArray(item) || item.length !== 2) throw malformed(what);
    const [role, key] = item;
    if (role === undefined || !isRole(role) || !(key instanceof Uint8Array) || key.length !== 32)
      throw malformed(what);
    const binding: Binding = { role, key };
    const last = out.at(-1);
    if (last !== undefined && compareBindings(last, binding) >= 0) throw malformed(what);
    out.push(binding);
  }
  return out;
}

/**
 * Decodes a record strictly.
 *
 * @throws `RunsealError` with code `unsupported-registry` for a well-formed array of another tag or version, and
 * `malformed-cbor`, `unsupported-cbor`, `not-tagged` or `malformed-registry` for anything that is no record
 */
export function decodeRecord(data: Uint8Array): RegistryRecord {
  const value = decodeTagged(data, REGISTRY_TAG);
  if (value === null)
    throw new RunsealError("unsupported-registry", "the registry record's tag is not known");
  const [, epoch, prev, time, op, add, retire, origin, nonce] = value;
  if (typeof epoch !== "number" || epoch < 0) throw malformed("epoch");
  if (!(prev instanceof Uint8Array) || prev.length !== 32) throw malformed("prev");
  if ((typeof time !== "number" && typeof time !== "bigint") || time < 0) throw malformed("time");
  if (typeof op !== "number" || op < 0 || op > 4) throw malformed("op");
  const isGenesis = op === OPS.genesis;
  if (value.length !== (isGenesis ? 9 : 7)) throw malformed("shape");
  let genesis: RegistryRecord["genesis"] = null;
  if (isGenesis) {
    if (typeof origin !== "string" || !(nonce instanceof Uint8Array) || nonce.length !== 16)
      throw malformed("genesis");
    genesis = { origin, nonce };
  }
  return {
    epoch,
    prev,
    time: BigInt(time),
    op: op as Op,
    add: bindings(add, "add"),
    retire: bindings(retire, "retire"),
    genesis,
  };
}

/** Signs a record with each of the signers; the signatures come sorted by key. */
export function signRecord(
  crypto: CryptoPort,
  record: RegistryRecord,
  signers: readonly Signer[],
): SignedRecord {
  const bytes = encodeRecord(record);
  const message = signedMessage("registry", crypto.sha256(bytes));
  const signatures = signers
    .map((signer): RecordSignature => ({ key: signer.publicKey, signature: signer.sign(message) }))
    .sort((a, b) => compareBytes(a.key, b.key));
  return { bytes, signatures };
}

/** A tenant's genesis: binds one audit key and one log key; its hash is the registry id. */
export function genesisRecord(options: {
  readonly origin: string;
  readonly nonce: Uint8Array;
  readonly time: bigint;
  readonly add: readonly Binding[];
}): RegistryRecord {
  return {
    epoch: 0,
    prev: ZERO,
    time: options.time,
    op: OPS.genesis,
    add: [...options.add].sort(compareBindings),
    retire: [],
    genesis: { origin: options.origin, nonce: options.nonce },
  };
}

/** Whether 32 bytes are all zero: the `prev` of genesis. */
export function isZeroHash(hash: Uint8Array): boolean {
  return equalBytes(hash, ZERO);
}
