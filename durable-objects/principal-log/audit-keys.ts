/**
 * The tenant's audit keys inside a log: each fetched wrapped from the registry once an epoch, kept wrapped in the log's
 * own storage, unwrapped into memory. Two are open at a time at most for long: the one that signs, and the one that
 * signed the head, which signs the first head after a rotation once more.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes, fromHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../../workers/env.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { openManagedKey } from "../managed-keys.ts";
import type { LogStorage } from "./storage.ts";

export interface OpenAuditKey {
  readonly epoch: number;
  readonly signer: Signer;
}

/** A key of an epoch. It has no signer where it does not open: its master secret is lost, and it was recovered from. */
interface KnownKey {
  readonly publicKey: Uint8Array;
  readonly signer: Signer | null;
}

export class AuditKeys {
  readonly #storage: LogStorage;
  readonly #env: Env;
  readonly #open = new Map<number, KnownKey>();
  #epoch = -1;
  #opening: Promise<void> | null = null;

  constructor(storage: LogStorage, env: Env) {
    this.#storage = storage;
    this.#env = env;
  }

  /** The key to sign with, under the latest epoch. Throws `RunsealError("key-not-open")` before `ensure` has resolved. */
  current(): OpenAuditKey {
    const { signer } = this.#at(this.#epoch);
    if (signer === null) throw new RunsealError("key-not-open", "the audit key does not open");
    return { epoch: this.#epoch, signer };
  }

  /** The public key of the head's epoch, or of the latest. */
  publicKey(epoch: number): Uint8Array {
    return this.#at(epoch).publicKey;
  }

  /** Whether the public key of the epoch is known. */
  isKnown(epoch: number): boolean {
    return this.#open.has(epoch);
  }

  /** Whether another key signs now than signed the head. */
  changedSince(headEpoch: number): boolean {
    return !equalBytes(this.publicKey(headEpoch), this.current().signer.publicKey);
  }

  /** The key that signed the head, where it is another one and still opens. */
  retiring(headEpoch: number): Signer | null {
    return this.changedSince(headEpoch) ? this.#at(headEpoch).signer : null;
  }

  #at(epoch: number): KnownKey {
    const key = this.#open.get(epoch);
    if (key === undefined) throw new RunsealError("key-not-open", "the audit key is not open yet");
    return key;
  }

  /**
   * Opens the audit key of this epoch or a later one, and that of the head. Epochs never go back: a caller that knows
   * of an earlier one than an earlier caller changes nothing.
   *
   * @throws what the registry throws, and `RunsealError("key-not-open")` where the key that is to sign does not open
   */
  async ensure(tenant: string, epoch: number, headEpoch: number | null): Promise<void> {
    while (headEpoch !== null && headEpoch > this.#epoch) await this.#openOne(tenant, headEpoch);
    while (epoch > this.#epoch) await this.#openOne(tenant, epoch);
    this.current();
  }

  /** Forgets the keys before an epoch: no head will be signed with them again. */
  forgetBefore(epoch: number): void {
    const old = [...this.#open.keys()].filter((known) => known < epoch);
    if (old.length === 0) return;
    for (const known of old) this.#open.delete(known);
    this.#storage.dropAuditKeysBefore(epoch);
  }

  async #openOne(tenant: string, epoch: number): Promise<void> {
    this.#opening ??= this.#openKey(tenant, epoch).finally(() => {
      this.#opening = null;
    });
    await this.#opening;
  }

  async #openKey(tenant: string, epoch: number): Promise<void> {
    const stored = this.#storage.auditKey(epoch);
    let wrapped: WrappedKey;
    if (stored === null) {
      wrapped = await this.#env.KEY_REGISTRY.getByName(tenant).managedKey("audit", epoch);
      this.#storage.setAuditKey(epoch, JSON.stringify(wrapped));
    } else {
      wrapped = JSON.parse(stored) as WrappedKey;
    }
    const publicKey = fromHex(wrapped.publicKey, 32);
    let signer: Signer | null = null;
    try {
      signer = await openManagedKey(nativeCrypto, this.#env.MASTER_KEY, tenant, wrapped);
    } catch (error) {
      // It may be one of the past. As the one that signs it is refused above.
      if (!(error instanceof RunsealError) || error.code !== "bad-key") throw error;
    }
    this.#open.set(epoch, { publicKey, signer });
    this.#epoch = epoch;
  }
}
