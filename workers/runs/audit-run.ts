/**
 * The audit of a stored run: its entries and what bears on it in its log, read page by page (docs/audit.md).
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { CONTEXT_KINDS } from "../../shared/audit/findings.ts";
import type { LedgerQuery } from "../../shared/audit/langbot-query.ts";
import type { AuditReport } from "../../shared/audit/report.ts";
import { RunAudit } from "../../shared/audit/run-audit.ts";
import type { Env } from "../env.ts";
import { headOut } from "../http/head.ts";
import { queryRunInLog, queryRunSpan } from "../index-db/audits.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { refusal } from "../logs/open-log.ts";
import { barrier, indexSession, logIdOf, requireIndexed } from "../logs/read.ts";
import { viewOfRow } from "./read-run.ts";
import { SpecCache } from "./spec-cache.ts";

const PAGE = 500;

export interface AuditOptions {
  /** See `FindingsOptions`. */
  readonly unrecorded?: "accept" | undefined;
}

/** The report; null where the log has no such run. Throws 503 problems. */
export async function auditRun(
  env: Env,
  log: OpenLog,
  run: string,
  query: LedgerQuery,
  { unrecorded }: AuditOptions,
): Promise<AuditReport | null> {
  const size = await barrier(log);
  const { span, indexed } = await queryRunSpan(indexSession(env), logIdOf(log), run);
  await requireIndexed(log, indexed, size);
  if (span === null) return null;
  const specs = new SpecCache(env, log.identity.tenant, run);
  const audit = new RunAudit(run, query, {
    context: "log",
    crypto: nativeCrypto,
    specs: (hash) => specs.get(hash),
    ...(unrecorded === undefined ? {} : { unrecorded }),
  });
  // To the end of the log and not of the run: what came after a run may show what it lacked.
  for (let after = 0; after < size; ) {
    const page = await queryRunInLog(indexSession(env), logIdOf(log), run, CONTEXT_KINDS, after, size, PAGE);
    await requireIndexed(log, page.indexed, size);
    const entries = page.rows.map(viewOfRow);
    await specs.prepare(entries);
    for (const entry of entries) audit.add(entry);
    after = page.reached;
  }
  if (specs.overflown) audit.limit("approval hashes of calls with further tool specs");
  const outcome = await log.stub.head(log.identity, log.epoch);
  if (!outcome.ok) throw refusal(outcome);
  return audit.finish(headOut(outcome.head));
}
