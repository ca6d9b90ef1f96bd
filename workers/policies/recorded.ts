/**
 * What the tenant's `$system` log says of versions: the `policy.stored` entries of all its generations, as D1 holds them
 * once it holds all that the log acknowledged. A sealed generation counts as well: what it recorded was shown.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { openSystemLog, refusal, SYSTEM_PRINCIPAL } from "../logs/open-log.ts";
import type { VersionName } from "./store.ts";

/** A version with its content, hex SHA-256. */
export interface VersionContent extends VersionName {
  readonly hash: string;
}

/** What the ids of the entries of a name's versions begin with; the version follows. */
function recordPrefix(name: string): string {
  return `policy.${toHex(nativeCrypto.sha256(utf8(name))).slice(0, 32)}.`;
}

/** The id of the entry that records a version: the same for the same version, so that it is recorded once. */
export function recordId({ name, version }: VersionName): string {
  return `${recordPrefix(name)}${version}`;
}

/** Whether an entry records this content as this version. */
export type IsRecorded = (version: VersionContent) => boolean;

/**
 * Looks versions up for what is taken back from R2. A log that stands still, or that D1 contradicts, does not change by
 * waiting: what D1 has of it is asked. Throws 503 `index-rebuilding` where D1 does not hold all that the log acknowledged.
 */
export async function recordedVersions(
  env: Env,
  tenant: TenantRecord,
  versions: readonly VersionName[],
): Promise<IsRecorded> {
  const results = await ask<{ name: string | null; version: number | null; hash: string | null }>(
    env,
    tenant,
    ["log-stopped", "index-conflict"],
    (db) =>
      db
        .prepare(
          `SELECT e.content ->> '$.action.name' AS name, e.content ->> '$.action.version' AS version,
             e.content ->> '$.action.hash' AS hash
           FROM logs l JOIN entries e ON e.log = l.log AND e.id IN (SELECT value FROM json_each(?3))
           WHERE l.tenant = ?1 AND l.name = ?2 AND e.kind = 'policy.stored'`,
        )
        .bind(tenant.id, SYSTEM_PRINCIPAL, JSON.stringify(versions.map(recordId))),
  );
  const recorded = new Set(results.map(({ name, version, hash }) => `${name}/${version}/${hash}`));
  return ({ name, version, hash }) => recorded.has(`${name}/${version}/${hash}`);
}

/** What the log records of a name. */
export interface NameRecord {
  /** The highest version, of any content; 0 where there is none. */
  readonly highest: number;
  /** The versions that have the content, ascending. */
  readonly versions: readonly number[];
}

/**
 * Which versions of the name have this content, and which number is the last that is taken: for whoever gives out the next
 * one. Throws 503 problems, also where D1 contradicts the log: a content that was recorded might not be found.
 */
export async function recordOfContent(
  env: Env,
  tenant: TenantRecord,
  { name, hash }: { readonly name: string; readonly hash: string },
): Promise<NameRecord> {
  const prefix = recordPrefix(name);
  const [found] = await ask<{ highest: number; versions: string }>(env, tenant, ["log-stopped"], (db) =>
    db
      .prepare(NAME_RECORD)
      .bind(tenant.id, SYSTEM_PRINCIPAL, prefix, `${prefix.slice(0, -1)}/`, prefix.length + 1, name, hash),
  );
  const versions = JSON.parse(found?.versions ?? "[]") as number[];
  return { highest: found?.highest ?? 0, versions: versions.sort((a, b) => a - b) };
}

/** Ids from ?3 up to ?4: "/" is what follows "." there. CROSS JOIN fixes the order, so that the entries are found by id. */
const NAME_RECORD = `
  SELECT coalesce(max(CAST(substr(e.id, ?5) AS INTEGER)), 0) AS highest,
    json_group_array(e.content ->> '$.action.version') FILTER (
      WHERE e.content ->> '$.action.name' = ?6 AND e.content ->> '$.action.hash' = ?7) AS versions
  FROM logs l CROSS JOIN entries e
  WHERE l.tenant = ?1 AND l.name = ?2 AND e.log = l.log AND e.id > ?3 AND e.id < ?4 AND e.kind = 'policy.stored'`;

/** Whether D1 itself, not asked how far it is, has an entry for the version: what it has is recorded, what it lacks may be. */
export async function isInIndex(
  db: D1DatabaseSession,
  tenant: string,
  version: VersionContent,
): Promise<boolean> {
  const row = await db
    .prepare(
      `SELECT 1 FROM logs l CROSS JOIN entries e
       WHERE l.tenant = ?1 AND l.name = ?2 AND e.log = l.log AND e.id = ?3 AND e.kind = 'policy.stored'
         AND e.content ->> '$.action.name' = ?4 AND e.content ->> '$.action.hash' = ?5`,
    )
    .bind(tenant, SYSTEM_PRINCIPAL, recordId(version), version.name, version.hash)
    .first();
  return row !== null;
}

/**
 * Asks D1 once it holds what the log acknowledged.
 *
 * @param tolerated refusals of the log for which D1 is asked all the same
 */
async function ask<T>(
  env: Env,
  tenant: TenantRecord,
  tolerated: readonly string[],
  question: (db: D1DatabaseSession) => D1PreparedStatement,
): Promise<T[]> {
  const log = await openSystemLog(env, tenant);
  const promised = await promiseOf(log, tolerated);
  const db = env.DB.withSession("first-primary");
  const [state, answer] = await db.batch([
    db
      .prepare("SELECT last_seq FROM logs WHERE tenant = ?1 AND name = ?2 AND generation = ?3")
      .bind(tenant.id, SYSTEM_PRINCIPAL, log.identity.generation),
    question(db),
  ]);
  const indexed = (state?.results[0] as { last_seq: number } | undefined)?.last_seq ?? 0;
  if (indexed < promised) {
    // Whoever reads the tenant waits from here on for a rebuild, which fills the log's past generations as well.
    await log.stub.reindex(log.identity, log.epoch);
    throw behind("D1 lacks entries that it once confirmed");
  }
  return (answer?.results ?? []) as T[];
}

/** Makes D1 hold the log; answers how much of it that is, 0 where the log does not say. */
async function promiseOf(log: OpenLog, tolerated: readonly string[]): Promise<number> {
  const outcome = await log.stub.barrier(log.identity, log.epoch);
  if (outcome.ok) return outcome.size;
  // One that is known by a generation of the past has a next one that can say.
  if (outcome.moved === undefined && tolerated.includes(outcome.code)) return 0;
  throw outcome.code === "index-unavailable" ? behind(outcome.detail) : refusal(outcome);
}

function behind(detail: string): Problem {
  return new Problem("index-rebuilding", { retryAfter: 1, detail });
}
