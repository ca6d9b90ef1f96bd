/**
 * What D1 shows of versions, compared with what is true of them: somebody else may have written to D1.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { policyOf } from "./copy.ts";
import { recordedVersions } from "./recorded.ts";
import type { StoredPolicy, VersionName } from "./store.ts";

const COLUMNS = "name, version, engine, policy_id AS policyId, hash, created_at AS createdAt, source";

/** A version as a key of a map. */
export function versionKey({ name, version }: VersionName): string {
  return `${name}/${version}`;
}

/** Whether both have the same source, and say the same of it. Times are not compared. */
export function samePolicy(a: StoredPolicy, b: StoredPolicy): boolean {
  return a.source === b.source && a.hash === b.hash && a.engine === b.engine && a.policyId === b.policyId;
}

/** Characters of the source of each of the versions that D1 shows. */
export async function shownSizes(
  env: Env,
  tenant: string,
  versions: readonly VersionName[],
): Promise<ReadonlyMap<string, number>> {
  const results = await select<VersionName & { size: number }>(
    env,
    "name, version, length(source) AS size",
    tenant,
    versions,
  );
  return new Map(results.map((row) => [versionKey(row), row.size]));
}

/**
 * Those of the versions that D1 shows as the `$system` log records them, with all that follows from their source. Reads
 * their sources: ask for a bounded number. Throws 503 `index-rebuilding`.
 */
export async function soundVersions(
  env: Env,
  tenant: TenantRecord,
  versions: readonly VersionName[],
): Promise<ReadonlySet<string>> {
  if (versions.length === 0) return new Set();
  const isRecorded = await recordedVersions(env, tenant, versions);
  const rows = await select<StoredPolicy>(env, COLUMNS, tenant.id, versions);
  const sound = rows.filter((row) => {
    const told = policyOf(row, row.createdAt, row.source);
    return told !== null && samePolicy(told, row) && isRecorded(row);
  });
  return new Set(sound.map(versionKey));
}

async function select<T>(
  env: Env,
  columns: string,
  tenant: string,
  versions: readonly VersionName[],
): Promise<T[]> {
  const { results } = await env.DB.prepare(
    `SELECT ${columns} FROM policies WHERE tenant = ?1 AND stored = 1
     AND (name, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2))`,
  )
    .bind(tenant, JSON.stringify(versions.map(({ name, version }) => [name, version])))
    .all<T>();
  return results;
}
