/**
 * A tenant's directory: who it is, its API keys, its principals, and which of its logs D1 may be behind. One Durable
 * Object a tenant, so that a request is authenticated and routed while D1 is away (design section 2, promise 5).
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { equalSecret, fromHex } from "../../shared/bytes.ts";
import type { Env } from "../../workers/env.ts";

export interface TenantRecord {
  /** 16 bytes of hex. */
  readonly id: string;
  readonly name: string;
  readonly host: string;
  /** 32 bytes of hex. */
  readonly registryId: string;
  /** RFC 3339. */
  readonly createdAt: string;
}

/** An API key without its secret. */
export interface ApiKeyRecord {
  /** 16 bytes of hex: the credential id in the leaves that it submitted. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Names of principals, or `*`. */
  readonly principals: readonly string[];
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

export interface PrincipalRecord {
  readonly name: string;
  /** 16 bytes of hex. */
  readonly id: string;
  readonly generation: number;
  readonly createdAt: string;
}

/** A log that may have entries which D1 lacks. */
export interface DirtyLog {
  readonly name: string;
  readonly principal: string;
  readonly generation: number;
}

type Row = Record<string, SqlStorageValue>;

export class TenantDirectory extends DurableObject<Env> {
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS tenant (one INTEGER PRIMARY KEY CHECK (one = 1), record TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS api_keys (
        id TEXT PRIMARY KEY, secret_hash TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
        principals TEXT NOT NULL, created_at TEXT NOT NULL, revoked_at TEXT) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS principals (
        name TEXT PRIMARY KEY, id TEXT NOT NULL, generation INTEGER NOT NULL, created_at TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS dirty_logs (
        principal TEXT NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (principal, generation)) WITHOUT ROWID;
    `);
  }

  /** Stores the tenant, once; answers the one that is stored. */
  create(tenant: TenantRecord): TenantRecord {
    this.#write("INSERT INTO tenant VALUES (1, ?) ON CONFLICT DO NOTHING", JSON.stringify(tenant));
    return this.tenant() ?? tenant;
  }

  /** The tenant, or null where there is none of this id. */
  tenant(): TenantRecord | null {
    const row = this.#first("SELECT record FROM tenant");
    return row === undefined ? null : (JSON.parse(String(row.record)) as TenantRecord);
  }

  /**
   * The tenant and key behind a credential, or null: an unknown key, a wrong secret and a revoked key look the same.
   *
   * @param secretHash SHA-256 of the secret, hex
   */
  authenticate(keyId: string, secretHash: string): { tenant: TenantRecord; key: ApiKeyRecord } | null {
    const row = this.#first("SELECT * FROM api_keys WHERE id = ?", keyId);
    // An unknown key is compared as well, with a hash that nothing has, so that it takes the same time.
    const expected = row === undefined ? "00".repeat(32) : String(row.secret_hash);
    const matches = equalSecret(fromHex(expected), fromHex(secretHash));
    const tenant = this.tenant();
    if (!matches || row === undefined || row.revoked_at !== null || tenant === null) return null;
    return { tenant, key: apiKeyOf(row) };
  }

  /** Stores a key, once per id. */
  addApiKey(key: ApiKeyRecord, secretHash: string): void {
    this.#write(
      "INSERT INTO api_keys VALUES (?, ?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING",
      key.id,
      secretHash,
      key.name,
      JSON.stringify(key.scopes),
      JSON.stringify(key.principals),
      key.createdAt,
    );
  }

  apiKeys(): ApiKeyRecord[] {
    return [...this.#sql.exec<Row>("SELECT * FROM api_keys ORDER BY created_at, id")].map(apiKeyOf);
  }

  /** Revokes a key; null where there is none. Revoking twice keeps the first time. */
  revokeApiKey(id: string, now: string): ApiKeyRecord | null {
    this.#write("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", now, id);
    const row = this.#first("SELECT * FROM api_keys WHERE id = ?", id);
    return row === undefined ? null : apiKeyOf(row);
  }

  principal(name: string): PrincipalRecord | null {
    const row = this.#first("SELECT * FROM principals WHERE name = ?", name);
    return row === undefined ? null : principalOf(row);
  }

  /** The principal of this name, made now where there is none. */
  ensurePrincipal(candidate: PrincipalRecord): { principal: PrincipalRecord; created: boolean } {
    const before = this.principal(candidate.name);
    if (before !== null) return { principal: before, created: false };
    this.#write(
      "INSERT INTO principals VALUES (?, ?, ?, ?)",
      candidate.name,
      candidate.id,
      candidate.generation,
      candidate.createdAt,
    );
    return { principal: candidate, created: true };
  }

  /** A page of principals by name, after the given one. */
  principals(after: string, limit: number): PrincipalRecord[] {
    return [
      ...this.#sql.exec<Row>("SELECT * FROM principals WHERE name > ? ORDER BY name LIMIT ?", after, limit),
    ].map(principalOf);
  }

  /** Notes that D1 may lack entries of the log. */
  touch(principal: string, generation: number, version: number): void {
    this.#write(
      `INSERT INTO dirty_logs VALUES (?, ?, ?)
       ON CONFLICT (principal, generation) DO UPDATE SET version = max(version, excluded.version)`,
      principal,
      generation,
      version,
    );
  }

  /** Notes that D1 holds everything that the log had when it counted this version. */
  settle(principal: string, generation: number, version: number): void {
    this.#write(
      "DELETE FROM dirty_logs WHERE principal = ? AND generation = ? AND version <= ?",
      principal,
      generation,
      version,
    );
  }

  /** The logs that D1 may be behind. */
  dirtyLogs(): DirtyLog[] {
    return [
      ...this.#sql.exec<Row>(
        "SELECT p.name, d.principal, d.generation FROM dirty_logs d JOIN principals p ON p.id = d.principal ORDER BY p.name",
      ),
    ].map((row) => ({
      name: String(row.name),
      principal: String(row.principal),
      generation: Number(row.generation),
    }));
  }

  /**
   * Runs a statement that writes. A failure is one of storage, and transient: the Worker tells it by these words from a
   * defect, and answers 503.
   */
  #write(query: string, ...bindings: SqlStorageValue[]): void {
    try {
      this.#sql.exec(query, ...bindings);
    } catch {
      throw new Error("a Durable Object's storage took no write");
    }
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    for (const row of this.#sql.exec<Row>(query, ...bindings)) return row;
    return undefined;
  }
}

function apiKeyOf(row: Row): ApiKeyRecord {
  return {
    id: String(row.id),
    name: String(row.name),
    scopes: JSON.parse(String(row.scopes)) as string[],
    principals: JSON.parse(String(row.principals)) as string[],
    createdAt: String(row.created_at),
    revokedAt: row.revoked_at === null || row.revoked_at === undefined ? null : String(row.revoked_at),
  };
}

function principalOf(row: Row): PrincipalRecord {
  return {
    name: String(row.name),
    id: String(row.id),
    generation: Number(row.generation),
    createdAt: String(row.created_at),
  };
}
