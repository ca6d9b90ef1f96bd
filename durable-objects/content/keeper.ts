/**
 * A log's content beside its evidence: what is put into R2, and what is erased. One of it a log, behind PrincipalLog.
 *
 * @module
 */
import type { Env } from "../../workers/env.ts";
import { succeeds } from "../principal-log/flush-alarm.ts";
import { PRUNE_LIMITS, Pruner } from "../principal-log/prune.ts";
import type { LogStorage, Progress } from "../principal-log/storage.ts";
import type { LogIdentity } from "../principal-log/types.ts";
import { unavailable } from "../principal-log/types.ts";
import { CONTENT_LIMITS, ContentArchive } from "./archive.ts";
import type { ArchiveContext } from "./archived-entries.ts";
import { ErasureStore } from "./erasure-store.ts";
import type { ErasureTarget, ResolvedTarget } from "./erasure-types.ts";
import { Erasures } from "./erasures.ts";
import { Pass } from "./pass.ts";

export interface ContentContext {
  readonly durable: DurableObjectStorage;
  readonly env: Env;
  readonly storage: LogStorage;
  readonly archive: ArchiveContext;
  readonly identity: LogIdentity;
  readonly progress: () => Progress;
  readonly size: () => number;
  readonly outbox: { flush(): Promise<unknown>; recount(): void };
  /** Sequence numbers of the entries with these ids that the log has. Throws what D1 throws. */
  readonly seqsOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, number>>;
  /** See `Pruner`. */
  readonly forgottenUpTo: () => number;
  /** Whether the log runs, and its mirror agrees with it. */
  readonly agrees: () => boolean;
}

export class ContentKeeper {
  readonly #context: ContentContext;
  readonly #archive: ContentArchive;
  readonly #store: ErasureStore;
  readonly #pruner: Pruner;
  readonly erasures: Erasures;

  constructor(context: ContentContext) {
    const { durable, env, storage, archive, identity, progress, outbox } = context;
    this.#context = context;
    const sync = () => durable.sync();
    const store = new ErasureStore(durable.sql);
    this.#store = store;
    this.#archive = new ContentArchive({
      ...archive,
      segmentsFrom: (seq) => storage.segmentsFrom(seq),
      archivedSeq: () => progress().archivedSeq,
      sync,
    });
    this.#pruner = new Pruner({
      ...context,
      principal: identity.principal,
      allowed: () => context.agrees() && storage.standingAlarm("index-conflict") === null && !store.isOpen,
    });
    this.erasures = new Erasures({
      ...archive,
      storage,
      env,
      store,
      identity,
      flushedSeq: () => progress().flushedSeq,
      flush: () => outbox.flush(),
      recount: () => outbox.recount(),
      sync,
    });
  }

  /**
   * Whether `run` has something to do: an erasure is not done, R2 lacks content, or segments can go.
   *
   * @param quiet see there
   */
  hasWork(quiet: boolean): boolean {
    const atRest = quiet && (this.#archive.isBehind || this.#pruner.isDue);
    return this.erasures.isOpen || this.isOverdue || atRest;
  }

  /** Whether more waits to be sealed, or can be pruned, than a log at work may put off. */
  get isOverdue(): boolean {
    const prunes = this.#pruner.isDue && this.#pruner.backlog > PRUNE_LIMITS.backlog;
    return this.#archive.backlog > CONTENT_LIMITS.backlog || prunes;
  }

  /**
   * Does what is left to do; whether nothing of it failed. Never throws.
   *
   * @param quiet whether no entries wait for D1: a log at work puts off sealing and pruning, up to a backlog
   */
  async run(quiet: boolean): Promise<boolean> {
    const sealsBacklog = this.#archive.backlog > CONTENT_LIMITS.backlog;
    const objects = sealsBacklog ? CONTENT_LIMITS.busyObjects : quiet ? CONTENT_LIMITS.objects : 0;
    const archived = objects === 0 || (await succeeds(this.#archive.run(new Pass(objects))));
    const erased = await this.erasures.run();
    const prunesBacklog = this.#pruner.backlog > PRUNE_LIMITS.backlog;
    const steps = prunesBacklog ? PRUNE_LIMITS.busySteps : quiet ? PRUNE_LIMITS.steps : 0;
    const pruned = steps === 0 || (await succeeds(this.#pruner.run(new Pass(steps))));
    return erased && archived && pruned;
  }

  /** D1 went backwards: what was erased there is erased again. */
  indexFellBack(): void {
    this.#store.indexFellBack();
  }

  /** The sequence numbers that a request for an erasure names. */
  async resolve(target: ErasureTarget): Promise<ResolvedTarget> {
    if ("from" in target) {
      const { from, to } = target;
      if (to > this.#context.size()) return { ok: "absent", id: null };
      return { ok: true, seqs: Array.from({ length: to - from + 1 }, (_, i) => from + i) };
    }
    let found: ReadonlyMap<string, number>;
    try {
      found = await this.#context.seqsOf(target.ids);
    } catch {
      return unavailable("index-unavailable", "the ids can't be looked up while D1 is away", 2);
    }
    const absent = target.ids.findIndex((id) => !found.has(id));
    if (absent >= 0) return { ok: "absent", id: absent };
    return { ok: true, seqs: [...new Set(found.values())].sort((a, b) => a - b) };
  }
}
