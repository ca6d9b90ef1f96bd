/**
 * What lives in one log's Durable Object between events: the state in memory, how it starts, how it is taken over from
 * storage again, and one commit. principal-log.ts is the RPC surface over it.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { computeLogId, formatOrigin, logPrefix } from "../../shared/entry/log-id.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../../workers/env.ts";
import { LogReporter } from "../head-log/log-reporter.ts";
import { Mirror } from "../tile-store/mirror-keeper.ts";
import { TileTree } from "../tile-store/tile-tree.ts";
import { AuditKeys } from "./audit-keys.ts";
import type { CommitContext, CommitResult, KnownEntry, PendingRequest } from "./commit.ts";
import { commitGroup } from "./commit.ts";
import { CommitQueue } from "./commit-queue.ts";
import { leavesOf } from "./evidence.ts";
import { FlushAlarm } from "./flush-alarm.ts";
import { headView, restatedHead } from "./head-signing.ts";
import { IdIndex } from "./id-index.ts";
import { DirtyListing } from "./listing.ts";
import { lookUpIds } from "./look-up.ts";
import { Outbox } from "./outbox.ts";
import { emptyHead, loadIds, loadPartialTile } from "./start.ts";
import type { Progress, StoredHead } from "./storage.ts";
import { LogStorage } from "./storage.ts";
import type { HeadView, LogIdentity, Unavailable } from "./types.ts";
import { logObjectName, unavailable } from "./types.ts";

/** What a log knows once its identity is. */
export interface OpenLog {
  readonly identity: LogIdentity;
  readonly origin: string;
  readonly logId: Uint8Array;
  readonly mirror: Mirror;
  readonly outbox: Outbox;
  readonly listing: DirtyListing;
  readonly reporter: LogReporter;
}

export class LogCore {
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly keys: AuditKeys;
  readonly alarm: FlushAlarm;
  readonly queue = new CommitQueue({
    ids: () => this.#ids,
    lookUp: (ids) => this.#lookUp(ids),
    commit: (group) => this.#commit(group),
    epoch: () => this.keys.current().epoch,
    refusal: () => this.stopped(),
    reload: () => this.#reload(),
  });
  readonly leaves = (first: number, count: number) => leavesOf(this.storage, first, count);
  readonly #name: string | undefined;
  readonly #env: Env;
  #open: OpenLog | null = null;
  #head: StoredHead | null = null;
  #ids = new IdIndex(0);
  #progress: Progress;

  constructor(ctx: DurableObjectState, env: Env) {
    this.#env = env;
    this.#name = ctx.id.name;
    this.storage = new LogStorage(ctx.storage, nativeCrypto);
    this.tree = new TileTree(this.storage.tiles, nativeCrypto);
    this.keys = new AuditKeys(this.storage, env);
    this.alarm = new FlushAlarm(ctx.storage, ctx.id.name ?? "");
    this.#progress = this.storage.progress();
    const identity = this.storage.identity();
    if (identity !== null) this.#setIdentity(JSON.parse(identity) as LogIdentity);
    this.#reload();
  }

  /** The log, once it has an identity. */
  get opened(): OpenLog | null {
    return this.#open;
  }

  /** Entries in the log, as memory has it: `storage.head()` is what may be signed. */
  get size(): number {
    return this.#head?.size ?? 0;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** D1 lacks entries that it once confirmed: they are flushed again, and readers of the whole tenant wait for them. */
  async fellBack(): Promise<void> {
    const { outbox, listing } = this.requireOpen();
    await outbox.lookAgain();
    if (outbox.lag > 0) await Promise.all([listing.touch(), this.alarm.arm()]);
  }

  #setIdentity(identity: LogIdentity): OpenLog {
    const origin = formatOrigin(identity);
    const { registryId, principal, generation } = identity;
    const logId = computeLogId(nativeCrypto, fromHex(registryId, 32), principal, generation);
    const shared = {
      storage: this.storage,
      tree: this.tree,
      head: () => this.#head,
      progress: () => this.#progress,
      progressed: (progress: Partial<Progress>) => this.#setProgress(progress),
    };
    this.#open = {
      identity,
      origin,
      logId,
      mirror: new Mirror({
        ...shared,
        crypto: nativeCrypto,
        leaves: this.leaves,
        stopped: () => this.storage.standingAlarm("stopped") !== null,
        stop: (detail) => this.storage.raiseAlarm("stopped", detail),
        bucket: this.#env.MIRROR,
        prefix: logPrefix(identity),
        origin,
      }),
      outbox: new Outbox({ ...shared, db: this.#env.DB, identity, logId }),
      listing: new DirtyListing(this.#env, identity),
      reporter: new LogReporter(this.#env, this.tree, identity, logId),
    };
    return this.#open;
  }

  requireOpen(): OpenLog {
    if (this.#open === null) throw new RunsealError("log-not-open", "the log has no identity yet");
    return this.#open;
  }

  /** Whatever must hold before anything is answered: identity, key, first head, a mirror that agrees. */
  async prepare(log: LogIdentity, epoch: number): Promise<Unavailable | null> {
    if (this.#name !== undefined && this.#name !== logObjectName(log)) {
      throw new RunsealError("wrong-log", "the request names another log");
    }
    const open = this.#open ?? this.#setIdentity(log);
    if (open.identity.registryId !== log.registryId || open.identity.host !== log.host) {
      throw new RunsealError("wrong-log", "the request names another registry or host");
    }
    const stopped = this.stopped();
    if (stopped !== null) return stopped;
    try {
      await this.keys.ensure(log.tenant, epoch, this.#head?.epoch ?? null);
    } catch {
      return unavailable("registry-unavailable", "the tenant's audit key could not be read");
    }
    try {
      if (this.#head === null) this.#createHead(log);
    } catch {
      return unavailable("storage-failed", "the log could not be opened");
    }
    try {
      await this.requireOpen().mirror.compareOnce();
    } catch {
      const detail = "the mirrored head could not be read; a log starts only after it was";
      return unavailable("mirror-unavailable", detail, 2);
    }
    return this.stopped();
  }

  stopped(): Unavailable | null {
    const detail = this.storage.standingAlarm("stopped");
    return detail === null ? null : unavailable("log-stopped", detail, 3600);
  }

  #createHead(log: LogIdentity): void {
    const { logId, origin } = this.requireOpen();
    this.storage.transaction(() => {
      if (this.storage.head() !== null) return;
      this.storage.setIdentity(JSON.stringify(log));
      this.storage.setHead(emptyHead(nativeCrypto, origin, logId, this.keys.current()));
    });
    this.#reload();
  }

  /** Takes over from storage everything that memory holds of the log. */
  #reload(): void {
    const before = this.#head;
    const head = this.storage.head();
    // Until all is taken over there is no head in memory, and without one nothing is committed.
    this.#head = null;
    this.#progress = this.storage.progress();
    const size = head?.size ?? 0;
    this.tree.load(size, loadPartialTile(nativeCrypto, this.storage, size));
    // The ids change only after a commit: a transaction that threw has not touched them.
    if (before === null || before.size !== size) {
      const { flushedSeq } = this.#progress;
      this.#ids = loadIds(this.storage, flushedSeq, head?.futureUntil ?? 0, this.#ids.evictions + 1);
    }
    this.#open?.outbox.recount();
    this.#head = head;
  }

  #lookUp(ids: readonly string[]): Promise<ReadonlyMap<string, KnownEntry>> {
    return lookUpIds(
      {
        crypto: nativeCrypto,
        db: this.#env.DB,
        storage: this.storage,
        tree: this.tree,
        ids: this.#ids,
        logId: toHex(this.requireOpen().logId),
        fellBack: () => this.fellBack(),
      },
      ids,
    );
  }

  /** One transaction for all the requests; then memory takes over what it changed. */
  #commit(group: readonly PendingRequest[]): CommitResult {
    const { origin, logId, outbox } = this.requireOpen();
    const result = this.storage.transaction(() => {
      const base = this.storage.head();
      if (base === null || base.size !== this.#head?.size) {
        throw new RunsealError("storage-inconsistent", "memory and storage disagree on the head");
      }
      const { epoch, signer } = this.keys.current();
      const context: CommitContext = {
        crypto: nativeCrypto,
        storage: this.storage,
        tree: this.tree,
        ids: this.#ids,
        origin,
        logId,
        epoch,
        signer,
        retiring: this.keys.retiring(base.epoch),
        nowMs: Date.now(),
      };
      return commitGroup(context, base, group);
    });
    if (result.stored.length > 0) {
      this.#head = result.head;
      this.tree.adopt(result.head.size, result.partial);
      for (const [id, seq] of result.stored) this.#ids.add(id, seq);
      this.#ids.setFutureUntil(result.head.futureUntil);
      const recordedAt = (seq: number): number => this.storage.segmentOf(seq)?.recordedAtMs ?? Date.now();
      this.#ids.evict(this.#progress.flushedSeq, recordedAt);
      outbox.added(result.storedBytes);
      this.keys.forgetBefore(result.head.epoch);
      void this.alarm.arm();
    }
    return result;
  }

  #setProgress(change: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.storage.setProgress(this.#progress);
  }

  /** Whether D1 or R2 lack something of the log. */
  isDirty(): boolean {
    const size = this.#head?.size ?? 0;
    const unmirrored = this.#progress.mirroredSize < size && this.stopped() === null;
    return unmirrored || this.#progress.flushedSeq < size;
  }

  /** The head for a reader: after a rotation that no commit came to yet, it is signed once more. */
  headView(): HeadView {
    const stored = this.storage.head();
    const { origin } = this.requireOpen();
    const restated = stored === null ? null : restatedHead(nativeCrypto, origin, stored, this.keys);
    if (restated !== null) {
      this.storage.setHead(restated);
      this.#head = restated;
      this.keys.forgetBefore(restated.epoch);
      // R2 holds a head of this size, but not this one.
      const mirroredSize = Math.min(this.#progress.mirroredSize, Math.max(0, restated.size - 1));
      this.#setProgress({ mirroredSize });
      void this.alarm.arm();
    }
    return headView(restated ?? stored, this.keys, this.#progress.mirroredSize);
  }
}
