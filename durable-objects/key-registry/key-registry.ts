/**
 * A tenant's key registry: the hash chain of key bindings. One Durable Object a tenant. This file
 * is its RPC surface; docs/keys.md describes the operations.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { equalBytes, fromBase64, fromHex, toHex } from "../../shared/bytes.ts";
import type { Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import type { ManagedRole, OpenRole, SignedRecord } from "../../shared/registry/record.ts";
import { decodeRecord, OPEN_ROLES, OPS, ROLES, signRecord } from "../../shared/registry/record.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { WrappedKey } from "../managed-keys.ts";
import { createManagedKey, openManagedKey } from "../managed-keys.ts";
import { makeGenesis } from "./genesis.ts";
import {
  countersign,
  isRotation,
  nextRecord,
  proposalOf,
  readProposal,
  recoversAudit,
  sortedSignatures,
  unfitKey,
} from "./next-record.ts";
import { completeRecords } from "./publication.ts";
import type { Stage } from "./record-store.ts";
import { RecordStore, STAGES } from "./record-store.ts";
import { requireHolder, takeBack } from "./set-back.ts";
import type {
  Proposal,
  ProposalOutcome,
  PublishedRecord,
  RecordOutcome,
  RegistryRefusal,
  RegistryState,
} from "./types.ts";
import { epochInEffect, publishedOf, refused, signedRecordOf } from "./types.ts";

export type { PublishedRecord, RegistryState } from "./types.ts";
export { signedRecordOf } from "./types.ts";

const RETRY_MS = 5000;

export class KeyRegistry extends DurableObject<Env> {
  readonly #store: RecordStore;
  /** One change at a time: each waits for R2, D1 and the system log. */
  #last: Promise<unknown> = Promise.resolve();
  #compared: Promise<void> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new RecordStore(ctx.storage);
  }

  /**
   * A genesis that binds an offline recovery key, to be signed by it. The same again until it was created.
   *
   * @param recovery the recovery key, hex
   */
  draft(tenant: string, host: string, recovery: string): Promise<ProposalOutcome> {
    return this.#serial(async () => {
      const there = this.#store.genesisDraft(recovery);
      if (there !== null) return { ok: true, proposal: proposalFor(there.published) };
      if (this.#store.records().length > 0) return refused("registry-moved", "the tenant exists");
      const key = fromHex(recovery, 32);
      const unfit = unfitKey(this.#store.chain(), key, "/recovery_key");
      if (unfit !== null) return unfit;
      const { signed, keys } = await makeGenesis(this.env.MASTER_KEY, tenant, host, key);
      const published = publishedOf(0, signed);
      this.#store.setGenesisDraft(recovery, published, keys);
      return { ok: true, proposal: proposalFor(published) };
    });
  }

  /**
   * Writes and publishes the tenant's genesis, once: a second call answers the same registry.
   *
   * @param recovery the recovery key and its signature over the draft, hex
   * @throws what R2 and D1 throw; the next call publishes what this one stored
   */
  create(
    tenant: string,
    host: string,
    recovery: { readonly key: string; readonly signature: string } | null = null,
  ): Promise<({ readonly ok: true } & RegistryState) | RegistryRefusal> {
    return this.#serial(async () => {
      if (this.#store.records().length === 0) {
        const stored = recovery === null ? await this.#plain(tenant, host) : this.#drafted(recovery);
        if (stored !== null) return stored;
      }
      await completeRecords(this.env, tenant, this.#store);
      const bound = this.#store.chain().recoveryKey;
      if ((bound === null ? null : toHex(bound)) !== (recovery?.key ?? null)) {
        return refused("registry-moved", "the tenant exists with another recovery key");
      }
      return { ok: true, ...(await this.state()) };
    });
  }

  /**
   * The published records. Throws `RunsealError("no-registry")` for a tenant that does not exist.
   *
   * @param compared for whoever judges by them whether a head was signed: throws while they could not be compared with R2.
   *   Else the last state known serves better than none; no key is handed out on it
   */
  async state(compared = false): Promise<RegistryState> {
    await this.#comparedOnce().catch((error: unknown) => {
      if (compared) throw error;
    });
    const records = this.#store.entries();
    const [genesis] = records;
    if (genesis === undefined) throw new RunsealError("no-registry", "the tenant has no registry");
    return {
      registryId: toHex(nativeCrypto.sha256(fromBase64(genesis.record))),
      epoch: epochInEffect(records, Date.now()),
      records,
    };
  }

  /** The wrapped key that holds a managed role at the epoch; only the object that signs opens it. */
  async managedKey(role: ManagedRole, epoch: number): Promise<WrappedKey> {
    await this.#comparedOnce();
    if (epoch > (this.#store.entries().at(-1)?.epoch ?? -1)) {
      throw new RunsealError("no-registry", "the registry has no such epoch");
    }
    return this.#managedKey(role, epoch);
  }

  /** The record that would add the key, for the key to sign. Nothing is stored. */
  proposeKey(role: OpenRole, key: string): ProposalOutcome {
    const chain = this.#store.chain();
    const bytes = fromHex(key, 32);
    const unfit = unfitKey(chain, bytes, "/key");
    if (unfit !== null) return unfit;
    const record = nextRecord(chain, OPS.add, [{ role: ROLES[role], key: bytes }]);
    return { ok: true, proposal: proposalOf(record) };
  }

  /** Adds the key that signed the record. The same record again gets the first answer. */
  addKey(tenant: string, by: string, record: string, signature: string): Promise<RecordOutcome> {
    return this.#change(tenant, async (chain) => {
      const repeated = this.#repeated(record);
      if (repeated !== null) return repeated;
      const proposal = readProposal(chain, OPS.add, record, signature, null);
      if ("ok" in proposal) return proposal;
      if (!OPEN_ROLES.some((role) => ROLES[role] === proposal.added.role)) {
        return refused("invalid-record", "keys of this role are not added by themselves", "/record");
      }
      const audit = await this.#open(tenant, "audit", chain);
      const signed = countersign(proposal.bytes, [audit], [proposal.signature]);
      return this.#commit(tenant, chain, signed, by, []);
    });
  }

  /** Retires a key of an open role. A key that was retired gets the record that did it. */
  retireKey(tenant: string, by: string, key: string): Promise<RecordOutcome> {
    return this.#change(tenant, async (chain) => {
      const bytes = fromHex(key, 32);
      const role = OPEN_ROLES.find((one) => chain.active(ROLES[one]).some((held) => equalBytes(held, bytes)));
      if (role === undefined) return this.#retirementOf(bytes);
      const record = nextRecord(chain, OPS.retire, [], [{ role: ROLES[role], key: bytes }]);
      const signed = signRecord(nativeCrypto, record, [await this.#open(tenant, "audit", chain)]);
      return this.#commit(tenant, chain, signed, by, []);
    });
  }

  /** Replaces a managed key by a new one; both sign. */
  rotate(tenant: string, by: string, role: ManagedRole): Promise<RecordOutcome> {
    return this.#change(tenant, async (chain) => {
      const pending = this.#store
        .entries()
        .some(({ record, effectiveAt }) => effectiveAt > Date.now() && isRotation(record, ROLES[role]));
      if (pending)
        return refused("registry-pending", "rotate again once effective_at of the last one has passed");
      const old = await this.#open(tenant, role, chain);
      const { signer, wrapped } = await createManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, role);
      const record = nextRecord(
        chain,
        OPS.rotate,
        [{ role: ROLES[role], key: signer.publicKey }],
        [{ role: ROLES[role], key: old.publicKey }],
      );
      return this.#commit(tenant, chain, signRecord(nativeCrypto, record, [old, signer]), by, [wrapped]);
    });
  }

  /** Makes a new managed key, and the record by which the offline recovery key puts it in the place of the old one. */
  proposeRecovery(tenant: string, role: ManagedRole): Promise<ProposalOutcome> {
    return this.#serial(async () => {
      const chain = this.#store.chain();
      if (chain.recoveryKey === null) return refused("no-recovery-key", "genesis binds no recovery key");
      const [old] = chain.active(ROLES[role]);
      if (old === undefined) throw new RunsealError("no-registry", "no key holds the role");
      const { signer, wrapped } = await createManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, role);
      this.#store.setCandidate(wrapped);
      const record = nextRecord(
        chain,
        OPS.recover,
        [{ role: ROLES[role], key: signer.publicKey }],
        [{ role: ROLES[role], key: old }],
      );
      return { ok: true, proposal: proposalOf(record) };
    });
  }

  /** Takes a recovery that the recovery key signed. The same record again gets the first answer. */
  recover(tenant: string, by: string, record: string, signature: string): Promise<RecordOutcome> {
    // Entries of those before it may wait for the very key that it brings.
    const change = async (chain: RegistryChain, complete: boolean): Promise<RecordOutcome> => {
      const repeated = this.#repeated(record);
      if (repeated !== null) return repeated;
      if (chain.recoveryKey === null) return refused("no-recovery-key", "genesis binds no recovery key");
      const proposal = readProposal(chain, OPS.recover, record, signature, chain.recoveryKey);
      if ("ok" in proposal) return proposal;
      const wrapped = this.#store.candidate(toHex(proposal.added.key));
      if (wrapped === null) {
        return refused("registry-moved", "the record's new key was not proposed, or a later one was");
      }
      const added = await openManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, wrapped);
      const signed = countersign(proposal.bytes, [added], [proposal.signature]);
      if (!complete && !recoversAudit(signed)) return unavailable();
      return this.#commit(tenant, chain, signed, by, [wrapped]);
    };
    return this.#change(tenant, change, STAGES.published);
  }

  /** Takes up a record that got stuck on its way into effect. */
  override async alarm(): Promise<void> {
    // An alarm may not know the object's name; genesis does.
    const tenant = this.#store.chain().origin.split("/t/")[1];
    if (tenant !== undefined) await this.#serial(() => this.#complete(tenant));
  }

  /** Throws `RunsealError("key-lost")` where the key that holds the role at the epoch is not here any more. */
  #managedKey(role: ManagedRole, epoch: number): WrappedKey {
    const wrapped = this.#store.managedKey(role, epoch);
    const records = this.#store.records().map(({ published }) => published);
    requireHolder(records, role, epoch, wrapped);
    return wrapped;
  }

  /** Compares the registry with R2, once a start: its storage may have been set back. Throws what R2 throws. */
  #comparedOnce(): Promise<void> {
    this.#compared ??= takeBack(this.env.MIRROR, this.#store).catch((error: unknown) => {
      this.#compared = null;
      throw error;
    });
    return this.#compared;
  }

  #serial<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#last.then(work, work);
    this.#last = next.catch(() => {});
    return next;
  }

  /**
   * A change of the chain, once every record before is in effect or waits only for its time.
   *
   * @param past how far those before must have got
   */
  #change(
    tenant: string,
    work: (chain: RegistryChain, complete: boolean) => Promise<RecordOutcome>,
    past: Stage = STAGES.recorded,
  ): Promise<RecordOutcome> {
    return this.#serial(async () => {
      try {
        await this.#comparedOnce();
      } catch {
        return unavailable();
      }
      const complete = await this.#complete(tenant);
      if (this.#store.records().some(({ stage }) => stage < past)) return unavailable();
      try {
        return await work(this.#store.chain(), complete);
      } catch (error) {
        if (!(error instanceof RunsealError) || !["key-lost", "bad-key"].includes(error.code)) throw error;
        return refused("registry-unavailable", `${error.message}: recover the audit key first`);
      }
    });
  }

  /** Whether no record is stuck; where one is, the alarm tries again. */
  async #complete(tenant: string): Promise<boolean> {
    if (this.#store.records().every(({ stage }) => stage === STAGES.recorded)) return true;
    // Set before anything is tried: the object may stop at any point.
    await this.ctx.storage.setAlarm(Date.now() + RETRY_MS);
    try {
      await completeRecords(this.env, tenant, this.#store);
      await this.ctx.storage.deleteAlarm();
      return true;
    } catch (error) {
      logEvent("registry-stuck", { tenant, error: error instanceof Error ? error.message : "unknown" });
      return false;
    }
  }

  async #commit(
    tenant: string,
    chain: RegistryChain,
    signed: SignedRecord,
    by: string,
    keys: readonly WrappedKey[],
  ): Promise<RecordOutcome> {
    // Its entry is signed by the audit key. What can't have one would keep the record that recovers the key from its place.
    if (!recoversAudit(signed)) await this.#open(tenant, "audit", chain);
    let epoch: number;
    try {
      // The rules that everybody verifies by have the last word on what is published.
      epoch = chain.add(signed).epoch;
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      return refused("invalid-record", error.message, "/record");
    }
    this.#store.add(publishedOf(epoch, signed), by, keys);
    if (!(await this.#complete(tenant))) return unavailable();
    return this.#answer(epoch, false);
  }

  #answer(epoch: number, repeated: boolean): RecordOutcome {
    const entry = this.#store.entries()[epoch];
    return entry === undefined ? unavailable() : { ok: true, entry, repeated };
  }

  #repeated(record: string): RecordOutcome | null {
    const there = this.#store.records().find(({ published }) => published.record === record);
    return there === undefined || there.stage !== STAGES.recorded
      ? null
      : this.#answer(there.published.epoch, true);
  }

  #retirementOf(key: Uint8Array): RecordOutcome {
    for (const { published } of this.#store.records()) {
      const { op, epoch, retire } = decodeRecord(fromBase64(published.record));
      if (op === OPS.retire && retire.some((binding) => equalBytes(binding.key, key))) {
        return this.#answer(epoch, true);
      }
    }
    return refused("not-found", "no key that can be retired is registered under this name");
  }

  /** The signer of a managed role at the latest epoch, which may not be in effect yet. */
  #open(tenant: string, role: ManagedRole, chain: RegistryChain): Promise<Signer> {
    const wrapped = this.#managedKey(role, chain.epoch);
    return openManagedKey(nativeCrypto, this.env.MASTER_KEY, tenant, wrapped);
  }

  async #plain(tenant: string, host: string): Promise<null> {
    const { signed, keys } = await makeGenesis(this.env.MASTER_KEY, tenant, host, null);
    this.#store.add(publishedOf(0, signed), null, keys);
    return null;
  }

  /** Stores the draft with the recovery key's signature. */
  #drafted(recovery: { readonly key: string; readonly signature: string }): RegistryRefusal | null {
    const draft = this.#store.genesisDraft(recovery.key);
    if (draft === null) return refused("registry-moved", "no genesis was drafted with this recovery key");
    const { bytes, signatures } = signedRecordOf(draft.published);
    const signature = { key: fromHex(recovery.key, 32), signature: fromHex(recovery.signature, 64) };
    const signed = { bytes, signatures: sortedSignatures([...signatures, signature]) };
    try {
      this.#store.chain().add(signed);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      return refused("invalid-record", "the signature does not verify", "/recovery_signature");
    }
    this.#store.add(publishedOf(0, signed), null, draft.keys);
    return null;
  }
}

function unavailable(): RegistryRefusal {
  return refused("registry-unavailable", "the record is not in effect yet: it goes on by itself");
}

function proposalFor({ record }: PublishedRecord): Proposal {
  return proposalOf(decodeRecord(fromBase64(record)));
}
