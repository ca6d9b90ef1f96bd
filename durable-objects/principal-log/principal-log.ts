/**
 * One principal's log (design sections 1, 2 and 4): a Durable Object that orders, hashes, stores and signs. This file
 * is its RPC surface and its life: start, queue, alarm. The work is done by its neighbours: commit.ts, flush.ts,
 * mirror.ts.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { MAX_COMMIT_BYTES, MAX_COMMIT_ENTRIES, MAX_QUEUE_BYTES } from "../../shared/entry/limits.ts";
import { computeLogId, formatOrigin, logPrefix } from "../../shared/entry/log-id.ts";
import { RunsealError } from "../../shared/errors.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import { AuditKeys } from "./audit-keys.ts";
import type { CommitContext, CommitResult, KnownEntry, PendingRequest } from "./commit.ts";
import { commitGroup, storedEntry } from "./commit.ts";
import { consistencyPath, inclusionPaths, rangeEvidence, tileBytes } from "./evidence.ts";
import type { FlushOutcome } from "./flush.ts";
import { flushToIndex } from "./flush.ts";
import { decodeFrame } from "./frame.ts";
import { IdIndex } from "./id-index.ts";
import { lookUpIds } from "./look-up.ts";
import { Mirror } from "./mirror-keeper.ts";
import { outboxState } from "./outbox.ts";
import { emptyHead, loadIds, loadPartialTile } from "./start.ts";
import type { Progress, StoredHead } from "./storage.ts";
import { LogStorage } from "./storage.ts";
import { TileTree } from "./tree.ts";
import type {
  AppendOutcome,
  AppendRequest,
  BarrierOutcome,
  ConsistencyOutcome,
  HeadOutcome,
  HeadView,
  InclusionOutcome,
  ItemOutcome,
  LogIdentity,
  RangeOutcome,
  TileOutcome,
  Unavailable,
} from "./types.ts";
import { logObjectName, unavailable } from "./types.ts";

/** Milliseconds between a commit and the flush and mirror that follow it. */
const FLUSH_DELAY_MS = 250;
/** Longest pause between two attempts of a failing flush. */
const MAX_BACKOFF_MS = 60_000;

interface Waiting extends PendingRequest {
  readonly bytes: number;
  readonly evictions: number;
  readonly resolve: (outcome: readonly ItemOutcome[] | Unavailable | "look-up-again") => void;
}

/** What a log knows once its identity is. */
interface OpenLog {
  readonly identity: LogIdentity;
  readonly origin: string;
  readonly logId: Uint8Array;
}

export class PrincipalLog extends DurableObject<Env> {
  readonly #storage: LogStorage;
  readonly #tree: TileTree;
  readonly #keys: AuditKeys;
  #open: OpenLog | null = null;
  #mirror: Mirror | null = null;
  #head: StoredHead | null = null;
  #ids = new IdIndex(0);
  #progress: Progress;
  readonly #queue: Waiting[] = [];
  #queuedBytes = 0;
  #outboxBytes = 0;
  #drainScheduled = false;
  #alarmArmed = false;
  #failures = 0;
  #flushing: Promise<FlushOutcome> | null = null;
  /** Version under which the tenant's directory lists the log as dirty; null while it need not. */
  #dirty: number | null = null;
  /** Versions only grow, over restarts too: they are times in milliseconds, or one more than the last. */
  #version = 0;
  #touched: Promise<void> | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#storage = new LogStorage(ctx.storage, nativeCrypto);
    this.#tree = new TileTree(this.#storage, nativeCrypto);
    this.#keys = new AuditKeys(this.#storage, env);
    this.#progress = this.#storage.progress();
    const identity = this.#storage.identity();
    if (identity !== null) this.#setIdentity(JSON.parse(identity) as LogIdentity);
    this.#reload();
    void ctx.blockConcurrencyWhile(async () => {
      this.#alarmArmed = (await ctx.storage.getAlarm()) !== null;
      if (this.#isDirty()) await this.#arm(FLUSH_DELAY_MS);
    });
  }

  /** Appends entries. Resolves after they are durable: the output gate holds the answer until then. */
  async append(request: AppendRequest): Promise<AppendOutcome> {
    const refused = await this.#prepare(request.log, request.epoch);
    if (refused !== null) return refused;
    const full = outboxState(
      this.#storage,
      this.#progress,
      this.#head?.size ?? 0,
      this.#outboxBytes,
      Date.now(),
    );
    if (full !== null) return full;
    const bytes = request.frame.bytes.length + request.frame.rows.length;
    if (this.#queuedBytes + bytes > MAX_QUEUE_BYTES) {
      return unavailable("overloaded", "the log's queue is full");
    }
    const entries = decodeFrame(request.frame);
    const touched = this.#touch();
    for (;;) {
      const evictions = this.#ids.evictions;
      let known: ReadonlyMap<string, KnownEntry>;
      try {
        known = await this.#lookUp(request.ids);
      } catch {
        return unavailable(
          "index-unavailable",
          "whether an id was used before can't be told while D1 is away",
          2,
        );
      }
      const outcome = await new Promise<readonly ItemOutcome[] | Unavailable | "look-up-again">((resolve) => {
        this.#queue.push({
          ids: request.ids,
          entries,
          atomic: request.atomic,
          known,
          bytes,
          evictions,
          resolve,
        });
        this.#queuedBytes += bytes;
        this.#scheduleDrain();
      });
      if (outcome === "look-up-again") continue;
      if ("ok" in outcome) return outcome;
      await touched;
      return { ok: true, items: outcome, head: this.#headView() };
    }
  }

  /** The signed head, from storage. */
  async head(log: LogIdentity, epoch: number): Promise<HeadOutcome> {
    const refused = await this.#prepare(log, epoch);
    return refused ?? { ok: true, head: this.#headView() };
  }

  /** Makes D1 hold everything acknowledged so far, or says that it doesn't. */
  async barrier(log: LogIdentity, epoch: number): Promise<BarrierOutcome> {
    const refused = await this.#prepare(log, epoch);
    if (refused !== null) return refused;
    const size = this.#head?.size ?? 0;
    if (this.#progress.flushedSeq < size) await this.#flush();
    if (this.#storage.standingAlarm("index-conflict") !== null) {
      return unavailable("index-conflict", "the index contradicts the log: verify the log", 60);
    }
    if (this.#progress.flushedSeq < size)
      return unavailable("index-unavailable", "D1 does not hold the newest entries yet");
    return { ok: true, size };
  }

  /** Told that D1 holds less than it once confirmed: looks where D1 stands and fills it again. */
  async reindex(log: LogIdentity, epoch: number): Promise<BarrierOutcome> {
    const refused = await this.#prepare(log, epoch);
    if (refused !== null) return refused;
    this.#setProgress({ flushedSeq: 0 });
    return this.barrier(log, epoch);
  }

  /** Leaf hashes [begin, end) with what proves them under the signed head; `end` is cut to what one call carries. */
  async range(log: LogIdentity, epoch: number, begin: number, end: number): Promise<RangeOutcome> {
    const refused = await this.#prepare(log, epoch);
    return refused ?? { ok: true, ...rangeEvidence(this.#tree, this.#headView(), begin, end) };
  }

  /** Inclusion paths of entries in the tree of a size, the head's by default. */
  async inclusion(
    log: LogIdentity,
    epoch: number,
    seqs: readonly number[],
    size: number | null,
  ): Promise<InclusionOutcome> {
    const refused = await this.#prepare(log, epoch);
    if (refused !== null) return refused;
    const head = this.#headView();
    const of = size ?? head.size;
    return {
      ok: true,
      head,
      size: of,
      paths: of > head.size ? [] : inclusionPaths(nativeCrypto, this.#tree, seqs, of),
    };
  }

  /** The consistency path between two sizes, the second the head's by default. */
  async consistency(
    log: LogIdentity,
    epoch: number,
    from: number,
    to: number | null,
  ): Promise<ConsistencyOutcome> {
    const refused = await this.#prepare(log, epoch);
    if (refused !== null) return refused;
    const head = this.#headView();
    const size = to ?? head.size;
    const inOrder = from <= size && size <= head.size;
    return {
      ok: true,
      head,
      size,
      path: inOrder ? consistencyPath(nativeCrypto, this.#tree, from, size) : null,
    };
  }

  /** The bytes of a tile or bundle, as wide as its path says; null where the log has none so wide. */
  async tile(log: LogIdentity, epoch: number, tile: TileRef): Promise<TileOutcome> {
    const refused = await this.#prepare(log, epoch);
    return refused ?? { ok: true, bytes: tileBytes(this.#tree, this.#storage, this.#head?.size ?? 0, tile) };
  }

  /** Answers once a head of at least this size is in R2. */
  async mirrored(log: LogIdentity, epoch: number, size: number): Promise<HeadOutcome> {
    const refused = await this.#prepare(log, epoch);
    if (refused !== null) return refused;
    const mirror = this.#requireMirror();
    try {
      for (let attempt = 0; this.#progress.mirroredSize < size && attempt < 5; attempt++) await mirror.run();
    } catch {
      return unavailable("mirror-unavailable", "the head could not be mirrored; the entries are stored", 2);
    }
    if (this.#progress.mirroredSize >= size) return { ok: true, head: this.#headView() };
    return unavailable("mirror-unavailable", "the head is not mirrored yet; the entries are stored", 2);
  }

  /** Flushes and mirrors. At most six retries are ours by the platform, so nothing may be thrown from here. */
  override async alarm(): Promise<void> {
    this.#alarmArmed = false;
    const flushed = await this.#flush();
    let mirrored = true;
    try {
      await this.#mirror?.run();
    } catch {
      mirrored = false;
    }
    if (flushed.ok && mirrored) {
      this.#failures = 0;
      await this.#settle();
    } else {
      this.#failures += 1;
      logEvent("flush-failed", { object: this.ctx.id.name ?? "", failures: this.#failures });
    }
    if (this.#isDirty()) await this.#arm(Math.min(MAX_BACKOFF_MS, 1000 * 2 ** Math.min(this.#failures, 6)));
  }

  #setIdentity(identity: LogIdentity): OpenLog {
    const origin = formatOrigin(identity);
    const registryId = fromHex(identity.registryId, 32);
    const logId = computeLogId(nativeCrypto, registryId, identity.principal, identity.generation);
    this.#open = { identity, origin, logId };
    this.#mirror = new Mirror({
      crypto: nativeCrypto,
      storage: this.#storage,
      tree: this.#tree,
      bucket: this.env.MIRROR,
      prefix: logPrefix(identity),
      origin,
      head: () => this.#head,
      progress: () => this.#progress,
      progressed: (progress) => this.#setProgress(progress),
    });
    return this.#open;
  }

  #requireOpen(): OpenLog {
    if (this.#open === null) throw new RunsealError("log-not-open", "the log has no identity yet");
    return this.#open;
  }

  #requireMirror(): Mirror {
    if (this.#mirror === null) throw new RunsealError("log-not-open", "the log has no identity yet");
    return this.#mirror;
  }

  /** Whatever must hold before anything is answered: identity, key, first head, a mirror that agrees. */
  async #prepare(log: LogIdentity, epoch: number): Promise<Unavailable | null> {
    if (this.ctx.id.name !== undefined && this.ctx.id.name !== logObjectName(log)) {
      throw new RunsealError("wrong-log", "the request names another log");
    }
    const open = this.#open ?? this.#setIdentity(log);
    if (open.identity.registryId !== log.registryId || open.identity.host !== log.host) {
      throw new RunsealError("wrong-log", "the request names another registry or host");
    }
    const stopped = this.#storage.standingAlarm("stopped");
    if (stopped !== null) return unavailable("log-stopped", stopped, 3600);
    try {
      await this.#keys.ensure(log.tenant, Math.max(epoch, this.#head?.epoch ?? 0));
    } catch {
      return unavailable("registry-unavailable", "the tenant's audit key could not be read");
    }
    if (this.#head === null) this.#createHead(log);
    try {
      await this.#requireMirror().compareOnce();
    } catch {
      return unavailable(
        "mirror-unavailable",
        "the mirrored head could not be read; a log starts only after it was",
        2,
      );
    }
    const stoppedNow = this.#storage.standingAlarm("stopped");
    return stoppedNow === null ? null : unavailable("log-stopped", stoppedNow, 3600);
  }

  #createHead(log: LogIdentity): void {
    const { logId, origin } = this.#requireOpen();
    this.#storage.transaction(() => {
      if (this.#storage.head() !== null) return;
      this.#storage.setIdentity(JSON.stringify(log));
      this.#storage.setHead(emptyHead(nativeCrypto, origin, logId, this.#keys.current()));
    });
    this.#reload();
  }

  /** Takes over from storage everything that memory holds of the log. */
  #reload(): void {
    this.#head = this.#storage.head();
    this.#progress = this.#storage.progress();
    const size = this.#head?.size ?? 0;
    this.#tree.load(size, loadPartialTile(nativeCrypto, this.#storage, size));
    this.#ids = loadIds(this.#storage, this.#progress.flushedSeq, this.#head?.futureUntil ?? 0);
    this.#outboxBytes = this.#storage.bytesAfter(this.#progress.flushedSeq);
  }

  async #lookUp(ids: readonly string[]): Promise<ReadonlyMap<string, KnownEntry>> {
    const now = Date.now();
    const unknown = ids.filter((id) => this.#ids.get(id) === undefined && !this.#ids.isCertainlyNew(id, now));
    if (unknown.length === 0) return new Map();
    return lookUpIds(this.env.DB, toHex(this.#requireOpen().logId), unknown);
  }

  #scheduleDrain(): void {
    if (this.#drainScheduled) return;
    this.#drainScheduled = true;
    // A macrotask, so that every request that is being delivered now joins the same commit.
    setTimeout(() => {
      this.#drainScheduled = false;
      this.#drain();
    }, 0);
  }

  #drain(): void {
    const group: Waiting[] = [];
    let bytes = 0;
    let entries = 0;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const fits = bytes + next.bytes <= MAX_COMMIT_BYTES && entries + next.ids.length <= MAX_COMMIT_ENTRIES;
      if (group.length > 0 && !fits) break;
      this.#queue.shift();
      this.#queuedBytes -= next.bytes;
      if (next.known.size > 0 && next.evictions !== this.#ids.evictions) {
        next.resolve("look-up-again");
        continue;
      }
      group.push(next);
      bytes += next.bytes;
      entries += next.ids.length;
    }
    if (this.#queue.length > 0) this.#scheduleDrain();
    if (group.length > 0) this.#commit(group);
  }

  #commit(group: readonly Waiting[]): void {
    let result: CommitResult;
    try {
      result = this.#storage.transaction(() => {
        const { origin, logId } = this.#requireOpen();
        const base = this.#storage.head();
        if (base === null || base.size !== this.#head?.size) {
          throw new RunsealError("storage-inconsistent", "memory and storage disagree on the head");
        }
        const { epoch, signer } = this.#keys.current();
        const context: CommitContext = {
          crypto: nativeCrypto,
          storage: this.#storage,
          tree: this.#tree,
          ids: this.#ids,
          origin,
          logId,
          epoch: Math.max(epoch, base.epoch),
          signer,
          nowMs: Date.now(),
        };
        return commitGroup(context, base, group);
      });
    } catch (error) {
      this.#reload();
      const [only] = group;
      if (group.length === 1 && only !== undefined) {
        logEvent("commit-failed", { code: error instanceof RunsealError ? error.code : "storage" });
        only.resolve(unavailable("storage-failed", "the entries could not be stored"));
        return;
      }
      for (const request of group) this.#commit([request]);
      return;
    }
    if (result.stored.length > 0) {
      this.#head = result.head;
      this.#tree.adopt(result.head.size, result.partial);
      for (const [id, seq] of result.stored) this.#ids.add(id, seq);
      this.#ids.setFutureUntil(result.head.futureUntil);
      this.#ids.evict(
        this.#progress.flushedSeq,
        (seq) => this.#storage.segmentOf(seq)?.recordedAtMs ?? Date.now(),
      );
      this.#outboxBytes += result.storedBytes;
      void this.#arm(FLUSH_DELAY_MS);
    }
    group.forEach((request, i) => {
      request.resolve(result.outcomes[i] ?? []);
    });
  }

  /** One flush at a time; a second caller waits for the one that is under way and then for one more. */
  async #flush(): Promise<FlushOutcome> {
    if (this.#flushing !== null) await this.#flushing;
    this.#flushing ??= this.#flushOnce().finally(() => {
      this.#flushing = null;
    });
    return this.#flushing;
  }

  async #flushOnce(): Promise<FlushOutcome> {
    if (this.#open === null || this.#head === null) return { ok: true };
    const { identity, logId } = this.#open;
    const flushed = this.#progress.flushedSeq;
    const hash = flushed === 0 ? logId : leafHash(nativeCrypto, storedEntry(this.#storage, flushed).bytes);
    const outcome = await flushToIndex(
      { crypto: nativeCrypto, storage: this.#storage, db: this.env.DB, identity, logId: toHex(logId) },
      { lastSeq: flushed, lastHash: toHex(hash) },
      this.#head.size,
      (seq) => {
        this.#setProgress({ flushedSeq: seq });
        this.#outboxBytes = this.#storage.bytesAfter(seq);
      },
    );
    if (!outcome.ok)
      logEvent(outcome.reason === "conflict" ? "index-conflict" : "index-unavailable", {
        object: this.ctx.id.name ?? "",
        detail: outcome.detail,
      });
    return outcome;
  }

  #setProgress(change: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.#storage.setProgress(this.#progress);
  }

  /** Whether D1 or R2 lack something of the log. */
  #isDirty(): boolean {
    const size = this.#head?.size ?? 0;
    return this.#progress.flushedSeq < size || this.#progress.mirroredSize < size;
  }

  async #arm(delayMs: number): Promise<void> {
    if (this.#alarmArmed) return;
    this.#alarmArmed = true;
    await this.ctx.storage.setAlarm(Date.now() + delayMs);
  }

  /** Tells the tenant's directory, once per dirty spell, that D1 will lack entries of this log. */
  #touch(): Promise<void> {
    if (this.#dirty !== null && this.#touched !== null) return this.#touched;
    this.#version = Math.max(this.#version + 1, Date.now());
    this.#dirty = this.#version;
    const { identity } = this.#requireOpen();
    const directory = this.env.TENANT_DIRECTORY.getByName(identity.tenant);
    this.#touched = directory.touch(identity.principal, identity.generation, this.#dirty).catch(() => {
      // The entries are durable all the same; the next append tries again.
      this.#dirty = null;
      logEvent("touch-failed", { object: this.ctx.id.name ?? "" });
    });
    return this.#touched;
  }

  async #settle(): Promise<void> {
    if (this.#open === null || this.#progress.flushedSeq < (this.#head?.size ?? 0)) return;
    this.#version = Math.max(this.#version + 1, Date.now());
    const settled = this.#version;
    this.#dirty = null;
    const { identity } = this.#open;
    try {
      await this.env.TENANT_DIRECTORY.getByName(identity.tenant).settle(
        identity.principal,
        identity.generation,
        settled,
      );
    } catch {
      // A log that stays listed as dirty costs a reader one call and nothing else.
    }
  }

  #headView(): HeadView {
    const head = this.#storage.head();
    if (head === null) throw new RunsealError("storage-inconsistent", "the log has no head");
    return {
      size: head.size,
      hash: toHex(head.lastHash),
      root: toHex(head.edge.root()),
      checkpoint: head.checkpoint,
      epoch: head.epoch,
      key: toHex(this.#keys.current().signer.publicKey),
      mirroredSize: this.#progress.mirroredSize,
    };
  }
}
