/**
 * A log's content beside its evidence: what is put into R2, and what is erased. One of it a log, behind PrincipalLog.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { logPrefix } from "../../shared/entry/log-id.ts";
import type { Env } from "../../workers/env.ts";
import { succeeds } from "../principal-log/flush-alarm.ts";
import type { LogStorage } from "../principal-log/storage.ts";
import type { LogIdentity } from "../principal-log/types.ts";
import { unavailable } from "../principal-log/types.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { CONTENT_LIMITS, ContentArchive } from "./archive.ts";
import { ContentKeys } from "./content-keys.ts";
import { ErasureStore } from "./erasure-store.ts";
import type { ErasureTarget, ResolvedTarget } from "./erasure-types.ts";
import { Erasures } from "./erasures.ts";
import type { BoxesContext } from "./read-boxes.ts";

export interface ContentContext {
  readonly durable: DurableObjectStorage;
  readonly env: Env;
  readonly storage: LogStorage;
  readonly tree: TileTree;
  readonly identity: LogIdentity;
  readonly logId: Uint8Array;
  readonly progress: () => { readonly flushedSeq: number; readonly archivedSeq: number };
  readonly size: () => number;
  readonly outbox: { flush(): Promise<unknown>; recount(): void };
  /** Sequence numbers of the entries with these ids that the log has. Throws what D1 throws. */
  readonly seqsOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, number>>;
}

export class ContentKeeper {
  readonly #context: ContentContext;
  readonly #archive: ContentArchive;
  readonly #store: ErasureStore;
  readonly erasures: Erasures;
  /** What `readBoxes` takes. */
  readonly boxes: BoxesContext;

  constructor(context: ContentContext) {
    const { durable, env, storage, tree, identity, logId, progress, outbox } = context;
    this.#context = context;
    const keys = new ContentKeys(durable.sql);
    const boxes: BoxesContext = { keys, bucket: env.MIRROR, prefix: logPrefix(identity), logId };
    const sync = () => durable.sync();
    this.boxes = boxes;
    this.#store = new ErasureStore(durable.sql);
    this.#archive = new ContentArchive({
      ...boxes,
      segmentsFrom: (seq) => storage.segmentsFrom(seq),
      archivedSeq: () => progress().archivedSeq,
      sync,
    });
    this.erasures = new Erasures({
      ...boxes,
      crypto: nativeCrypto,
      storage,
      tree,
      env,
      store: this.#store,
      identity,
      flushedSeq: () => progress().flushedSeq,
      flush: () => outbox.flush(),
      recount: () => outbox.recount(),
      sync,
    });
  }

  /** Whether R2 lacks content, or an erasure is not done. */
  get isDirty(): boolean {
    return this.#archive.isBehind || this.erasures.isOpen;
  }

  /**
   * Does what is left to do; whether nothing of it failed. Never throws.
   *
   * @param quiet whether no entries wait for D1: a log at work puts off the sealing, up to a backlog
   */
  async run(quiet: boolean): Promise<boolean> {
    const due = quiet || this.#archive.backlog > CONTENT_LIMITS.backlog;
    const archived = !due || (await succeeds(this.#archive.run()));
    return (await this.erasures.run()) && archived;
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
