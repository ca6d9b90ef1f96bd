/**
 * A tenant's key registry (design section 4): the hash chain of key bindings. One Durable Object a tenant. A record
 * takes effect once it is published create-only in R2.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes, fromBase64, fromHex, toBase64, toHex, utf8 } from "../../shared/bytes.ts";
import { tenantOrigin } from "../../shared/entry/log-id.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { SignedRecord } from "../../shared/registry/record.ts";
import { genesisRecord, ROLES, signRecord } from "../../shared/registry/record.ts";
import type { Env } from "../../workers/env.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { createManagedKey } from "../managed-keys.ts";

/** A record as it crosses RPC and is published: base64 and hex. */
export interface PublishedRecord {
  readonly epoch: number;
  /** Base64 of the record's bytes. */
  readonly record: string;
  /** Hex, sorted by key. */
  readonly signatures: readonly { readonly key: string; readonly signature: string }[];
}

export interface RegistryState {
  /** Hex. */
  readonly registryId: string;
  readonly epoch: number;
  readonly records: readonly PublishedRecord[];
}

function publish(epoch: number, signed: SignedRecord): PublishedRecord {
  return {
    epoch,
    record: toBase64(signed.bytes),
    signatures: signed.signatures.map(({ key, signature }) => ({
      key: toHex(key),
      signature: toHex(signature),
    })),
  };
}

/** The record as the pure code reads it. */
export function signedRecordOf(published: PublishedRecord): SignedRecord {
  return {
    bytes: fromBase64(published.record),
    signatures: published.signatures.map(({ key, signature }) => ({
      key: fromHex(key, 32),
      signature: fromHex(signature, 64),
    })),
  };
}

export class KeyRegistry extends DurableObject<Env> {
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS records (epoch INTEGER PRIMARY KEY, published TEXT NOT NULL, in_effect INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS managed_keys (public_key TEXT PRIMARY KEY, role TEXT NOT NULL, epoch INTEGER NOT NULL,
        wrapped TEXT NOT NULL);
    `);
  }

  /**
   * Writes and publishes the tenant's genesis, once: a second call answers the same registry.
   *
   * @throws what R2 throws; the next call publishes what this one stored
   */
  async create(tenant: string, host: string): Promise<RegistryState> {
    if (this.#records().length === 0) {
      const audit = await createManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, "audit");
      const log = await createManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, "log");
      const record = genesisRecord({
        origin: tenantOrigin(host, tenant),
        nonce: crypto.getRandomValues(new Uint8Array(16)),
        time: BigInt(Date.now()) * 1_000_000n,
        add: [
          { role: ROLES.audit, key: audit.signer.publicKey },
          { role: ROLES.log, key: log.signer.publicKey },
        ],
      });
      const signed = signRecord(nativeCrypto, record, [audit.signer, log.signer]);
      this.ctx.storage.transactionSync(() => {
        // Another call may have come first while the keys were being wrapped.
        if (this.#records().length > 0) return;
        this.#sql.exec("INSERT INTO records VALUES (0, ?, 0)", JSON.stringify(publish(0, signed)));
        for (const wrapped of [audit.wrapped, log.wrapped]) this.#storeKey(wrapped, 0);
      });
    }
    await this.#publishPending(tenant);
    return this.#state();
  }

  /** The records in effect. Throws `RunsealError("no-registry")` for a tenant that does not exist. */
  state(): RegistryState {
    return this.#state();
  }

  /** The wrapped audit key in effect; only a log's object opens it. */
  auditKey(): { epoch: number; wrapped: WrappedKey } {
    for (const row of this.#sql.exec(
      "SELECT wrapped, epoch FROM managed_keys WHERE role = 'audit' ORDER BY epoch DESC LIMIT 1",
    )) {
      return { epoch: Number(row.epoch), wrapped: JSON.parse(String(row.wrapped)) as WrappedKey };
    }
    throw new RunsealError("no-registry", "the tenant has no registry");
  }

  #storeKey(wrapped: WrappedKey, epoch: number): void {
    this.#sql.exec(
      "INSERT INTO managed_keys VALUES (?, ?, ?, ?)",
      wrapped.publicKey,
      wrapped.role,
      epoch,
      JSON.stringify(wrapped),
    );
  }

  #records(onlyInEffect = false): PublishedRecord[] {
    const filter = onlyInEffect ? "WHERE in_effect = 1" : "";
    return [...this.#sql.exec(`SELECT published FROM records ${filter} ORDER BY epoch`)].map(
      (row) => JSON.parse(String(row.published)) as PublishedRecord,
    );
  }

  async #publishPending(tenant: string): Promise<void> {
    for (const row of [
      ...this.#sql.exec("SELECT epoch, published FROM records WHERE in_effect = 0 ORDER BY epoch"),
    ]) {
      const key = `t/${tenant}/registry/${row.epoch}`;
      const body = utf8(String(row.published));
      const put = await this.env.MIRROR.put(key, body, { onlyIf: new Headers({ "If-None-Match": "*" }) });
      if (put === null) {
        const there = await this.env.MIRROR.get(key);
        if (there === null || !equalBytes(new Uint8Array(await there.arrayBuffer()), body)) {
          throw new RunsealError("registry-fork", "another record is published under this epoch");
        }
      }
      this.#sql.exec("UPDATE records SET in_effect = 1 WHERE epoch = ?", Number(row.epoch));
    }
  }

  #state(): RegistryState {
    const records = this.#records(true);
    const [genesis] = records;
    const last = records.at(-1);
    if (genesis === undefined || last === undefined)
      throw new RunsealError("no-registry", "the tenant has no registry");
    return {
      registryId: toHex(nativeCrypto.sha256(fromBase64(genesis.record))),
      epoch: last.epoch,
      records,
    };
  }
}
