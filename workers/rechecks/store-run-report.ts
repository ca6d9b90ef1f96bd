/**
 * Storing the report of one re-checked run as evidence, like that of a job: under its hash in R2, on the tenant's `$system`
 * log, and then to be had by id.
 *
 * @module
 */

import type { HeadView, LogIdentity } from "../../durable-objects/principal-log/types.ts";
import { entryId, readReport, storeReport } from "../../durable-objects/recheck-job/finish.ts";
import { isEnd, jobObjectName } from "../../durable-objects/recheck-job/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { DEFAULT_BUDGET } from "../../shared/api/rechecks.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import type { RecheckReport } from "../../shared/recheck/report.ts";
import type { RecheckRequest } from "../../shared/recheck/request.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import { runLine } from "../../shared/recheck/summary-line.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import { SYSTEM_PRINCIPAL } from "../logs/open-log.ts";
import type { OpenedPolicy } from "../policies/engine.ts";
import { jobId, jobPolicy } from "./job-request.ts";

export interface RunReport {
  /** The Idempotency-Key; null where the request has none. */
  readonly key: string | null;
  readonly asked: RecheckRequest;
  readonly opened: OpenedPolicy;
  readonly log: LogIdentity;
  readonly head: HeadView;
  readonly specHashes: readonly string[];
  readonly report: RecheckReport;
  /** JSON text of the report as it is answered: an object. */
  readonly text: string;
}

export interface StoredRunReport {
  /** JSON text that was stored: for a repeated request that of the first one. */
  readonly text: string;
  readonly stored: {
    readonly id: string;
    readonly report_hash: string;
    readonly entry: { readonly principal: string; readonly id: string };
  };
}

/** Stores and records the report. Throws a 503 problem where it could not be made evidence yet, 422 for another key's use. */
export async function storeRunReport(env: Env, caller: Caller, run: RunReport): Promise<StoredRunReport> {
  const { opened, asked, log, report, head } = run;
  const { hash, root, epoch, key, checkpoint, size } = head;
  const tenant = caller.tenant;
  const { runId, specSource } = report;
  const principal = { name: log.name, id: log.principal, generation: log.generation, createdAt: "" };
  const policy = { ...jobPolicy(opened, asked), reference: "", currentTools: null };
  const asking = JSON.stringify([
    "recheckRun",
    principal.id,
    runId,
    policy.hash,
    policy.policyId,
    specSource,
  ]);
  const { id, fingerprint } = jobId(env.MASTER_KEY, caller, run.key, new TextEncoder().encode(asking));
  const source = opened.stored === null && opened.reference !== null ? opened.reference : null;
  const members = [`"principal":${JSON.stringify(log.name)}`, `"id":"${id}"`];
  if (source !== null) members.push(`"policy_source":${source}`);
  const text = canonicalJson(`${run.text.slice(0, -1)},${members.join(",")}}`);
  const reportHash = await storeReport(env, tenant.id, text);
  const summary = new RecheckSummary({ policyId: report.policyId, specSource });
  summary.add({ principal: log.name, report, specHashes: run.specHashes });
  const logId = toHex(computeLogId(nativeCrypto, fromHex(log.registryId, 32), log.principal, log.generation));
  const stub = env.RECHECK_JOB.getByName(jobObjectName(tenant.id, id));
  const none = { since: null, until: null, tool: null, policyId: null, newest: null };
  const outcome = await stub.adopt(
    {
      id,
      tenant,
      by: caller.key.id,
      keyPrincipals: null,
      fingerprint,
      selection: { ...none, principals: [principal], run: runId },
      budget: DEFAULT_BUDGET,
      policy,
      createdAt: new Date().toISOString(),
    },
    {
      reportHash,
      log: { principal, logId, head: { size, hash, root, epoch, key, checkpoint }, runs: 1 },
      summary: JSON.stringify(summary.state()),
      line: runLine(log.name, report),
    },
  );
  if (!outcome.ok) throw new Problem(outcome.code);
  const { status, reportHash: final } = outcome.view;
  // Its alarm goes on with it; whoever asks again, with the same key, finds it.
  if (!isEnd(status) || final === null) {
    throw new Problem("unavailable", { detail: "the report is not on the system log yet", retryAfter: 2 });
  }
  const first = final === reportHash ? text : await readReport(env, tenant.id, final);
  if (first === null) throw new Problem("unavailable", { retryAfter: 2 });
  return {
    text: first,
    stored: { id, report_hash: final, entry: { principal: SYSTEM_PRINCIPAL, id: entryId(id) } },
  };
}
