/**
 * What the tenant's `$system` log says of versions: the `policy.stored` entries, as D1 holds them.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { openSystemLog, SYSTEM_PRINCIPAL } from "../logs/open-log.ts";
import type { VersionName } from "./store.ts";

/** The id of the entry that records a version: the same for the same version, so that it is recorded once. */
export function recordId({ name, version }: VersionName): string {
  return `policy.${toHex(nativeCrypto.sha256(utf8(name))).slice(0, 32)}.${version}`;
}

/**
 * Whether an entry records this content (hex SHA-256) as this version. A sealed generation of the log counts as well: what
 * it recorded was shown.
 */
export type IsRecorded = (version: VersionName & { readonly hash: string }) => boolean;

/** Looks the versions up. Throws 503 `index-rebuilding` where D1 does not hold all that the log acknowledged. */
export async function recordedVersions(
  env: Env,
  tenant: TenantRecord,
  versions: readonly VersionName[],
): Promise<IsRecorded> {
  const log = await openSystemLog(env, tenant);
  const outcome = await log.stub.barrier(log.identity, log.epoch);
  // A log that stands still, or that D1 contradicts, does not change by waiting: what D1 has of it is asked.
  if (!outcome.ok && outcome.code !== "log-stopped" && outcome.code !== "index-conflict")
    throw new Problem("index-rebuilding", { retryAfter: 1, detail: outcome.detail });
  const { results } = await env.DB.withSession("first-primary")
    .prepare(
      `SELECT e.content ->> '$.action.name' AS name, e.content ->> '$.action.version' AS version,
         e.content ->> '$.action.hash' AS hash
       FROM logs l JOIN entries e ON e.log = l.log AND e.id IN (SELECT value FROM json_each(?3))
       WHERE l.tenant = ?1 AND l.name = ?2 AND e.kind = 'policy.stored'`,
    )
    .bind(tenant.id, SYSTEM_PRINCIPAL, JSON.stringify(versions.map(recordId)))
    .all<{ name: string | null; version: number | null; hash: string | null }>();
  const recorded = new Set(results.map(({ name, version, hash }) => `${name}/${version}/${hash}`));
  return ({ name, version, hash }) => recorded.has(`${name}/${version}/${hash}`);
}
