/**
 * What a log does when its mirror contradicts it: it takes back what its storage lost, or it stops; and once it is
 * stopped, the operator seals it. Each of these is told to the tenant's system log, from the alarm.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { logPrefix } from "../../shared/entry/log-id.ts";
import { RegistryChain } from "../../shared/registry/chain.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import { appendSystemEntry } from "../../workers/logs/system-log.ts";
import { signedRecordOf } from "../key-registry/types.ts";
import type { AuditKeys } from "./audit-keys.ts";
import { readIndexedState } from "./flush.ts";
import { signHead } from "./head-signing.ts";
import type { RefillReport } from "./refill.ts";
import { headOfNote, refill } from "./refill.ts";
import { RefillStore } from "./refill-store.ts";
import type { HeadEvidence, SealRecord, StopRecord } from "./stop-store.ts";
import { StopStore } from "./stop-store.ts";
import type { LogStorage, StoredHead } from "./storage.ts";
import type { LogIdentity } from "./types.ts";

/** The log takes entries back, and is not through with it: the alarm goes on. */
export class RefillPending extends Error {
  override readonly name = "RefillPending";
}

/** How a mirror contradicts a log. */
export interface Contradiction {
  readonly kind: StopRecord["kind"];
  readonly detail: string;
  /** The mirrored checkpoint, where it is that. */
  readonly checkpoint: string | null;
}

export interface RecoveryContext {
  readonly storage: LogStorage;
  readonly keys: AuditKeys;
  readonly env: Env;
  readonly log: () => {
    readonly identity: LogIdentity;
    readonly origin: string;
    readonly logId: Uint8Array;
  };
  /** Takes memory over from storage. */
  readonly reload: () => void;
}

export class Recovery {
  readonly #context: RecoveryContext;
  readonly #store: StopStore;
  readonly #refills: RefillStore;
  /** Whether there may be something to tell. */
  #untold: boolean;
  #refilling = false;

  constructor(sql: SqlStorage, context: RecoveryContext) {
    this.#context = context;
    this.#store = new StopStore(sql);
    this.#refills = new RefillStore(sql);
    this.#untold = this.#store.notices().length > 0;
  }

  /** The signed head that a refill was begun for, in this start or an earlier one, and is not through with; else null. */
  get begunFor(): string | null {
    const head = this.#context.storage.head();
    return (head === null ? null : this.#refills.read(head.size))?.note || null;
  }

  /** Whether the alarm has to go on with a refill. */
  get isRefilling(): boolean {
    return this.#refilling;
  }

  sealed(): SealRecord | null {
    return this.#store.sealed();
  }

  /** What was found when the log was stopped; null where it runs. */
  stopped(): StopRecord | null {
    const { storage } = this.#context;
    const detail = storage.standingAlarm("stopped");
    if (detail === null) return null;
    const head = evidenceOf(storage.head());
    return this.#store.stopped() ?? { kind: "fork", detail, atMs: 0, stored: head, mirrored: null };
  }

  /**
   * Takes back what the mirrored head covers and the log lacks. Throws `RefillPending` where that takes longer, and what
   * D1, R2 and the registry throw.
   *
   * @returns null where the log has it all; else why it can't
   */
  async refill(checkpoint: string): Promise<string | null> {
    const { storage, keys, env, log, reload } = this.#context;
    const { identity, origin, logId } = log();
    const head = storage.head();
    if (head === null) return "the log has no head";
    const outcome = await refill(
      {
        crypto: nativeCrypto,
        storage,
        store: this.#refills,
        db: env.DB,
        bucket: env.MIRROR,
        prefix: logPrefix(identity),
        origin,
        logId,
        registry: () => registryOf(env, identity.tenant),
        indexed: () => readIndexedState({ db: env.DB, logId: toHex(logId) }),
        ensureKey: (epoch) => keys.ensure(identity.tenant, epoch, head.epoch),
        sign: (size, root) => {
          const { signer, epoch } = keys.current();
          const retiring = keys.retiring(head.epoch);
          return { epoch, checkpoint: signHead(nativeCrypto, origin, signer, retiring, { size, root }) };
        },
      },
      head,
      checkpoint,
    );
    this.#refilling = outcome.kind === "more";
    if (outcome.kind === "more") throw new RefillPending();
    if (outcome.kind === "refused") return outcome.detail;
    reload();
    this.#refilled(outcome.report, head, checkpoint);
    return null;
  }

  #refilled(report: RefillReport, before: StoredHead, checkpoint: string): void {
    const { storage, log } = this.#context;
    const { identity } = log();
    const { from, to, withoutContent } = report;
    logEvent("log-refilled", { principal: identity.principal, from, to, without_content: withoutContent });
    const mirrored = headOfNote(checkpoint);
    this.#tell(`log.refilled.${this.#logId()}.${from}.${to}`, "log.refilled", {
      ...this.#names(),
      from,
      to,
      without_content: withoutContent,
      stored_head: headRef(evidenceOf(before)),
      ...(mirrored === null ? {} : { mirrored_head: { ...mirrored, checkpoint } }),
      head: headRef(evidenceOf(storage.head())),
    });
  }

  /** Stops the log: it answers nobody any more. The first reason stands. */
  stop({ kind, detail, checkpoint }: Contradiction): void {
    const { storage } = this.#context;
    if (storage.standingAlarm("stopped") !== null) return;
    const stored = evidenceOf(storage.head());
    const mirroredHead = checkpoint === null ? null : headOfNote(checkpoint);
    const mirrored = checkpoint === null || mirroredHead === null ? null : { ...mirroredHead, checkpoint };
    storage.transaction(() => {
      storage.raiseAlarm("stopped", detail);
      this.#store.setStopped({ kind, detail, atMs: Date.now(), stored, mirrored });
      // What a refill put behind the head is none of the log's.
      storage.dropAfter(stored?.size ?? 0);
      this.#refills.clear();
      this.#tell(`log.stopped.${this.#logId()}`, "log.stopped", {
        ...this.#names(),
        reason: detail.slice(0, 256),
        ...(stored === null ? {} : { stored_head: headRef(stored) }),
        ...(mirrored === null ? {} : { mirrored_head: headRef(mirrored) }),
      });
    });
  }

  /** Ends a stopped log's generation; the same again answers the first seal. Null where the log is not stopped. */
  seal(reason: string): SealRecord | null {
    const sealed = this.#store.sealed();
    if (sealed !== null) return sealed;
    const stopped = this.stopped();
    if (stopped === null) return null;
    this.#context.storage.transaction(() => {
      this.#store.setStopped(stopped);
      this.#store.setSealed({ ...stopped, reason, sealedAtMs: Date.now() });
    });
    return this.#store.sealed();
  }

  get hasNews(): boolean {
    return this.#untold;
  }

  /** Writes what is to be told to the tenant's system log. Never throws; false: to be tried again. */
  async tell(): Promise<boolean> {
    if (!this.#untold) return true;
    const { env, log } = this.#context;
    const { identity } = log();
    try {
      const tenant = await env.TENANT_DIRECTORY.getByName(identity.tenant).tenant();
      if (tenant === null) return true;
      for (const notice of this.#store.notices()) {
        await appendSystemEntry(env, tenant, notice);
        this.#store.dropNotice(notice.id);
      }
      this.#untold = false;
      return true;
    } catch (error) {
      logEvent("notice-failed", { principal: identity.principal });
      // While the system log itself stands still nothing can be written there: the next start tries again.
      const stopped = error instanceof Error && "code" in error && error.code === "log-stopped";
      if (stopped) this.#untold = false;
      return stopped;
    }
  }

  #tell(id: string, kind: string, action: Readonly<Record<string, unknown>>): void {
    this.#store.addNotice({ id, kind, action });
    this.#untold = true;
  }

  #logId(): string {
    return toHex(this.#context.log().logId);
  }

  #names(): { log_id: string; principal_id: string; generation: number } {
    const { principal, generation } = this.#context.log().identity;
    return { log_id: this.#logId(), principal_id: principal, generation };
  }
}

/** A stored head as evidence. */
export function evidenceOf(head: StoredHead | null): HeadEvidence | null {
  if (head === null) return null;
  const { size, edge, lastHash, checkpoint } = head;
  return { size, root: toHex(edge.root()), hash: toHex(lastHash), checkpoint };
}

/** A head as an entry names it. */
export function headRef(head: HeadEvidence | null): Readonly<Record<string, unknown>> | undefined {
  if (head === null) return undefined;
  const { size, root, hash, checkpoint } = head;
  return { size, root, ...(hash === undefined ? {} : { seq: size, hash }), checkpoint };
}

/** The tenant's registry, verified, to judge a head by. Throws what the registry throws. */
export async function registryOf(env: Env, tenant: string): Promise<RegistryChain> {
  const chain = new RegistryChain(nativeCrypto);
  const { records } = await env.KEY_REGISTRY.getByName(tenant).state(true);
  for (const record of records) chain.add(signedRecordOf(record));
  return chain;
}
