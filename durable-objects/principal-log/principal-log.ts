/**
 * One principal's log (design sections 1, 2 and 4): a Durable Object that orders, hashes, stores and signs. This file
 * is its RPC surface; log-core.ts is what it is between two calls.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import type { Env } from "../../workers/env.ts";
import { consistencyPath, inclusionPaths, tileBytes } from "../tile-store/proofs.ts";
import { rangeEvidence } from "./evidence.ts";
import { succeeds } from "./flush-alarm.ts";
import { LogCore } from "./log-core.ts";
import type {
  AppendOutcome,
  AppendRequest,
  BarrierOutcome,
  ConsistencyOutcome,
  HeadOutcome,
  InclusionOutcome,
  LogIdentity,
  RangeOutcome,
  TileOutcome,
} from "./types.ts";
import { unavailable } from "./types.ts";

export class PrincipalLog extends DurableObject<Env> {
  readonly #core: LogCore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const core = new LogCore(ctx, env);
    this.#core = core;
    void ctx.blockConcurrencyWhile(async () => {
      await core.alarm.start();
      if (core.isDirty()) await core.alarm.arm();
    });
  }

  /** Appends entries. Resolves after they are durable: the output gate holds the answer until then. */
  async append(request: AppendRequest): Promise<AppendOutcome> {
    const refused = await this.#core.prepare(request.log, request.epoch);
    if (refused !== null) return refused;
    const { outbox, listing } = this.#core.requireOpen();
    const full = outbox.refusal(Date.now());
    if (full !== null) return full;
    const listed = listing.touch();
    const outcome = await this.#core.queue.add(request);
    if ("ok" in outcome) return outcome;
    // Said out loud, and not left to the platform's output gate alone: no receipt leaves before its entry is on disk.
    await this.ctx.storage.sync();
    await listed;
    // Once more where that failed, or where the log was taken off the list before this commit.
    if (outbox.lag > 0 && !(await listing.touch())) {
      const detail = "the entries are stored, but the tenant's directory could not be told: send them again";
      return unavailable("index-unavailable", detail, 2);
    }
    return { ok: true, items: outcome, head: this.#core.headView() };
  }

  /** The signed head, from storage. */
  async head(log: LogIdentity, epoch: number): Promise<HeadOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    return refused ?? { ok: true, head: this.#core.headView() };
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
    return (
      refused ?? { ok: true, bytes: tileBytes(this.#core.tree, this.#core.leaves, this.#core.size, tile) }
    );
  }

  /** Answers once a head of at least this size is in R2. */
  async mirrored(log: LogIdentity, epoch: number, size: number): Promise<HeadOutcome> {
    const refused = await this.#core.prepare(log, epoch);
    if (refused !== null) return refused;
    const mirror = this.#core.requireOpen().mirror;
    try {
      for (let attempt = 0; this.#core.progress.mirroredSize < size && attempt < 5; attempt++)
        await mirror.run();
    } catch {
      return unavailable("mirror-unavailable", "the head could not be mirrored; the entries are stored", 2);
    }
    if (this.#core.progress.mirroredSize >= size) return { ok: true, head: this.#core.headView() };
    return unavailable("mirror-unavailable", "the head is not mirrored yet; the entries are stored", 2);
  }

  /** Flushes and mirrors. At most six retries are ours by the platform, so nothing may be thrown from here. */
  override async alarm(): Promise<void> {
    const open = this.#core.opened;
    if (open === null) return;
    const done = await this.#core.alarm.run(async () => {
      const flushed = await open.outbox.flush();
      const mirrored = await succeeds(open.mirror.run());
      if (flushed.ok && mirrored && open.outbox.lag === 0) await open.listing.settle();
      return (await open.reporter.report(this.#core.storage.head())) && flushed.ok && mirrored;
    });
    if (this.#core.isDirty() || !done) await this.#core.alarm.arm();
  }
}
