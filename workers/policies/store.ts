/**
 * Stored policies in D1: one row a version. D1 and R2 (copy.ts) hold the source; the tenant's `$system` log holds each
 * version's hash, and is what counts where they differ (docs/policies.md, "Where a policy lies").
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { EngineName } from "../../shared/recheck/policy-document.ts";
import { Problem } from "../http/problem.ts";

export interface VersionName {
  readonly name: string;
  readonly version: number;
}

export interface PolicyVersion extends VersionName {
  readonly engine: EngineName;
  /** The policy's identity, as evaluations record it. */
  readonly policyId: string;
  /** Hex SHA-256 of the source. */
  readonly hash: string;
  readonly createdAt: string;
}

export interface StoredPolicy extends PolicyVersion {
  /** Canonical JSON of the policy. */
  readonly source: string;
}

const COLUMNS = "name, version, engine, policy_id AS policyId, hash, created_at AS createdAt";

/**
 * One version, the latest where none is named; null where the tenant has none. Throws a 503 `index-conflict` problem
 * where the source is not the one that was hashed: somebody else wrote to D1.
 */
export async function readVersion(
  db: D1Database,
  tenant: string,
  name: string,
  version: number | null,
): Promise<StoredPolicy | null> {
  const row = await db
    .prepare(
      `SELECT ${COLUMNS}, source FROM policies
       WHERE tenant = ?1 AND name = ?2 AND stored = 1 AND (?3 IS NULL OR version = ?3)
       ORDER BY version DESC LIMIT 1`,
    )
    .bind(tenant, name, version)
    .first<StoredPolicy>();
  if (row !== null && toHex(nativeCrypto.sha256(utf8(row.source))) !== row.hash) {
    throw new Problem("index-conflict", { detail: `the source of policy ${name} has another hash` });
  }
  return row;
}

/** Versions of one name, newest first, below `before`. */
export async function listVersions(
  db: D1Database,
  tenant: string,
  name: string,
  before: number | null,
  limit: number,
): Promise<PolicyVersion[]> {
  const { results } = await db
    .prepare(
      `SELECT ${COLUMNS} FROM policies
       WHERE tenant = ?1 AND name = ?2 AND stored = 1 AND (?3 IS NULL OR version < ?3)
       ORDER BY version DESC LIMIT ?4`,
    )
    .bind(tenant, name, before, limit)
    .all<PolicyVersion>();
  return results;
}

/** The latest version of each name, in the order of the names, the first `passed` left out. */
export async function listLatest(
  db: D1Database,
  tenant: string,
  passed: number,
  limit: number,
): Promise<PolicyVersion[]> {
  // SQLite takes the other columns from the row of the maximum.
  const { results } = await db
    .prepare(
      `SELECT name, MAX(version) AS version, engine, policy_id AS policyId, hash, created_at AS createdAt
       FROM policies WHERE tenant = ?1 AND stored = 1
       GROUP BY name ORDER BY name LIMIT ?3 OFFSET ?2`,
    )
    .bind(tenant, passed, limit)
    .all<PolicyVersion>();
  return results;
}

/** A version that is reserved or shown. */
export interface Reservation extends StoredPolicy {
  readonly shown: boolean;
}

/**
 * The version that has this content: a shown one before one that is only reserved, the wanted one before the lowest. Null
 * where there is none.
 */
export async function findByHash(
  db: D1DatabaseSession,
  tenant: string,
  name: string,
  hash: string,
  wanted: number | null,
): Promise<Reservation | null> {
  const row = await db
    .prepare(
      `SELECT ${COLUMNS}, source, stored FROM policies WHERE tenant = ?1 AND name = ?2 AND hash = ?3
       ORDER BY stored DESC, version IS ?4 DESC, version LIMIT 1`,
    )
    .bind(tenant, name, hash, wanted)
    .first<StoredPolicy & { stored: number }>();
  if (row === null) return null;
  const { stored, ...policy } = row;
  return { ...policy, shown: stored === 1 };
}

/** The highest version, shown or only reserved; 0 where there is none. */
export async function highestVersion(db: D1DatabaseSession, tenant: string, name: string): Promise<number> {
  const row = await db
    .prepare("SELECT MAX(version) AS version FROM policies WHERE tenant = ?1 AND name = ?2")
    .bind(tenant, name)
    .first<{ version: number | null }>();
  return row?.version ?? 0;
}

/** Takes the version for this content, unseen yet. False where somebody else took it, or the content is there. */
export async function reserve(db: D1DatabaseSession, tenant: string, policy: StoredPolicy): Promise<boolean> {
  const { name, version, policyId, engine, source, createdAt, hash } = policy;
  // One statement: of two who send the same content at once, one alone gets a number for it.
  const { meta } = await db
    .prepare(
      `INSERT INTO policies (tenant, name, version, policy_id, engine, source, created_at, hash, stored)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0
       WHERE NOT EXISTS (SELECT 1 FROM policies WHERE tenant = ?1 AND name = ?2 AND hash = ?8) ON CONFLICT DO NOTHING`,
    )
    .bind(tenant, name, version, policyId, engine, source, createdAt, hash)
    .run();
  return meta.changes > 0;
}

/**
 * Shows the version: its entry is durable, and R2 holds it. False where it is not reserved with this content any more, or
 * was shown meanwhile.
 */
export async function markStored(
  db: D1DatabaseSession,
  tenant: string,
  { name, version, createdAt, hash, source }: StoredPolicy,
): Promise<boolean> {
  const { meta } = await db
    .prepare(
      `UPDATE policies SET stored = 1, created_at = ?4
       WHERE tenant = ?1 AND name = ?2 AND version = ?3 AND stored = 0 AND hash = ?5 AND source = ?6`,
    )
    .bind(tenant, name, version, createdAt, hash, source)
    .run();
  return meta.changes > 0;
}

/** What became of a version that is put in its place. */
export type Restored = "shown" | "replaced" | "unchanged";

/**
 * Shows a version that the log records and R2 holds, whatever D1 has in its place: nothing, another content that somebody
 * reserved, who looks again then, or a row that somebody else wrote (`replaced`).
 */
export async function restore(
  db: D1Database | D1DatabaseSession,
  tenant: string,
  policy: StoredPolicy,
): Promise<Restored> {
  const { name, version, policyId, engine, source, createdAt, hash } = policy;
  const [before, , put] = await db.batch([
    db
      .prepare("SELECT 1 FROM policies WHERE tenant = ?1 AND name = ?2 AND version = ?3 AND stored = 1")
      .bind(tenant, name, version),
    db
      .prepare(
        "DELETE FROM policies WHERE tenant = ?1 AND name = ?2 AND hash = ?3 AND stored = 0 AND version <> ?4",
      )
      .bind(tenant, name, hash, version),
    db
      .prepare(
        `INSERT INTO policies (tenant, name, version, policy_id, engine, source, created_at, hash, stored)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1)
         ON CONFLICT (tenant, name, version) DO UPDATE SET policy_id = excluded.policy_id, engine = excluded.engine,
           source = excluded.source, created_at = excluded.created_at, hash = excluded.hash, stored = 1
         WHERE stored = 0 OR (policy_id, engine, source, created_at, hash)
           IS NOT (excluded.policy_id, excluded.engine, excluded.source, excluded.created_at, excluded.hash)`,
      )
      .bind(tenant, name, version, policyId, engine, source, createdAt, hash),
  ]);
  if (before?.results.length !== 1) return "shown";
  return (put?.meta.changes ?? 0) > 0 ? "replaced" : "unchanged";
}

/** Gives a version back that this content has not: the log has another one under its number. */
export async function release(
  db: D1DatabaseSession,
  tenant: string,
  { name, version, hash }: VersionName & { readonly hash: string },
): Promise<void> {
  await db
    .prepare("DELETE FROM policies WHERE tenant = ?1 AND name = ?2 AND version = ?3 AND hash = ?4")
    .bind(tenant, name, version, hash)
    .run();
}
