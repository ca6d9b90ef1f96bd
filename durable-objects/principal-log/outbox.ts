/**
 * The outbox: what the log holds and D1 does not yet, its flush, one at a time, and its bound:
 * beyond it appends are refused with 503, and nothing is dropped.
 *
 * The bound's arithmetic: a Durable Object stores 10 GB; the outbox may take a fifth of it. At the documented 500
 * bytes to 2 KB an entry that is one million entries, and a day is the time in which an operator can be expected to
 * notice.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { ArchiveContext } from "../content/archived-entries.ts";
import { ArchivedEntries } from "../content/archived-entries.ts";
import type { Arrival } from "../tenant-directory/index-state.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { FlushOutcome, IndexContext } from "./flush.ts";
import { flushToIndex, reconcile } from "./flush.ts";
import { emptyIndex } from "./index-rows.ts";
import type { LogStorage, Progress, StoredHead } from "./storage.ts";
import type { LogIdentity, Unavailable } from "./types.ts";
import { unavailable } from "./types.ts";

export const MAX_OUTBOX_BYTES = 2 * 1024 ** 3;
export const MAX_OUTBOX_ENTRIES = 1_000_000;
export const MAX_OUTBOX_AGE_MS = 24 * 3_600_000;
/** The service's own log, which holds what happened to keys and content, is cut off by its size alone, and later. */
const SYSTEM_LOG = "$system";
const MAX_SYSTEM_BYTES = 2 * MAX_OUTBOX_BYTES;

/** A flush without another bound ends after this many milliseconds: whoever waits for it is told, and work goes on. */
export const FLUSH_PACE = { ms: 10_000 };

export interface OutboxContext {
  readonly storage: LogStorage;
  readonly tree: TileTree;
  /** Where R2 has what was pruned. */
  readonly archive: ArchiveContext;
  readonly db: D1Database;
  readonly identity: LogIdentity;
  readonly logId: Uint8Array;
  readonly head: () => StoredHead | null;
  readonly progress: () => Progress;
  readonly progressed: (progress: Partial<Progress>) => void;
  /** Called before D1 is filled again where it went backwards. */
  readonly fellBack: () => Promise<void>;
}

export class Outbox {
  readonly #context: OutboxContext;
  #bytes: number;
  #leftOff = false;
  /** When the first entry after this one was recorded. */
  #oldest: { readonly after: number; readonly ms: number } | null = null;
  /** What is at work; `shared` where a flush that is asked for now may wait for it instead of one more. */
  #work: { readonly done: Promise<FlushOutcome>; readonly shared: boolean } | null = null;

  constructor(context: OutboxContext) {
    this.#context = context;
    this.#bytes = context.storage.bytesAfter(context.progress().flushedSeq);
  }

  /** Notes what a commit added. */
  added(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Counts again, after memory was taken over from storage. */
  recount(): void {
    this.#oldest = null;
    this.#bytes = this.#context.storage.bytesAfter(this.#context.progress().flushedSeq);
  }

  /** Bytes of the entries that D1 lacks. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Entries that D1 lacks. */
  get lag(): number {
    return (this.#context.head()?.size ?? 0) - this.#context.progress().flushedSeq;
  }

  /** Null while the outbox has room. */
  refusal(nowMs: number): Unavailable | null {
    const { flushedSeq, confirmedSeq } = this.#context.progress();
    // What D1 held once, and lost, is no backlog: it is put back.
    const from = Math.max(flushedSeq, confirmedSeq);
    const entries = (this.#context.head()?.size ?? 0) - from;
    if (entries <= 0) return null;
    const bytes = from === flushedSeq ? this.#bytes : this.#context.storage.bytesAfter(from);
    if (this.#context.identity.name === SYSTEM_LOG) return bytes > MAX_SYSTEM_BYTES ? full() : null;
    if (bytes > MAX_OUTBOX_BYTES || entries > MAX_OUTBOX_ENTRIES) return full();
    const oldest = this.#oldestAfter(from);
    return oldest === null || nowMs - oldest < MAX_OUTBOX_AGE_MS ? null : full();
  }

  /** Asked for by every request, and the same until D1 moves on. */
  #oldestAfter(seq: number): number | null {
    if (this.#oldest?.after !== seq) {
      const ms = this.#context.storage.oldestAfter(seq);
      this.#oldest = ms === null ? null : { after: seq, ms };
    }
    return this.#oldest?.ms ?? null;
  }

  /**
   * One flush at a time; a second caller waits for the one that is under way and then for one more, with all that came
   * meanwhile. It ends after some seconds, done or not. Never throws.
   */
  async flush(): Promise<FlushOutcome> {
    // The one under way began before the entries that this one is asked for.
    await this.#work?.done;
    return this.#alone(() => {
      const until = Date.now() + FLUSH_PACE.ms;
      return this.#flush((chunks) => chunks > 0 && Date.now() >= until);
    }, true);
  }

  /** A flush that ends after so many chunks, done or not: a rebuild works in steps. Never throws. */
  async flushChunks(max: number): Promise<FlushOutcome> {
    return this.#alone(() => this.#flush((chunks) => chunks >= max));
  }

  /** Takes all that D1 holds of the log out of it: the next flushes fill it anew. Never throws. */
  async empty(): Promise<FlushOutcome> {
    return this.#alone(async () => {
      const { fellBack, db, logId, storage } = this.#context;
      // Whoever reads the whole tenant waits from here on.
      await fellBack();
      this.#progressed(0, null);
      await emptyIndex(db, toHex(logId));
      storage.clearAlarm("index-conflict");
      return { ok: true };
    });
  }

  /** Asks D1 where it stands, whatever it confirmed once: the next flush starts from there. Never throws. */
  async lookAgain(): Promise<FlushOutcome> {
    return this.#alone(async () => {
      const { head, progress } = this.#context;
      const confirmed = progress().flushedSeq;
      const reconciled = await reconcile(this.#flushContext(), head()?.size ?? 0, confirmed);
      if (!reconciled.ok) return reconciled;
      const { lastSeq } = reconciled.state;
      if (lastSeq !== confirmed) this.#progressed(lastSeq, null);
      return { ok: true };
    });
  }

  /** Whether the last flush ended by its bound, and another one can go on at once. */
  get leftOff(): boolean {
    return this.#leftOff;
  }

  /** Waits for its turn; a shared work for the turn of another such one. */
  async #alone(work: () => Promise<FlushOutcome>, shared = false): Promise<FlushOutcome> {
    while (this.#work !== null) {
      if (shared && this.#work.shared) return this.#work.done;
      await this.#work.done;
    }
    const done = this.#guarded(work).finally(() => {
      this.#work = null;
    });
    this.#work = { done, shared };
    return done;
  }

  async #guarded(work: () => Promise<FlushOutcome>): Promise<FlushOutcome> {
    let outcome: FlushOutcome;
    try {
      outcome = await work();
    } catch (error) {
      const detail =
        error instanceof RunsealError ? error.code : error instanceof Error ? error.name : "unknown";
      outcome = { ok: false, reason: "failed", detail };
    }
    this.recount();
    if (!outcome.ok) {
      logEvent(outcome.reason === "conflict" ? "index-conflict" : "index-unavailable", {
        principal: this.#context.identity.principal,
        detail: outcome.detail,
      });
    }
    return outcome;
  }

  async #flush(isOver: (chunks: number) => boolean): Promise<FlushOutcome> {
    const { tree, logId, head, progress } = this.#context;
    const stored = head();
    const size = stored?.size ?? 0;
    const flushed = progress().flushedSeq;
    this.#leftOff = false;
    if (stored === null || flushed >= size) return { ok: true };
    const hash = flushed === 0 ? logId : tree.leafHashes(flushed - 1, flushed);
    const from = { lastSeq: flushed, lastHash: toHex(hash) };
    const progressed = (seq: number, arrival: Arrival | null): void => this.#progressed(seq, arrival);
    const outcome = await flushToIndex(
      { ...this.#flushContext(), head: stored },
      from,
      size,
      progressed,
      isOver,
    );
    this.#leftOff = outcome.ok && progress().flushedSeq < size;
    return outcome;
  }

  #flushContext(): IndexContext {
    const { storage, tree, archive, db, identity, logId, fellBack } = this.#context;
    const archived = new ArchivedEntries(archive);
    return { crypto: nativeCrypto, storage, tree, archived, db, identity, logId: toHex(logId), fellBack };
  }

  #progressed(seq: number, arrival: Arrival | null): void {
    const { lag } = this;
    this.#context.progressed({ flushedSeq: seq, arrival });
    // An estimate: counted again at the end, for to do so after each chunk would read a long outbox each time.
    if (lag > 0) this.#bytes = Math.round((this.#bytes * Math.max(0, this.lag)) / lag);
  }
}

function full(): Unavailable {
  const detail = "D1 has been away for too long: the log takes no more entries until it is back";
  return unavailable("outbox-full", detail, 30);
}
