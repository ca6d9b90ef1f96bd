/**
 * Making a job's report evidence: its text into R2 under its hash, then the entry on the tenant's `$system` log, and only
 * then is it served as final. Each step may be repeated: the text is made of what is stored, and the entry has the job's id.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { hashText } from "../../shared/recheck/hash.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import { differing, isNewAllow } from "../../shared/recheck/summary-cells.ts";
import type { Env } from "../../workers/env.ts";
import { listRecheck } from "../../workers/index-db/rechecks.ts";
import { appendSystemEntry } from "../../workers/logs/system-log.ts";
import { coveredLogs, policyJson, reportText } from "./report.ts";
import type { JobStorage } from "./storage.ts";
import type { JobEnd, JobRequest } from "./types.ts";

/** Heads that the entry holds. */
const MAX_HEADS = 100;

/** Where a report lies in R2: the tenant's, and its content's. */
export function reportKey(tenant: string, reportHash: string): string {
  return `t/${tenant}/recheck/${reportHash}`;
}

/** Stores the report's text under its hash; answers the hash. */
export async function storeReport(env: Env, tenant: string, text: string): Promise<string> {
  const hash = hashText(nativeCrypto, text);
  await env.MIRROR.put(reportKey(tenant, hash), text, { sha256: hash });
  return hash;
}

/** The report's text; null where R2 has none of this hash. */
export async function readReport(env: Env, tenant: string, hash: string): Promise<string | null> {
  const object = await env.MIRROR.get(reportKey(tenant, hash));
  if (object === null) return null;
  const text = await object.text();
  return hashText(nativeCrypto, text) === hash ? text : null;
}

/** Stores and records the report of a job whose end is decided, and moves the job to its end. Throws what passes. */
export async function finishJob(env: Env, storage: JobStorage, request: JobRequest): Promise<void> {
  const state = storage.state();
  const end = state.end as JobEnd;
  const { tenant, policy, selection } = request;
  const reportHash = state.reportHash ?? (await storeReport(env, tenant.id, reportText(storage, request)));
  const summary = new RecheckSummary(storage.summary());
  const logs = [...coveredLogs(storage, selection.newest)];
  await appendSystemEntry(env, tenant, {
    id: entryId(request.id),
    kind: "policy.rechecked",
    action: {
      job: request.id,
      status: end,
      report_hash: reportHash,
      engine: policy.engine,
      ...(policy.policyId === "" ? {} : { policy_id: policy.policyId }),
      ...(policy.hash === null ? {} : { policy_hash: policy.hash }),
      ...(policy.name === null ? {} : { policy_name: policy.name, policy_version: policy.version }),
      spec_source: policy.specSource,
      heads: logs
        .slice(0, MAX_HEADS)
        .map(({ logId, head }) => ({ log_id: logId, size: head.size, root: head.root })),
      logs: logs.length,
      runs: summary.runs.rechecked,
      failed_runs: summary.runs.failed,
      evaluated: summary.evaluated,
      same: summary.rechecked - summary.differences,
      different: summary.differences,
      new_allows: differing(summary.cells, isNewAllow),
      not_recheckable: summary.notRecheckable,
      by: request.by,
    },
  });
  storage.move({ status: end, reportHash });
}

/** The entry that records a re-check's report. */
export function entryId(id: string): string {
  return `recheck.${id}`;
}

/** Tells the index of jobs how this one stands. */
export async function indexJob(env: Env, storage: JobStorage, request: JobRequest): Promise<void> {
  const { status, finishedAt, reportHash } = storage.state();
  const { id, tenant, policy, selection, createdAt } = request;
  const names = selection.principals?.map(({ name }) => name) ?? request.keyPrincipals;
  await listRecheck(env.DB, tenant.id, {
    id,
    principals: names,
    policy: JSON.stringify(policyJson(policy)),
    status,
    createdAt,
    finishedAt,
    reportHash,
  });
}
