/**
 * The tenant's re-check jobs in D1, for listing them. A job itself is its Durable Object; what is here may lag behind it.
 *
 * @module
 */
import type { JobStatus } from "../../durable-objects/recheck-job/types.ts";

export interface ListedRecheck {
  readonly id: string;
  /** Names of the principals that it may read; null for every one. */
  readonly principals: readonly string[] | null;
  /** JSON: engine, policy_id, hash, name, version. */
  readonly policy: string;
  readonly status: JobStatus;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly reportHash: string | null;
}

interface Row {
  readonly n: number;
  readonly id: string;
  readonly principals: string;
  readonly policy: string;
  readonly status: JobStatus;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly report_hash: string | null;
}

/** Lists the job, or says how it stands now. */
export async function listRecheck(db: D1Database, tenant: string, job: ListedRecheck): Promise<void> {
  await db
    .prepare(
      `INSERT INTO rechecks (tenant, id, principals, policy, status, created_at, finished_at, report_hash)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
       ON CONFLICT (tenant, id) DO UPDATE
       SET status = excluded.status, finished_at = excluded.finished_at, report_hash = excluded.report_hash`,
    )
    .bind(
      tenant,
      job.id,
      JSON.stringify(job.principals),
      job.policy,
      job.status,
      job.createdAt,
      job.finishedAt,
      job.reportHash,
    )
    .run();
}

/** A page of jobs, newest first, before a place in that order; from the newest where it is 0. */
export async function pageRechecks(
  db: D1DatabaseSession,
  tenant: string,
  before: number,
  limit: number,
): Promise<readonly (ListedRecheck & { readonly n: number })[]> {
  const { results } = await db
    .prepare(
      `SELECT n, id, principals, policy, status, created_at, finished_at, report_hash
       FROM rechecks WHERE tenant = ?1 AND (?2 = 0 OR n < ?2) ORDER BY n DESC LIMIT ?3`,
    )
    .bind(tenant, before, limit)
    .all<Row>();
  return results.map(({ created_at, finished_at, report_hash, principals, ...row }) => ({
    ...row,
    principals: JSON.parse(principals) as readonly string[] | null,
    createdAt: created_at,
    finishedAt: finished_at,
    reportHash: report_hash,
  }));
}

/** Jobs of the tenant that are not at their end. */
export async function countUnfinished(db: D1DatabaseSession, tenant: string): Promise<number> {
  const row = await db
    .prepare("SELECT count(*) AS n FROM rechecks WHERE tenant = ?1 AND finished_at IS NULL")
    .bind(tenant)
    .first<{ n: number }>();
  return row?.n ?? 0;
}
