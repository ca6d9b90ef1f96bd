/**
 * Replays a tenant's registry records, by the rules of docs/format.md, section 9, and answers who held a role when.
 *
 * @module
 */
import { compareBytes, equalBytes, toHex } from "../bytes.ts";
import { isLowOrder } from "../crypto/ed25519-strict.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { signedMessage } from "../signing.ts";
import type { Binding, RegistryRecord, Role, SignedRecord } from "./record.ts";
import { decodeRecord, isZeroHash, OPS, ROLES } from "./record.ts";

interface Holding {
  readonly role: Role;
  readonly key: Uint8Array;
  /** First epoch at which the key holds the role. */
  readonly from: number;
  /** First epoch at which it no longer does. */
  until: number;
}

function broken(epoch: number, what: string): RunsealError {
  return new RunsealError("invalid-registry", `registry record ${epoch}: ${what}`);
}

/** The verified chain of a tenant's records. */
export class RegistryChain {
  readonly #crypto: CryptoPort;
  readonly #holdings: Holding[] = [];
  readonly #registered = new Set<string>();
  #registryId: Uint8Array | null = null;
  #head: Uint8Array | null = null;
  #epoch = -1;
  #origin = "";
  #recovery: Uint8Array | null = null;

  constructor(crypto: CryptoPort) {
    this.#crypto = crypto;
  }

  /** Hash of the genesis record, 32 bytes. Throws `RunsealError("invalid-registry")` before genesis was added. */
  get registryId(): Uint8Array {
    if (this.#registryId === null) throw broken(0, "there is no genesis record");
    return this.#registryId;
  }

  /** The latest epoch; -1 before genesis. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Hash of the latest record, 32 bytes; 32 zero bytes before genesis. */
  get head(): Uint8Array {
    return this.#head ?? new Uint8Array(32);
  }

  /** The tenant's origin, from genesis. */
  get origin(): string {
    return this.#origin;
  }

  /**
   * Verifies the next record and applies it.
   *
   * @throws `RunsealError` with code `invalid-registry` (the message names the record's epoch), or a decoding code
   */
  add(signed: SignedRecord): RegistryRecord {
    const record = decodeRecord(signed.bytes);
    const hash = this.#crypto.sha256(signed.bytes);
    const expected = this.#epoch + 1;
    if (record.epoch !== expected) throw broken(record.epoch, `epoch ${expected} was expected`);
    if (record.op === OPS.genesis ? !isZeroHash(record.prev) : !equalBytes(record.prev, this.head)) {
      throw broken(record.epoch, "prev is not the hash of the record before");
    }
    this.#checkOperation(record);
    this.#checkSignatures(record, hash, signed);
    this.#apply(record);
    if (record.genesis !== null) {
      this.#registryId = hash;
      this.#origin = record.genesis.origin;
    }
    this.#head = hash;
    this.#epoch = record.epoch;
    return record;
  }

  /** Whether the key held the role at the epoch. At an epoch that no record has begun yet, none does. */
  holds(role: Role, key: Uint8Array, epoch: number): boolean {
    if (epoch > this.#epoch) return false;
    return this.#holdings.some(
      (holding) =>
        holding.role === role &&
        holding.from <= epoch &&
        epoch < holding.until &&
        equalBytes(holding.key, key),
    );
  }

  /** The last epoch at which the key held the role (the latest one, where it still does), or null. */
  lastEpochHeld(role: Role, key: Uint8Array): number | null {
    let last: number | null = null;
    for (const holding of this.#holdings) {
      if (holding.role !== role || !equalBytes(holding.key, key)) continue;
      last = Math.min(holding.until - 1, this.#epoch);
    }
    return last;
  }

  /** Genesis' recovery key; null where it binds none. */
  get recoveryKey(): Uint8Array | null {
    return this.#recovery;
  }

  /** Whether the key was ever added, in any role. */
  isRegistered(key: Uint8Array): boolean {
    return this.#registered.has(toHex(key));
  }

  /** The keys that hold the role at the latest epoch. */
  active(role: Role): Uint8Array[] {
    return this.#holdings
      .filter((holding) => holding.role === role && holding.until === Number.POSITIVE_INFINITY)
      .map((holding) => holding.key);
  }

  /** Every key that ever held the role. */
  ever(role: Role): Uint8Array[] {
    return this.#holdings.filter((holding) => holding.role === role).map((holding) => holding.key);
  }

  #checkOperation(record: RegistryRecord): void {
    const { epoch, add, retire, op } = record;
    if (op === OPS.genesis && epoch !== 0) throw broken(epoch, "genesis is not the first record");
    if (op !== OPS.genesis && epoch === 0) throw broken(epoch, "the first record is not genesis");
    const seen = new Set<string>();
    for (const binding of add) {
      const key = toHex(binding.key);
      if (isLowOrder(binding.key)) throw broken(epoch, "a key is of small order");
      if (seen.has(key) || this.#registered.has(key))
        throw broken(epoch, "a key is registered more than once");
      seen.add(key);
    }
    for (const binding of retire) {
      if (!this.#isActive(binding)) throw broken(epoch, "a retired key does not hold the role");
    }
    switch (op) {
      case OPS.genesis: {
        if (retire.length > 0) throw broken(epoch, "genesis retires a key");
        if (add.filter((binding) => binding.role === ROLES.audit).length !== 1) {
          throw broken(epoch, "genesis does not bind exactly one audit key");
        }
        if (new Set(add.map((binding) => binding.role)).size !== add.length) {
          throw broken(epoch, "genesis binds a role twice");
        }
        return;
      }
      case OPS.rotate:
      case OPS.recover: {
        const [added] = add;
        const [retired] = retire;
        if (add.length !== 1 || retire.length !== 1 || added === undefined || added.role !== retired?.role) {
          throw broken(epoch, "it does not replace one key by one of the same role");
        }
        if (added.role !== ROLES.audit && added.role !== ROLES.log) {
          throw broken(epoch, "only audit and log keys are replaced");
        }
        return;
      }
      case OPS.add:
        if (add.length !== 1 || retire.length !== 0) throw broken(epoch, "it does not add exactly one key");
        this.#checkOpenRole(record, add);
        return;
      case OPS.retire:
        if (add.length !== 0 || retire.length !== 1)
          throw broken(epoch, "it does not retire exactly one key");
        this.#checkOpenRole(record, retire);
        return;
    }
  }

  #checkOpenRole(record: RegistryRecord, bindings: readonly Binding[]): void {
    for (const { role } of bindings) {
      if (role === ROLES.audit || role === ROLES.log || role === ROLES.recovery) {
        throw broken(record.epoch, "audit, log and recovery keys are not added or retired alone");
      }
    }
  }

  #isActive(binding: Binding): boolean {
    return this.#holdings.some(
      (holding) =>
        holding.role === binding.role &&
        holding.until === Number.POSITIVE_INFINITY &&
        equalBytes(holding.key, binding.key),
    );
  }

  /** The keys that must have signed the record, sorted. */
  #requiredSigners(record: RegistryRecord): Uint8Array[] {
    const keys = record.add.map((binding) => binding.key);
    if (record.op === OPS.rotate) keys.push(...record.retire.map((binding) => binding.key));
    if (record.op === OPS.add || record.op === OPS.retire) keys.push(...this.active(ROLES.audit));
    if (record.op === OPS.recover) {
      if (this.#recovery === null) throw broken(record.epoch, "genesis names no recovery key");
      keys.push(this.#recovery);
    }
    return keys.sort(compareBytes);
  }

  #checkSignatures(record: RegistryRecord, hash: Uint8Array, signed: SignedRecord): void {
    const required = this.#requiredSigners(record);
    const matches =
      signed.signatures.length === required.length &&
      required.every((key, i) => equalBytes(key, signed.signatures[i]?.key ?? new Uint8Array()));
    if (!matches) throw broken(record.epoch, "it is not signed by exactly the keys that must sign it");
    const message = signedMessage("registry", hash);
    for (const { key, signature } of signed.signatures) {
      if (!this.#crypto.verifyEd25519(key, message, signature))
        throw broken(record.epoch, "a signature does not verify");
    }
  }

  #apply(record: RegistryRecord): void {
    for (const binding of record.retire) {
      for (const holding of this.#holdings) {
        const same = holding.role === binding.role && equalBytes(holding.key, binding.key);
        if (same && holding.until === Number.POSITIVE_INFINITY) holding.until = record.epoch;
      }
    }
    for (const { role, key } of record.add) {
      this.#holdings.push({ role, key, from: record.epoch, until: Number.POSITIVE_INFINITY });
      this.#registered.add(toHex(key));
      if (record.op === OPS.genesis && role === ROLES.recovery) this.#recovery = key;
    }
  }
}
