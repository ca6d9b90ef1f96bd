/**
 * The tenant's audit key inside a log: fetched wrapped from the registry once an epoch, kept wrapped in the log's own
 * storage, unwrapped into memory when the object starts.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
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

export class AuditKeys {
  readonly #storage: LogStorage;
  readonly #env: Env;
  #open: OpenAuditKey | null = null;
  #opening: Promise<void> | null = null;

  constructor(storage: LogStorage, env: Env) {
    this.#storage = storage;
    this.#env = env;
  }

  /** The key to sign with. Throws `RunsealError("key-not-open")` before `ensure` has resolved. */
  current(): OpenAuditKey {
    if (this.#open === null) throw new RunsealError("key-not-open", "the audit key is not open yet");
    return this.#open;
  }

  /** Opens the audit key of this epoch or a later one. Throws what the registry or the unwrapping throws. */
  async ensure(tenant: string, epoch: number): Promise<void> {
    if (this.#open !== null && this.#open.epoch >= epoch) return;
    this.#opening ??= this.#openKey(tenant, epoch).finally(() => {
      this.#opening = null;
    });
    await this.#opening;
  }

  async #openKey(tenant: string, epoch: number): Promise<void> {
    const stored = this.#storage.auditKey(epoch);
    let key: { epoch: number; wrapped: WrappedKey };
    if (stored === null) {
      key = await this.#env.KEY_REGISTRY.getByName(tenant).auditKey();
      this.#storage.setAuditKey(key.epoch, JSON.stringify(key));
    } else {
      key = JSON.parse(stored) as typeof key;
    }
    const signer = await openManagedKey(nativeCrypto, this.#env.MASTER_KEY, tenant, key.wrapped);
    this.#open = { epoch: key.epoch, signer };
  }
}
