/**
 * Keeps the tenant's directory told whether D1 may lack entries of this log: once when it becomes dirty, once when D1
 * has caught up. A reader of the whole tenant asks the listed logs to flush first.
 *
 * @module
 */
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { LogIdentity } from "./types.ts";

export class DirtyListing {
  readonly #env: Env;
  readonly #identity: LogIdentity;
  /** Versions only grow, over restarts too: they are times in milliseconds, or one more than the last. */
  #version = 0;
  /** The call that listed the log, while it is listed. */
  #listed: Promise<boolean> | null = null;

  constructor(env: Env, identity: LogIdentity) {
    this.#env = env;
    this.#identity = identity;
  }

  /** Lists the log, unless it is listed. Whether it is: a reader of the whole tenant would else not see its entries. */
  touch(): Promise<boolean> {
    this.#listed ??= this.#call("touch").then(
      () => true,
      () => {
        this.#listed = null;
        logEvent("touch-failed", { principal: this.#identity.principal });
        return false;
      },
    );
    return this.#listed;
  }

  /** Takes the log off the list, for everything up to now. An append from now on lists it again. */
  async settle(): Promise<void> {
    this.#listed = null;
    try {
      await this.#call("settle");
    } catch {
      // A log that stays listed costs a reader one call and nothing else.
    }
  }

  async #call(method: "touch" | "settle"): Promise<void> {
    this.#version = Math.max(this.#version + 1, Date.now());
    const { tenant, principal, generation } = this.#identity;
    await this.#env.TENANT_DIRECTORY.getByName(tenant)[method](principal, generation, this.#version);
  }
}
