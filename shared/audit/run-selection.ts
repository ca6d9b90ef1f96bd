/**
 * Which of a tenant's runs an audit is of (docs/audit.md "How to ask"): runs are
 * looked at one after the other, the newest first, until one is it.
 *
 * @module
 */
import { isCreatedAfter, type LedgerQuery, MAX_CANDIDATES } from "./langbot-query.ts";
import type { LedgerRow } from "./langbot-rows.ts";

/** What is known of a run once the entries that say it were read. */
export interface LookedAt {
  /** Null where no entry is of the run. */
  row(): Pick<LedgerRow, "run_id" | "created_at"> | null;
  readonly hasExpectedCall: boolean;
}

/** `none`: no older one is it either. */
export type Look = "this" | "another" | "none";

export class RunSelection {
  readonly #query: LedgerQuery;
  readonly #newest: number;
  #candidates = 0;

  /** @param newest how many runs that were created late enough are looked at for the expected call */
  constructor(query: LedgerQuery, newest: number = MAX_CANDIDATES) {
    this.#query = query;
    this.#newest = newest;
  }

  /** Whether the run of this name has to be looked at: a name may rule it out. */
  mayBe(run: string): boolean {
    return this.#query.runId === undefined || mayBeRun(run, this.#query.runId);
  }

  /** @param run the run as the log names it */
  look(run: string, seen: LookedAt): Look {
    const { runId, toolName } = this.#query;
    const row = seen.row();
    if (row === null || !this.mayBe(run)) return "another";
    if (runId !== undefined) return run === runId || row.run_id === runId ? "this" : "another";
    if (toolName === undefined) return "this";
    if (!isCreatedAfter(this.#query, row.created_at)) return "another";
    if (seen.hasExpectedCall) return "this";
    this.#candidates += 1;
    return this.#candidates >= this.#newest ? "none" : "another";
  }
}

/**
 * Whether the log's name may be that of the run: the id itself, or what `runseal import langbot` makes of an id that
 * holds other characters than a name may, or is too long: the characters replaced, cut, and a digest behind it.
 */
export function mayBeRun(run: string, id: string): boolean {
  return run === id || run.startsWith(`${importedName(id)}:`);
}

/** What stands before the digest in the name that an import gives to an id. */
export function importedName(id: string): string {
  return id.replace(/[^A-Za-z0-9._-]/g, "-").slice(0, MAX_BEFORE_DIGEST);
}

/** Characters that the digest leaves of a name (cli/import/names.ts). */
const MAX_BEFORE_DIGEST = 111;
