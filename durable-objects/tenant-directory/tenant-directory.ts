/**
 * A tenant's directory: who it is, its API keys, its principals, its own kinds, and which of its logs D1 may be behind.
 * One Durable Object a tenant, so that a request is authenticated, routed and checked while D1 is away.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { equalSecret, fromHex, toHex } from "../../shared/bytes.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import type { Env } from "../../workers/env.ts";
import { indexedSeqs } from "../../workers/index-db/arrivals.ts";
import { blob, bytesOf } from "../tile-store/sql.ts";
import type { StoredDeclaration, TakenVersion } from "./extensions.ts";
import { ExtensionBook } from "./extensions.ts";
import type { Arrival, CopyStep, IndexWitness, RebuildPage, RebuildPlace, Rebuilt } from "./index-state.ts";
import { IndexState, isSameLog } from "./index-state.ts";
import type { CallerLimits, LeaseOutcome, LeaseRequest, Limits, Usage } from "./limits.ts";
import { LimitBook, sameLimits, UNLIMITED } from "./limits.ts";
import type { CounterReport, TotalCounters } from "./totals.ts";
import { Totals } from "./totals.ts";
import { TotalsReporter } from "./totals-reporter.ts";
import type {
  ApiKeyRecord,
  DirtyLog,
  EnsuredPrincipal,
  IndexView,
  PrincipalRecord,
  TenantRecord,
} from "./types.ts";

export type * from "./types.ts";

type Row = Record<string, SqlStorageValue>;

/** The object that sums over the tenants: its name is the id of none. */
export const SERVICE_OBJECT = "service";

export class TenantDirectory extends DurableObject<Env> {
  readonly #sql: SqlStorage;
  readonly #index: IndexState;
  readonly #totals: Totals;
  readonly #limits: LimitBook;
  readonly #extensions: ExtensionBook;
  readonly #reporter: TotalsReporter;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS tenant (one INTEGER PRIMARY KEY CHECK (one = 1), record TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS creation (one INTEGER PRIMARY KEY CHECK (one = 1), fingerprint BLOB NOT NULL);
      CREATE TABLE IF NOT EXISTS api_keys (
        id TEXT PRIMARY KEY, secret_hash TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
        principals TEXT NOT NULL, created_at TEXT NOT NULL, revoked_at TEXT) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS principals (
        name TEXT PRIMARY KEY, id TEXT NOT NULL, generation INTEGER NOT NULL, created_at TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS dirty_logs (
        principal TEXT NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (principal, generation)) WITHOUT ROWID;
    `);
    this.#index = new IndexState(this.#sql);
    this.#totals = new Totals(this.#sql);
    this.#limits = new LimitBook(this.#sql);
    this.#extensions = new ExtensionBook(this.#sql);
    this.#reporter = new TotalsReporter(ctx.storage, () => this.#reportTotals());
  }

  /**
   * Takes the request that creates the tenant, once: false for any other one, at any time. A tenant of before 2026-11 was
   * stored without its request, and is compared by name alone, by whoever asks.
   *
   * @param fingerprint of the request, hex
   */
  claim(fingerprint: string): boolean {
    const bytes = fromHex(fingerprint);
    const first = this.#first("SELECT fingerprint FROM creation");
    if (first !== undefined) return equalSecret(bytesOf(first.fingerprint), bytes);
    if (this.tenant() === null) this.#write("INSERT INTO creation VALUES (1, ?)", blob(bytes));
    return true;
  }

  /** Stores the tenant with its limits, once; answers the one that is stored. */
  create(tenant: TenantRecord, limits: Limits | null = null): TenantRecord {
    if (this.tenant() === null) {
      this.#together(() => {
        this.#sql.exec("INSERT INTO tenant VALUES (1, ?)", JSON.stringify(tenant));
        this.#limits.set(null, limits);
      });
    }
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
  authenticate(
    keyId: string,
    secretHash: string,
  ): { tenant: TenantRecord; key: ApiKeyRecord; limits: CallerLimits | null } | null {
    const row = this.#first("SELECT * FROM api_keys WHERE id = ?", keyId);
    // An unknown key is compared as well, with a hash that nothing has, so that it takes the same time.
    const expected = row === undefined ? "00".repeat(32) : String(row.secret_hash);
    const matches = equalSecret(fromHex(expected), fromHex(secretHash));
    const tenant = this.tenant();
    if (!matches || row === undefined || row.revoked_at !== null || tenant === null) return null;
    return { tenant, key: this.#apiKeyOf(row), limits: this.#limits.ofCaller(keyId) };
  }

  /** Stores a key, once per id. */
  addApiKey(key: ApiKeyRecord, secretHash: string): void {
    this.#together(() => {
      if (this.#first("SELECT 1 FROM api_keys WHERE id = ?", key.id) !== undefined) return;
      this.#limits.set(key.id, key.limits);
      this.#sql.exec(
        "INSERT INTO api_keys VALUES (?, ?, ?, ?, ?, ?, NULL)",
        key.id,
        secretHash,
        key.name,
        JSON.stringify(key.scopes),
        JSON.stringify(key.principals),
        key.createdAt,
      );
    });
  }

  apiKeys(): ApiKeyRecord[] {
    return [...this.#sql.exec<Row>("SELECT * FROM api_keys ORDER BY created_at, id")].map((row) =>
      this.#apiKeyOf(row),
    );
  }

  /** Revokes a key; null where there is none. Revoking twice keeps the first time. */
  revokeApiKey(id: string, now: string): ApiKeyRecord | null {
    this.#write("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", now, id);
    const row = this.#first("SELECT * FROM api_keys WHERE id = ?", id);
    return row === undefined ? null : this.#apiKeyOf(row);
  }

  #apiKeyOf(row: Row): ApiKeyRecord {
    return {
      id: String(row.id),
      name: String(row.name),
      scopes: JSON.parse(String(row.scopes)) as string[],
      principals: JSON.parse(String(row.principals)) as string[],
      limits: this.#limits.limits(String(row.id)),
      createdAt: String(row.created_at),
      revokedAt: row.revoked_at === null || row.revoked_at === undefined ? null : String(row.revoked_at),
    };
  }

  /**
   * Sets the tenant's limits in place of those before, or takes them away.
   *
   * @param before those that the caller saw; false, and nothing is set, where others hold by now
   */
  setLimits(limits: Limits, before: Limits): boolean {
    if (!sameLimits(this.#limits.limits(null) ?? UNLIMITED, before)) return false;
    this.#guarded(() => this.#limits.set(null, limits));
    return true;
  }

  /** The limits of the tenant (`keyId` null) or a key, and what is used of them. */
  limitsAndUsage(keyId: string | null): { readonly limits: Limits | null; readonly usage: Usage } {
    return { limits: this.#limits.limits(keyId), usage: this.#limits.usage(keyId, Date.now()) };
  }

  /** Leases a part of what a key and its tenant may use. */
  lease(request: LeaseRequest): LeaseOutcome {
    return this.#together(() => this.#limits.lease(request, Date.now()));
  }

  /** The declarations of the tenant's own kinds that hold, by prefix. These four are as in extensions.ts. */
  extensions(): StoredDeclaration[] {
    return this.#extensions.list();
  }

  extension(prefix: string, version: number | null): StoredDeclaration | null {
    return this.#extensions.find(prefix, version);
  }

  takeExtension(declared: Omit<StoredDeclaration, "version">, least: number): TakenVersion {
    return this.#together(() => this.#extensions.take(declared, least));
  }

  holdExtension(prefix: string, version: number): boolean {
    return this.#together(() => this.#extensions.hold(prefix, version));
  }

  principal(name: string): PrincipalRecord | null {
    const row = this.#first("SELECT * FROM principals WHERE name = ?", name);
    return row === undefined ? null : principalOf(row);
  }

  /**
   * The principal of this name, made now where there is none.
   *
   * @param keyId the key that asks, whose limits hold; null for the service itself, which has none
   */
  ensurePrincipal(candidate: PrincipalRecord, keyId: string | null): EnsuredPrincipal {
    const before = this.principal(candidate.name);
    if (before !== null) return { principal: before, created: false };
    const refused = keyId === null ? null : this.#limits.principalsRefusal(keyId);
    if (refused !== null) return { refused };
    const { name, id, generation, createdAt } = candidate;
    this.#together(() => {
      this.#sql.exec("INSERT INTO principals VALUES (?, ?, ?, ?)", name, id, generation, createdAt);
      this.#limits.principalMade(keyId);
    });
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

  /**
   * Notes that D1 holds everything that the log had when it counted this version.
   *
   * @param flushed up to which entry that is, and when the last of them arrived there
   */
  async settle(
    principal: string,
    generation: number,
    version: number,
    flushed?: { readonly seq: number; readonly arrival: Arrival },
    counters?: CounterReport,
  ): Promise<void> {
    if (counters !== undefined) this.report(`${principal}.${generation}`, counters);
    // First: a log that is off the list counts on the witness.
    if (flushed !== undefined)
      await this.#arrived({ principal, generation, seq: flushed.seq }, flushed.arrival);
    this.#write(
      "DELETE FROM dirty_logs WHERE principal = ? AND generation = ? AND version <= ?",
      principal,
      generation,
      version,
    );
  }

  /** Takes the counters of a log; in the object named `service`, of a tenant. */
  report(member: string, counters: CounterReport): void {
    this.#together(() => this.#totals.report(member, counters, Date.now()));
    if (this.tenant() !== null) void this.#reporter.changed();
  }

  /** The sums over what was reported. */
  totals(): TotalCounters {
    return this.#totals.read();
  }

  async #reportTotals(): Promise<void> {
    const id = this.tenant()?.id;
    if (id !== undefined) await this.env.TENANT_DIRECTORY.getByName(SERVICE_OBJECT).report(id, this.totals());
  }

  override async alarm(): Promise<void> {
    await this.#reporter.alarm();
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

  /** A new witness takes the old one's place only where D1 has both: else it went backwards in between. */
  async #arrived(log: IndexWitness, arrival: Arrival): Promise<void> {
    const witness = this.#index.witness();
    const tenant = this.tenant();
    const another = witness !== null && !isSameLog(witness, log);
    if (another && tenant !== null && !(await this.#holds(tenant, [witness, log]))) {
      this.startRebuild();
      return;
    }
    this.#guarded(() => this.#index.arrived(log, log.seq, arrival));
  }

  async #holds(tenant: TenantRecord, logs: readonly IndexWitness[]): Promise<boolean> {
    const ids = logs.map(({ principal, generation }) =>
      toHex(computeLogId(nativeCrypto, fromHex(tenant.registryId, 32), principal, generation)),
    );
    const indexed = await indexedSeqs(this.env.DB.withSession("first-primary"), ids);
    return logs.every(({ seq }, i) => (indexed.get(ids[i] ?? "") ?? 0) >= seq);
  }

  /** What a reader of the whole tenant has to ask, and to find in D1. */
  indexView(): IndexView {
    return {
      dirty: this.dirtyLogs(),
      witness: this.#index.witness(),
      rebuilding: this.#index.rebuilding,
      refused: this.#index.refused,
    };
  }

  /** D1 lacks what it once confirmed: every log is to fill it again. */
  startRebuild(): void {
    this.#guarded(() => this.ctx.storage.transactionSync(() => this.#index.startRebuild()));
  }

  /** The logs that come next in the rebuild; null where none runs. */
  rebuildPage(limit: number): RebuildPage | null {
    return this.#index.rebuildPage(limit);
  }

  /** Notes how far a rebuild has got. */
  rebuilt(round: number, upTo: RebuildPlace): void {
    this.#together(() => this.#index.rebuilt(round, upTo));
  }

  /** Ends a rebuild, with the newest arrival in D1 and what its last step refused. */
  endRebuild(round: number, witness: (IndexWitness & Arrival) | null, last: CopyStep): Rebuilt {
    return this.#together(() => this.#index.endRebuild(round, witness, last));
  }

  /**
   * Moves a principal on to its next generation, once.
   *
   * @returns the principal as it then is; null where there is none of this name
   */
  moveGeneration(name: string, from: number): PrincipalRecord | null {
    this.#write(
      "UPDATE principals SET generation = generation + 1 WHERE name = ? AND generation = ?",
      name,
      from,
    );
    const moved = this.principal(name);
    if (moved !== null && moved.generation > from)
      this.#together(() => this.#totals.retire(`${moved.id}.${from}`, Date.now()));
    return moved;
  }

  /**
   * Runs a statement that writes. A failure is one of storage, and transient: the Worker tells it by these words from a
   * defect, and answers 503.
   */
  #write(query: string, ...bindings: SqlStorageValue[]): void {
    this.#guarded(() => this.#sql.exec(query, ...bindings));
  }

  /** The same for several, all or none. */
  #together<T>(write: () => T): T {
    return this.#guarded(() => this.ctx.storage.transactionSync(write));
  }

  #guarded<T>(write: () => T): T {
    try {
      return write();
    } catch {
      this.#limits.forgetCount();
      throw new Error("a Durable Object's storage took no write");
    }
  }

  #first(query: string, ...bindings: SqlStorageValue[]): Row | undefined {
    for (const row of this.#sql.exec<Row>(query, ...bindings)) return row;
    return undefined;
  }
}

function principalOf(row: Row): PrincipalRecord {
  return {
    name: String(row.name),
    id: String(row.id),
    generation: Number(row.generation),
    createdAt: String(row.created_at),
  };
}
