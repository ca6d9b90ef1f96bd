/**
 * The SQLite storage of one key registry: its records with how far each has got on its way into effect, and the
 * managed keys, wrapped.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64 } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RegistryChain } from "../../shared/registry/chain.ts";
import type { RoleName } from "../../shared/registry/record.ts";
import { decodeRecord, OPS } from "../../shared/registry/record.ts";
import type { WrappedKey } from "../managed-keys.ts";
import type { PublishedRecord, RegistryEntry } from "./types.ts";
import { signedRecordOf } from "./types.ts";

/** How far a record has got. Only a recorded one is told to anybody, or a recovery that is published: see `entries`. */
export const STAGES = {
  /** In this storage alone. */
  stored: 0,
  /** In R2 and D1. */
  published: 1,
  /** On the tenant's system log as well: in effect from its time on. */
  recorded: 2,
} as const;
export type Stage = (typeof STAGES)[keyof typeof STAGES];

export interface StoredRecord {
  readonly published: PublishedRecord;
  readonly stage: Stage;
  /** Milliseconds since the epoch; null before it is published. */
  readonly effectiveAt: number | null;
  /** Id of the API key that asked for it; null for genesis. */
  readonly by: string | null;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS records (epoch INTEGER PRIMARY KEY, published TEXT NOT NULL, stage INTEGER NOT NULL,
  effective_at INTEGER, by_key TEXT);
CREATE TABLE IF NOT EXISTS managed_keys (public_key TEXT PRIMARY KEY, role TEXT NOT NULL, epoch INTEGER NOT NULL,
  wrapped TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS candidates (role TEXT PRIMARY KEY, public_key TEXT NOT NULL, wrapped TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS genesis_draft (one INTEGER PRIMARY KEY CHECK (one = 1), recovery TEXT NOT NULL,
  published TEXT NOT NULL, wrapped TEXT NOT NULL);
`;

/** Whether the record replaces a key by means of the recovery key. */
export function isRecovery({ record }: PublishedRecord): boolean {
  return decodeRecord(fromBase64(record)).op === OPS.recover;
}

export class RecordStore {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#sql.exec(SCHEMA);
  }

  /** All records, in order. */
  records(): StoredRecord[] {
    return [...this.#sql.exec("SELECT * FROM records ORDER BY epoch")].map((row) => ({
      published: JSON.parse(String(row.published)) as PublishedRecord,
      stage: Number(row.stage) as Stage,
      effectiveAt: row.effective_at === null ? null : Number(row.effective_at),
      by: row.by_key === null ? null : String(row.by_key),
    }));
  }

  /**
   * The records that are told to others. A published recovery, and what precedes it, is told before it is on the tenant's
   * system log: where no key opens any more, its new one alone can sign that log's next head.
   */
  entries(): RegistryEntry[] {
    const records = this.records();
    const recovered = records.findLastIndex(
      ({ published, stage }) => stage !== STAGES.stored && isRecovery(published),
    );
    const entries: RegistryEntry[] = [];
    for (const [i, { published, stage, effectiveAt }] of records.entries()) {
      const told = stage === STAGES.recorded || (stage === STAGES.published && i <= recovered);
      if (!told || effectiveAt === null) break;
      entries.push({ ...published, effectiveAt });
    }
    return entries;
  }

  /** The verified chain over all records. */
  chain(): RegistryChain {
    const chain = new RegistryChain(nativeCrypto);
    for (const { published } of this.records()) chain.add(signedRecordOf(published));
    return chain;
  }

  /** Stores a record with the managed keys that it binds, in one transaction. */
  add(published: PublishedRecord, by: string | null, keys: readonly WrappedKey[]): void {
    this.#storage.transactionSync(() => {
      this.#sql.exec(
        "INSERT INTO records VALUES (?, ?, ?, NULL, ?)",
        published.epoch,
        JSON.stringify(published),
        STAGES.stored,
        by,
      );
      for (const key of keys) {
        this.#sql.exec(
          "INSERT INTO managed_keys VALUES (?, ?, ?, ?)",
          key.publicKey,
          key.role,
          published.epoch,
          JSON.stringify(key),
        );
      }
      this.#sql.exec("DELETE FROM candidates");
      this.#sql.exec("DELETE FROM genesis_draft");
    });
  }

  /** Stores records that were in effect before the storage was set back. */
  adopt(records: readonly PublishedRecord[], nowMs: number): void {
    this.#storage.transactionSync(() => {
      // What came before them was published, and in effect: they follow it.
      this.#sql.exec(
        "UPDATE records SET stage = ?, effective_at = coalesce(effective_at, ?)",
        STAGES.recorded,
        nowMs,
      );
      for (const published of records) {
        this.#sql.exec(
          "INSERT INTO records VALUES (?, ?, ?, ?, NULL)",
          published.epoch,
          JSON.stringify(published),
          STAGES.recorded,
          nowMs,
        );
      }
      this.#sql.exec("DELETE FROM candidates");
    });
  }

  setPublished(epoch: number, effectiveAt: number): void {
    this.#sql.exec(
      "UPDATE records SET stage = ?, effective_at = ? WHERE epoch = ?",
      STAGES.published,
      effectiveAt,
      epoch,
    );
  }

  setRecorded(epoch: number): void {
    this.#sql.exec("UPDATE records SET stage = ? WHERE epoch = ?", STAGES.recorded, epoch);
  }

  /** The managed key that holds the role at the epoch. Throws `RunsealError("no-registry")`. */
  managedKey(role: RoleName, epoch: number): WrappedKey {
    for (const row of this.#sql.exec(
      "SELECT wrapped FROM managed_keys WHERE role = ? AND epoch <= ? ORDER BY epoch DESC LIMIT 1",
      role,
      epoch,
    )) {
      return JSON.parse(String(row.wrapped)) as WrappedKey;
    }
    throw new RunsealError("no-registry", "the tenant has no registry");
  }

  /** A key that waits for the recovery key's signature; a later one of the role takes its place. */
  setCandidate(key: WrappedKey): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?)",
      key.role,
      key.publicKey,
      JSON.stringify(key),
    );
  }

  candidate(publicKey: string): WrappedKey | null {
    for (const row of this.#sql.exec("SELECT wrapped FROM candidates WHERE public_key = ?", publicKey)) {
      return JSON.parse(String(row.wrapped)) as WrappedKey;
    }
    return null;
  }

  /** A genesis that waits for its recovery key's signature. */
  setGenesisDraft(recovery: string, published: PublishedRecord, keys: readonly WrappedKey[]): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO genesis_draft VALUES (1, ?, ?, ?)",
      recovery,
      JSON.stringify(published),
      JSON.stringify(keys),
    );
  }

  genesisDraft(recovery: string): { published: PublishedRecord; keys: readonly WrappedKey[] } | null {
    for (const row of this.#sql.exec("SELECT * FROM genesis_draft WHERE recovery = ?", recovery)) {
      return {
        published: JSON.parse(String(row.published)) as PublishedRecord,
        keys: JSON.parse(String(row.wrapped)) as WrappedKey[],
      };
    }
    return null;
  }
}
