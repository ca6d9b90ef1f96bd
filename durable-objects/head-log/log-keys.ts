/**
 * The key that signs a log of heads. A tenant's is the managed key of role `log` in its registry; the service's is made
 * by its log of heads itself. Both are wrapped at rest and opened only here.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../../workers/env.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { createManagedKey, openManagedKey } from "../managed-keys.ts";
import type { HeadStorage } from "./storage.ts";
import { SERVICE } from "./types.ts";

export interface OpenLogKey {
  readonly epoch: number;
  readonly signer: Signer;
}

export class LogKeys {
  readonly #storage: HeadStorage;
  readonly #env: Env;
  #open: OpenLogKey | null = null;

  constructor(storage: HeadStorage, env: Env) {
    this.#storage = storage;
    this.#env = env;
  }

  /** The key to sign with. Throws `RunsealError("key-not-open")` before one was opened. */
  current(): OpenLogKey {
    if (this.#open === null) throw new RunsealError("key-not-open", "the log key is not open yet");
    return this.#open;
  }

  /**
   * Opens the key that holds the role at the epoch; where the registry is away, the last one that it gave.
   *
   * @param epoch null: the registry did not answer
   * @throws what the registry throws, if it never gave a key; `RunsealError("bad-key")`
   */
  async ensure(owner: string, epoch: number | null): Promise<void> {
    if (this.#open !== null && (epoch === null || this.#open.epoch === epoch)) return;
    if (owner !== SERVICE && epoch !== null) {
      const wrapped = await this.#env.KEY_REGISTRY.getByName(owner).managedKey("log", epoch);
      this.#storage.setLogKey(wrapped.publicKey, epoch, JSON.stringify(wrapped));
    }
    const stored = this.#storage.logKey();
    if (stored !== null) {
      this.#open = { epoch: stored.epoch, signer: await this.#unwrap(owner, stored.wrapped) };
      return;
    }
    if (owner !== SERVICE) throw new RunsealError("key-not-open", "the registry is away");
    const made = await createManagedKey(nativeCrypto, this.#env.MASTER_KEY, SERVICE, "log");
    this.#storage.setLogKey(toHex(made.signer.publicKey), 0, JSON.stringify(made.wrapped));
    this.#open = { epoch: 0, signer: made.signer };
  }

  /**
   * Who signs the next head: the current key; and for the first head after a rotation, the last signer too.
   *
   * @param lastKey hex
   */
  async signers(owner: string, lastKey: string): Promise<readonly [Signer, ...Signer[]]> {
    const { signer } = this.current();
    if (toHex(signer.publicKey) === lastKey) return [signer];
    const before = this.#storage.logKey(lastKey);
    return before === null ? [signer] : [signer, await this.#unwrap(owner, before.wrapped)];
  }

  #unwrap(owner: string, wrapped: string): Promise<Signer> {
    return openManagedKey(nativeCrypto, this.#env.MASTER_KEY, owner, JSON.parse(wrapped) as WrappedKey);
  }
}
