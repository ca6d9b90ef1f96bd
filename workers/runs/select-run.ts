/**
 * The run that an audit is of, chosen among a tenant's runs (docs/audit.md "How to ask").
 *
 * @module
 */
import type { LedgerQuery } from "../../shared/audit/langbot-query.ts";
import { RunAudit } from "../../shared/audit/run-audit.ts";
import { importedName, type LookedAt, RunSelection } from "../../shared/audit/run-selection.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { indexedSeq, indexedSeqs } from "../index-db/arrivals.ts";
import type { TenantRun } from "../index-db/audits.ts";
import { queryNewestRuns, queryRunFacts } from "../index-db/audits.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { openLog } from "../logs/open-log.ts";
import {
  barrier,
  indexSession,
  logIdOf,
  requireIndexed,
  requireTenantIndexed,
  tenantBarrier,
} from "../logs/read.ts";
import { viewOfRow } from "./read-run.ts";

/** Runs that one request looks at: each is a query. */
export const MAX_LOOKED_AT = 500;
const RUNS_PAGE = 100;
const FACTS_PAGE = 500;

export interface RunQuery {
  readonly query: LedgerQuery;
  /** How many runs are looked at for the expected call. */
  readonly newest: number;
  /** Names of principals; undefined for all that the key may read. */
  readonly principals: readonly string[] | undefined;
}

export interface RunChoice {
  /** Null where no run is the one. */
  readonly chosen: { readonly log: OpenLog; readonly run: string } | null;
  readonly lookedAt: number;
  /** False where runs are left that were not looked at, so that one of them may be it. */
  readonly complete: boolean;
}

/** Looks at runs from the newest on. Throws 404 for a principal that is not there, and 503 problems. */
export async function selectRun(env: Env, caller: Caller, asked: RunQuery): Promise<RunChoice> {
  const { query, newest } = asked;
  const principals = await readable(env, caller, asked.principals);
  const named =
    query.runId === undefined ? undefined : { exactly: query.runId, before: importedName(query.runId) };
  const selection = new RunSelection(query, newest);
  const logs = new Map<string, OpenLog>();
  let lookedAt = 0;
  for (let before: number | null = null; ; ) {
    const runs: readonly TenantRun[] = await queryNewestRuns(
      indexSession(env),
      caller.tenant.id,
      { principals, named },
      before,
      RUNS_PAGE,
    );
    for (const candidate of runs) {
      const { name, run } = candidate;
      const log = logs.get(name) ?? (await openLog(env, caller, name));
      logs.set(name, log);
      // The principal's log was opened anew since: the run is in the one before.
      if (logIdOf(log) !== candidate.log_id || !selection.mayBe(run)) continue;
      if (lookedAt >= MAX_LOOKED_AT) return { chosen: null, lookedAt, complete: false };
      lookedAt += 1;
      const look = selection.look(run, await factsOf(env, candidate, query));
      if (look === "this") return { chosen: { log, run }, lookedAt, complete: true };
      if (look === "none") return { chosen: null, lookedAt, complete: true };
    }
    const last = runs.at(-1);
    if (last === undefined || runs.length < RUNS_PAGE) return { chosen: null, lookedAt, complete: true };
    before = last.pos;
  }
}

/** The principals to look at, with everything that they acknowledged in D1; null for every one of the tenant. */
async function readable(
  env: Env,
  caller: Caller,
  names: readonly string[] | undefined,
): Promise<readonly string[] | null> {
  if (names === undefined) {
    const promised = await tenantBarrier(env, caller);
    const indexed = await indexedSeqs(indexSession(env), [...promised.keys()]);
    await requireTenantIndexed(env, caller, promised, indexed);
    return mayUseAllPrincipals(caller) ? null : caller.key.principals;
  }
  for (const name of names) {
    const log = await openLog(env, caller, name);
    const size = await barrier(log);
    await requireIndexed(log, await indexedSeq(indexSession(env), logIdOf(log)), size);
  }
  return names;
}

/** Reads the entries of the run that say whether it is the one; it may have none of them. */
async function factsOf(env: Env, candidate: TenantRun, query: LedgerQuery): Promise<LookedAt> {
  const { log_id, run } = candidate;
  const facts = new RunAudit(run, query);
  for (let after = 0; ; ) {
    const db = indexSession(env);
    const page = await queryRunFacts(db, log_id, run, candidate, query.toolName, after, FACTS_PAGE);
    for (const row of page.rows) facts.add(viewOfRow(row));
    const last = page.rows.at(-1);
    if (!page.more || last === undefined) break;
    after = last.seq;
  }
  return {
    row: () => facts.row() ?? { run_id: run, created_at: null },
    hasExpectedCall: facts.hasExpectedCall,
  };
}
