/**
 * Keeps the tenant's directory told whether D1 may lack entries of this log: once when it becomes dirty, once when D1
 * has caught up. A reader of the whole tenant asks the listed logs to flush first.
 *
 * @module
 */
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { Arrival } from "../tenant-directory/index-state.ts";
import type { TenantDirectory } from "../tenant-directory/tenant-directory.ts";
import type { CounterReport } from "../tenant-directory/totals.ts";
import type { LogIdentity } from "./types.ts";

/** Least time between two reports of a log that does not come to rest. */
const REPORT_INTERVAL_MS = 5000;

export class DirtyListing {
  readonly #env: Env;
  readonly #identity: LogIdentity;
  /** Versions only grow, over restarts too: they are times in milliseconds, or one more than the last. */
  #version = 0;
  /** When the directory was last told the log's counters. */
  #reportedMs = 0;
  /** The call that listed the log, while it is listed. */
  #listed: Promise<boolean> | null = null;

  constructor(env: Env, identity: LogIdentity) {
    this.#env = env;
    this.#identity = identity;
  }

  /** Lists the log, unless it is listed. Whether it is: a reader of the whole tenant would else not see its entries. */
  touch(): Promise<boolean> {
    this.#listed ??= this.#touch().then(
      () => true,
      () => {
        this.#listed = null;
        logEvent("touch-failed", { principal: this.#identity.principal });
        return false;
      },
    );
    return this.#listed;
  }

  /**
   * Takes the log off the list, for everything up to now. An append from now on lists it again.
   *
   * @param flushed what D1 holds; nobody goes off the list who can't say when that arrived there
   * @param counters the log's own, for the tenant's sums
   */
  async settle(
    flushed: { readonly seq: number; readonly arrival: Arrival | null },
    counters: CounterReport,
  ): Promise<void> {
    const { seq, arrival } = flushed;
    if (arrival === null) return this.report(counters);
    this.#listed = null;
    try {
      await this.#directory().settle(...this.#next(), { seq, arrival }, counters);
      this.#reportedMs = Date.now();
    } catch {
      // A log that stays listed costs a reader one call and nothing else.
    }
  }

  /** Tells the tenant's sums how a log stands that D1 is behind, or that is stopped; not more often than needed. */
  async report(counters: CounterReport): Promise<void> {
    if (Date.now() - this.#reportedMs < REPORT_INTERVAL_MS) return;
    try {
      await this.#directory().report(`${this.#identity.principal}.${this.#identity.generation}`, counters);
      this.#reportedMs = Date.now();
    } catch {
      // The next attempt of the flush tells it; until then the sums say how old they are.
    }
  }

  /** Takes the log off the list for good, whatever D1 holds: nothing will be added to it. Never throws. */
  async drop(): Promise<void> {
    this.#listed = null;
    try {
      await this.#directory().settle(...this.#next());
    } catch {
      logEvent("drop-failed", { principal: this.#identity.principal });
    }
  }

  async #touch(): Promise<void> {
    await this.#directory().touch(...this.#next());
  }

  #directory(): DurableObjectStub<TenantDirectory> {
    return this.#env.TENANT_DIRECTORY.getByName(this.#identity.tenant);
  }

  #next(): [principal: string, generation: number, version: number] {
    this.#version = Math.max(this.#version + 1, Date.now());
    return [this.#identity.principal, this.#identity.generation, this.#version];
  }
}
