/**
 * One principal's log: a Durable Object that orders, hashes, stores and signs. This file
 * is its RPC surface; log-core.ts is what it is between two calls.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import type { Env } from "../../workers/env.ts";
import type {
  ErasureOutcome,
  ErasureRequest,
  ErasureTarget,
  ResolvedTarget,
} from "../content/erasure-types.ts";
import { consistencyPath, inclusionPaths, tileBytes } from "../tile-store/proofs.ts";
import { prunedBundle, rangeEvidence, storedPage } from "./evidence.ts";
import type { Work } from "./flush-alarm.ts";
import { ALARM_PACE, succeeds } from "./flush-alarm.ts";
import type { RememberedAnswer } from "./idempotency.ts";
import { LogCore } from "./log-core.ts";
import type { OpenLog } from "./open-log.ts";
import type { LogHealth } from "./stats.ts";
import { counterReport } from "./stats.ts";
import type {
  AppendOutcome,
  AppendRequest,
  BarrierOutcome,
  ConsistencyOutcome,
  HeadOutcome,
  IdempotentRequest,
  InclusionOutcome,
  LogIdentity,
  RangeOutcome,
  RefillIndexOutcome,
  SealOutcome,
  StandingOutcome,
  StoredPageOutcome,
  TileOutcome,
  Unavailable,
} from "./types.ts";
import { unavailable } from "./types.ts";

/** Flushes of some seconds each, after which a request that waits for its entries in D1 is told to come again. */
const FLUSHES_WAITED_FOR = 6;

export class PrincipalLog extends DurableObject<Env> {
  readonly #core: LogCore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const core = new LogCore(ctx, env);
    this.#core = core;
    void ctx.blockConcurrencyWhile(async () => {
      await core.alarm.start();
      await core.alarm.arm(core.leftToDo());
    });
  }

  /** Appends entries. Resolves after they are durable: the output gate holds the answer until then. */
  async append(request: AppendRequest): Promise<AppendOutcome> {
    const refused = await this.#core.prepare(request.log, request.epoch);
    if (refused !== null) return refused;
    const { idempotency } = request;
    return idempotency === undefined ? this.#append(request) : this.#appendOnce(request, idempotency);
  }

  /** The answer that a request with this Idempotency-Key got before, or is refused with; null where there is none. */
  async recall(log: LogIdentity, epoch: number, request: IdempotentRequest): Promise<AppendOutcome | null> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const known = this.#core.answers.recall(request, Date.now());
    return known === null || "ok" in known ? known : this.#kept(known, true);
  }

  /** A request with an Idempotency-Key is answered from what is stored, the first time too: so each time alike. */
  async #appendOnce(request: AppendRequest, idempotency: IdempotentRequest): Promise<AppendOutcome> {
    const { answers } = this.#core;
    const known = answers.begin(idempotency, Date.now());
    if (known !== null) return "ok" in known ? known : this.#kept(known, true);
    try {
      const outcome = await this.#append(request);
      if (!outcome.ok) return outcome;
      const stored = answers.recall(idempotency, Date.now());
      if (stored === null || "ok" in stored)
        return unavailable("storage-failed", "the answer could not be read");
      return await this.#kept(stored, false);
    } finally {
      answers.end(idempotency);
    }
  }

  async #kept({ ids, note, items, head }: RememberedAnswer, replayed: boolean): Promise<AppendOutcome> {
    await this.ctx.storage.sync();
    return (await this.#untold()) ?? { ok: true, items, head, kept: { ids, note, replayed } };
  }

  async #append(request: AppendRequest): Promise<AppendOutcome> {
    const { outbox, listing } = this.#core.requireOpen();
    const full = outbox.refusal(Date.now());
    if (full !== null) return full;
    const listed = listing.touch();
    const outcome = await this.#core.queue.add(request);
    if ("ok" in outcome) return outcome;
    // Said out loud, and not left to the platform's output gate alone: no receipt leaves before its entry is on disk.
    await this.#core.durable();
    await listed;
    const untold = await this.#untold();
    return untold ?? { ok: true, items: outcome, head: this.#core.headView() };
  }

  /** Lists the log where that failed, or where it was taken off the list before this commit. */
  async #untold(): Promise<Unavailable | null> {
    const { outbox, listing } = this.#core.requireOpen();
    if (outbox.lag === 0 || (await listing.touch())) return null;
    const detail = "the entries are stored, but the tenant's directory could not be told: send them again";
    return { ...unavailable("index-unavailable", detail, 2), stored: true };
  }

  /** The signed head, from storage. */
  async head(log: LogIdentity, epoch: number): Promise<HeadOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    return refused ?? { ok: true, head: this.#core.headView() };
  }

  /** How the log stands, from its own storage: a log that is stopped, or was never written to, answers as well. */
  health(): LogHealth {
    return this.#core.health();
  }

  /** Makes D1 hold everything acknowledged so far, or says that it doesn't. */
  async barrier(log: LogIdentity, epoch: number): Promise<BarrierOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const size = this.#core.size;
    if (this.#core.progress.flushedSeq < size) await this.#core.requireOpen().outbox.flush();
    if (this.#core.storage.standingAlarm("index-conflict") !== null) {
      return unavailable("index-conflict", "the index contradicts the log: verify the log", 60);
    }
    if (this.#core.progress.flushedSeq < size)
      return unavailable("index-unavailable", "D1 does not hold the newest entries yet");
    return { ok: true, size };
  }

  /** Told that D1 holds less than it once confirmed: looks where D1 stands and fills it again. */
  async reindex(log: LogIdentity, epoch: number): Promise<BarrierOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    await this.#core.fellBack();
    return this.barrier(log, epoch);
  }

  /** The same in steps: puts a bounded number of chunks into D1, and tells how far that is. */
  async refillIndex(log: LogIdentity, epoch: number, maxChunks: number): Promise<RefillIndexOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    await this.#core.fellBack();
    const { outbox } = this.#core.requireOpen();
    const flushed = await outbox.flushChunks(maxChunks);
    if (!flushed.ok) {
      return flushed.reason === "conflict"
        ? unavailable("index-conflict", "the index contradicts the log: verify the log", 60)
        : unavailable("index-unavailable", "D1 does not take the entries");
    }
    return { ok: true, size: this.#core.size, indexed: this.#core.progress.flushedSeq };
  }

  /** Takes all that D1 holds of the log out of it, and ends the alarm that D1 contradicts it: it is filled anew. */
  async emptyIndex(log: LogIdentity, epoch: number): Promise<BarrierOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const { outbox, listing } = this.#core.requireOpen();
    const emptied = await outbox.empty();
    if (this.#core.size > 0) await Promise.all([listing.touch(), this.#core.alarm.arm()]);
    return emptied.ok
      ? { ok: true, size: this.#core.size }
      : unavailable("index-unavailable", "D1 could not be emptied of the log");
  }

  /** Leaf hashes [begin, end) with what proves them under the signed head; `end` is cut to what one call carries. */
  async range(log: LogIdentity, epoch: number, begin: number, end: number): Promise<RangeOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    return refused ?? { ok: true, ...rangeEvidence(this.#core.tree, this.#core.headView(), begin, end) };
  }

  /** Inclusion paths of entries in the tree of a size, the head's by default. */
  async inclusion(
    log: LogIdentity,
    epoch: number,
    seqs: readonly number[],
    size: number | null,
  ): Promise<InclusionOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const head = this.#core.headView();
    const of = size ?? head.size;
    const paths = of > head.size ? [] : inclusionPaths(nativeCrypto, this.#core.tree, seqs, of);
    return { ok: true, head, size: of, paths };
  }

  /** The consistency path between two sizes, the second the head's by default. */
  async consistency(
    log: LogIdentity,
    epoch: number,
    from: number,
    to: number | null,
  ): Promise<ConsistencyOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const head = this.#core.headView();
    const size = to ?? head.size;
    const inOrder = from <= size && size <= head.size;
    const path = inOrder ? consistencyPath(nativeCrypto, this.#core.tree, from, size) : null;
    return { ok: true, head, size, path };
  }

  /** The bytes of a tile or bundle, as wide as its path says; null where the log has none so wide. */
  async tile(log: LogIdentity, epoch: number, tile: TileRef): Promise<TileOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const { tree, leaves, size, storage } = this.#core;
    // A bundle of pruned leaves is a full one, in R2.
    if (tile.kind === "entries" && tile.index * TILE_WIDTH < storage.prunedSeq)
      return prunedBundle(this.#core.requireOpen().archive, tile.index, tile.width);
    return { ok: true, bytes: tileBytes(tree, leaves, size, tile) };
  }

  /** Answers once a head of at least this size is in R2. */
  async mirrored(log: LogIdentity, epoch: number, size: number): Promise<HeadOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const { mirror } = this.#core.requireOpen();
    // A head that is safe from a rewind, and entries that the log can take back then: R2 has none of the last tile's.
    const flushed = this.#flushedTo(size);
    try {
      for (let attempt = 0; this.#core.progress.mirroredSize < size && attempt < 5; attempt++)
        await mirror.run();
    } catch {
      return unavailable("mirror-unavailable", "the head could not be mirrored; the entries are stored", 2);
    }
    if (!(await flushed))
      return unavailable("mirror-unavailable", "D1 does not hold the entries yet; they are stored", 2);
    if (this.#core.progress.mirroredSize >= size) return { ok: true, head: this.#core.headView() };
    return unavailable("mirror-unavailable", "the head is not mirrored yet; the entries are stored", 2);
  }

  /** Flushes up to this entry, for a minute at most; whether D1 holds it, or is away. Never throws. */
  async #flushedTo(seq: number): Promise<boolean> {
    const { outbox } = this.#core.requireOpen();
    for (let rounds = 0; rounds < FLUSHES_WAITED_FOR; rounds++) {
      const { ok } = await outbox.flush();
      if (!ok || this.#core.progress.flushedSeq >= seq) return true;
    }
    return false;
  }

  /** The entries that a request for an erasure names. */
  async erasable(log: LogIdentity, epoch: number, target: ErasureTarget): Promise<ResolvedTarget> {
    const refused = await this.#core.prepare(log, epoch);
    return refused ?? this.#core.requireOpen().content.resolve(target);
  }

  /** Erases content, as far as it can be done now; the alarm does the rest. */
  async erase(log: LogIdentity, epoch: number, request: ErasureRequest): Promise<ErasureOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const report = await this.#core.requireOpen().content.erasures.erase(request);
    if (report.pending.length > 0) await this.#core.alarm.arm();
    return { ok: true, report };
  }

  /** How the log stands; one that has not been compared with its mirror since its start is compared now. */
  async standing(log: LogIdentity, epoch: number): Promise<StandingOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    const stop = this.#core.recovery.stopped();
    if (stop === null) return refused ?? { ok: true, state: "running", head: this.#core.headView() };
    const seal = this.#core.recovery.sealed();
    return seal === null
      ? { ok: true, state: "stopped", stop, seal }
      : { ok: true, state: "sealed", stop, seal };
  }

  /** Seals a stopped log's generation: nothing is added to it again, and it can be read as far as it goes. */
  async seal(log: LogIdentity, epoch: number, reason: string): Promise<SealOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    const seal = this.#core.recovery.seal(reason);
    if (seal === null) return refused ?? { ok: false, code: "log-not-stopped" };
    const { outbox, listing } = this.#core.requireOpen();
    // What D1 still takes of it. Where D1 contradicts it nobody who reads the whole tenant waits for that to end.
    do await outbox.flush();
    while (outbox.leftOff);
    await listing.drop();
    return { ok: true, seal };
  }

  /** Entries from `first` on, from where the log itself has them: what a sealed generation's export is made of. */
  async stored(log: LogIdentity, epoch: number, first: number, last: number): Promise<StoredPageOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    const { storage, size } = this.#core;
    if (refused !== null) return refused;
    return storedPage(storage, this.#core.requireOpen().archive, first, Math.min(last, size));
  }

  /** Flushes and mirrors. At most six retries are ours by the platform, so nothing may be thrown from here. */
  override async alarm(): Promise<void> {
    const { alarm, opened } = this.#core;
    if (opened === null) return;
    const done = await alarm.run((due) => this.#work(opened, due));
    // What is left where D1 holds everything is content that waits to be sealed. Of a log that never rests it is not put off
    // for ever: one pass each two seconds seals less than such a log can take.
    const soon = done && (opened.outbox.leftOff || opened.content.hasWork(opened.outbox.lag === 0));
    await alarm.arm([...this.#core.leftToDo(), ...alarm.failing], soon);
  }

  async #work({ outbox, mirror, listing, reporter, content, identity }: OpenLog, due: ReadonlySet<Work>) {
    const core = this.#core;
    // Nothing goes to D1 or R2 from a log that was not compared with its mirror since it started.
    const refused = await core.prepare(identity, core.storage.head()?.epoch ?? 0);
    if (refused !== null && refused.code !== "log-stopped") {
      const refilling = refused.code === "log-refilling";
      return { index: refilling, mirror: refilling, other: refilling };
    }
    // Beside each other: a D1 that is slow does not keep the head from its mirror.
    const flushing = due.has("index") ? outbox.flush() : null;
    const mirroring = due.has("mirror") ? succeeds(mirror.runBeside(flushing, ALARM_PACE.delayMs)) : null;
    const flushed = await flushing;
    const mirrored = await mirroring;
    if (flushed?.ok === true && mirrored === true && outbox.lag === 0) {
      const { flushedSeq: seq, arrival } = core.progress;
      await listing.settle({ seq, arrival }, counterReport(core.health()));
    } else await listing.report(counterReport(core.health()));
    const index = flushed === null ? {} : { index: flushed.ok || core.isAtOdds() };
    const mirrorDone = mirrored === null ? {} : { mirror: mirrored };
    if (!due.has("other")) return { ...index, ...mirrorDone };
    const reported = await reporter.report(core.storage.head());
    const told = await core.recovery.tell();
    const other = (await content.run(outbox.lag === 0)) && reported && told;
    return { ...index, ...mirrorDone, other };
  }
}
