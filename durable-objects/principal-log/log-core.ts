/**
 * What lives in one log's Durable Object between events: the state in memory, how it starts, how it is taken over from
 * storage again, and one commit. principal-log.ts is the RPC surface over it.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../../workers/env.ts";
import { TileTree } from "../tile-store/tile-tree.ts";
import { AuditKeys } from "./audit-keys.ts";
import type { CommitContext, CommitResult, KnownEntry, PendingRequest } from "./commit.ts";
import { commitGroup } from "./commit.ts";
import { CommitQueue } from "./commit-queue.ts";
import { leavesOf } from "./evidence.ts";
import type { Work } from "./flush-alarm.ts";
import { FlushAlarm } from "./flush-alarm.ts";
import { headView, restatedHead } from "./head-signing.ts";
import { IdIndex } from "./id-index.ts";
import { AnswerMemory } from "./idempotency.ts";
import { lookUpIds } from "./look-up.ts";
import type { OpenLog } from "./open-log.ts";
import { openLog } from "./open-log.ts";
import { Recovery, RefillPending } from "./recovery.ts";
import { emptyHead, idReader, loadIds, loadPartialTile } from "./start.ts";
import type { LogHealth } from "./stats.ts";
import { logHealth } from "./stats.ts";
import type { Progress, StoredHead } from "./storage.ts";
import { LogStorage } from "./storage.ts";
import type { HeadView, LogIdentity, Unavailable } from "./types.ts";
import { logObjectName, unavailable } from "./types.ts";

export class LogCore {
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly keys: AuditKeys;
  readonly alarm: FlushAlarm;
  readonly answers: AnswerMemory;
  readonly recovery: Recovery;
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
  readonly #durable: DurableObjectStorage;
  #open: OpenLog | null = null;
  #head: StoredHead | null = null;
  #view: { readonly head: StoredHead; readonly view: HeadView } | null = null;
  #ids: IdIndex;
  #progress: Progress;
  #syncing: Promise<void> | null = null;
  /** Whether the generation is known to be sealed: no head is signed any more. */
  #sealed = false;

  constructor(ctx: DurableObjectState, env: Env) {
    this.#env = env;
    this.#durable = ctx.storage;
    this.#name = ctx.id.name;
    this.storage = new LogStorage(ctx.storage, nativeCrypto);
    this.tree = new TileTree(this.storage.tiles, nativeCrypto);
    this.#ids = new IdIndex(idReader(this.storage));
    this.answers = new AnswerMemory(ctx.storage.sql, this.tree);
    this.keys = new AuditKeys(this.storage, env);
    this.alarm = new FlushAlarm(ctx.storage, ctx.id.name ?? "");
    this.recovery = new Recovery(ctx.storage.sql, {
      storage: this.storage,
      keys: this.keys,
      env,
      log: () => this.requireOpen(),
      reload: () => this.#reload(),
    });
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

  /** Resolves once all that was committed up to now is on disk. The requests of one commit share one call. */
  durable(): Promise<void> {
    this.#syncing ??= this.#durable.sync();
    return this.#syncing;
  }

  /** D1 lacks entries that it once confirmed: they are flushed again, and readers of the whole tenant wait for them. */
  async fellBack(): Promise<void> {
    const { outbox, listing } = this.requireOpen();
    await outbox.lookAgain();
    if (outbox.lag > 0 && this.stopped() === null) await Promise.all([listing.touch(), this.alarm.arm()]);
  }

  #setIdentity(identity: LogIdentity): OpenLog {
    this.#open = openLog(identity, {
      env: this.#env,
      durable: this.#durable,
      storage: this.storage,
      tree: this.tree,
      recovery: this.recovery,
      leaves: this.leaves,
      head: () => this.#head,
      progress: () => this.#progress,
      progressed: (progress) => this.#setProgress(progress),
      stopped: () => this.stopped(),
      seqsOf: (ids) => this.#seqsOf(ids),
      forgottenUpTo: () => this.#ids.forgottenUpTo,
    });
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
    const { past: _past, ...identity } = log;
    const open = this.#open ?? this.#setIdentity(identity);
    if (open.identity.registryId !== log.registryId || open.identity.host !== log.host) {
      throw new RunsealError("wrong-log", "the request names another registry or host");
    }
    const stopped = this.stopped();
    if (stopped !== null) return log.past === true ? this.#prepareSealed(log, stopped) : stopped;
    try {
      await this.keys.ensure(log.tenant, epoch, this.#head?.epoch ?? null);
    } catch {
      return unavailable("registry-unavailable", "the tenant's audit key could not be read");
    }
    try {
      if (this.#head === null) this.#createHead(identity);
    } catch {
      return unavailable("storage-failed", "the log could not be opened");
    }
    try {
      await this.requireOpen().mirror.compareOnce();
    } catch (error) {
      if (error instanceof RefillPending) {
        void this.alarm.arm();
        return unavailable("log-refilling", "the log takes back entries that its storage lost", 2);
      }
      const detail = "the mirrored head could not be read; a log starts only after it was";
      return unavailable("mirror-unavailable", detail, 2);
    }
    if (this.recovery.hasNews) void this.alarm.arm();
    return this.stopped();
  }

  /** A sealed log answers those who know that its generation is past. */
  async #prepareSealed(log: LogIdentity, stopped: Unavailable): Promise<Unavailable | null> {
    const head = this.#head;
    if (head === null || this.recovery.sealed() === null) return stopped;
    this.#sealed = true;
    try {
      await this.keys.ensure(log.tenant, head.epoch, head.epoch);
    } catch {
      // Nothing is signed any more: its public key is enough.
      if (!this.keys.isKnown(head.epoch))
        return unavailable("registry-unavailable", "the tenant's audit key could not be read");
    }
    return null;
  }

  stopped(): Unavailable | null {
    const detail = this.storage.standingAlarm("stopped");
    if (detail === null) return null;
    const { tenant = "", name = "" } = this.#open?.identity ?? {};
    // Its principal has another log by now, or soon: whoever asks again finds it.
    return this.recovery.sealed() === null
      ? unavailable("log-stopped", detail, 3600)
      : { ...unavailable("log-stopped", "the log's generation is sealed", 1), moved: { tenant, name } };
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
    if (before === null || before.size !== size || this.#ids.lastSeq !== size) {
      const { flushedSeq } = this.#progress;
      this.#ids = loadIds(this.storage, size, flushedSeq, head?.futureUntil ?? 0, this.#ids.evictions + 1);
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

  /** Sequence numbers of those entries that the log has. Throws what D1 throws. */
  async #seqsOf(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    // Memory is asked once: while D1 is, a commit may make it forget what it knew.
    const remembered = ids.map((id) => [id, this.#ids.get(id)] as const);
    const forgotten = remembered.filter(([, seq]) => seq === undefined).map(([id]) => id);
    const found = forgotten.length === 0 ? null : await this.#lookUp(forgotten);
    const entries = remembered.map(([id, seq]) => [id, seq ?? found?.get(id)?.seq] as const);
    return new Map(entries.filter((pair): pair is [string, number] => pair[1] !== undefined));
  }

  /** One transaction for all the requests; then memory takes over what it changed. */
  #commit(group: readonly PendingRequest[]): CommitResult {
    const { origin, logId, outbox } = this.requireOpen();
    this.#ids.makeRoom(group.reduce((sum, { ids }) => sum + ids.length, 0));
    const result = this.storage.transaction(() => {
      const base = this.#head;
      if (base === null || !this.storage.holds(base)) {
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
      const committed = commitGroup(context, base, group);
      this.#rememberAnswers(group, committed, context.nowMs);
      return committed;
    });
    // What was asked for before does not cover this commit.
    this.#syncing = null;
    if (result.stored.length > 0) {
      this.#head = result.head;
      this.tree.adopt(result.head.size, result.partial);
      const recordedAtMs = Number(result.head.recordedAt / 1_000_000n);
      for (const [id, seq] of result.stored) this.#ids.add(id, seq, recordedAtMs);
      this.#ids.setFutureUntil(result.head.futureUntil);
      this.#ids.evict(this.#progress.flushedSeq);
      outbox.added(result.storedBytes);
      this.keys.forgetBefore(result.head.epoch);
      void this.alarm.arm();
    }
    return result;
  }

  /** The answers of requests with an Idempotency-Key, in the transaction of their entries. */
  #rememberAnswers(group: readonly PendingRequest[], { outcomes, head }: CommitResult, nowMs: number): void {
    for (const [i, { ids, idempotency }] of group.entries()) {
      if (idempotency === undefined) continue;
      const view = headView(head, this.keys, this.#progress.mirroredSize);
      this.answers.remember(idempotency, { ids, items: outcomes[i] ?? [], head: view }, nowMs);
    }
  }

  #setProgress(change: Partial<Progress>): void {
    // A D1 that was set back holds again what was erased there.
    const { flushedSeq = this.#progress.flushedSeq } = change;
    if (flushedSeq < this.#progress.flushedSeq) this.#open?.content.indexFellBack();
    const next = { ...this.#progress, ...change };
    this.#progress = { ...next, confirmedSeq: Math.max(next.confirmedSeq, next.flushedSeq) };
    this.storage.setProgress(this.#progress);
  }

  /** How the log stands. */
  health(): LogHealth {
    return logHealth(this.storage, this.#open?.outbox ?? null, Date.now());
  }

  /** What the alarm has to do: D1 or R2 lack something of the log, or content is to be sealed, erased or pruned. */
  leftToDo(): Work[] {
    const size = this.#head?.size ?? 0;
    const left: Work[] = [];
    if (this.#progress.flushedSeq < size && !this.isAtOdds()) left.push("index");
    if (this.#progress.mirroredSize < size && this.stopped() === null) left.push("mirror");
    const quiet = this.#progress.flushedSeq >= size;
    if (this.recovery.isRefilling || this.#open?.content.hasWork(quiet) === true) left.push("other");
    return left;
  }

  /** A log that is stopped, and that D1 contradicts as well: to flush it again and again changes nothing. */
  isAtOdds(): boolean {
    return this.stopped() !== null && this.storage.standingAlarm("index-conflict") !== null;
  }

  /** The head for a reader: after a rotation that no commit came to yet, it is signed once more. */
  headView(): HeadView {
    const known = this.#head;
    if (known !== null && (this.#sealed || !this.keys.changedSince(known.epoch))) return this.#viewOf(known);
    const stored = this.storage.head();
    const { origin } = this.requireOpen();
    const final = stored === null || this.#sealed;
    const restated = final ? null : restatedHead(nativeCrypto, origin, stored, this.keys);
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

  /** The view of the head in memory, made once: all that one commit answers share it. */
  #viewOf(head: StoredHead): HeadView {
    const { mirroredSize } = this.#progress;
    if (this.#view?.head !== head || this.#view.view.mirroredSize !== mirroredSize)
      this.#view = { head, view: headView(head, this.keys, mirroredSize) };
    return this.#view.view;
  }
}
