/**
 * Requests that wait for the next commit: all that are being delivered join one transaction. What one of them does
 * wrong costs the others nothing.
 *
 * @module
 */
import { MAX_COMMIT_BYTES, MAX_COMMIT_ENTRIES, MAX_QUEUE_BYTES } from "../../shared/entry/limits.ts";
import { RunsealError } from "../../shared/errors.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { CommitResult, KnownEntry, PendingRequest } from "./commit.ts";
import { decodeFrame } from "./frame.ts";
import type { IdIndex } from "./id-index.ts";
import type { AppendRequest, ItemOutcome, Unavailable } from "./types.ts";
import { unavailable } from "./types.ts";

export interface CommitQueueContext {
  readonly ids: () => IdIndex;
  /** Entries that D1 holds under these ids. Throws what D1 throws. */
  readonly lookUp: (ids: readonly string[]) => Promise<ReadonlyMap<string, KnownEntry>>;
  /** One transaction, and what memory takes over after it. Throws where nothing was committed. */
  readonly commit: (group: readonly PendingRequest[]) => CommitResult;
  /** The registry epoch under which entries are stored now. */
  readonly epoch: () => number;
  /** Why nothing may be committed at all now; null where it may. */
  readonly refusal: () => Unavailable | null;
  /** Takes memory over from storage again, after a transaction that threw. */
  readonly reload: () => void;
}

/** What a waiting request is answered with. `"look-up-again"`: ids were forgotten since D1 was asked. */
type Settled = readonly ItemOutcome[] | Unavailable | "look-up-again";

type QueuedRequest = Pick<AppendRequest, "ids" | "frame" | "atomic" | "signedEpoch" | "idempotency">;

interface Waiting extends PendingRequest {
  readonly bytes: number;
  /** Evictions of the id index when D1 was asked. */
  readonly evictions: number;
  /** The epoch at which client keys were checked; null where nothing is signed. */
  readonly signedEpoch: number | null;
  readonly resolve: (outcome: Settled) => void;
}

export class CommitQueue {
  readonly #context: CommitQueueContext;
  readonly #waiting: Waiting[] = [];
  /** Bytes of the requests that are not settled yet. */
  #bytes = 0;
  #scheduled = false;

  constructor(context: CommitQueueContext) {
    this.#context = context;
  }

  /** Resolves once the request's commit is done; the platform's output gate then holds answers until it is durable. */
  async add(request: QueuedRequest): Promise<readonly ItemOutcome[] | Unavailable> {
    const bytes = request.frame.bytes.length + request.frame.rows.length;
    if (this.#bytes + bytes > MAX_QUEUE_BYTES) return unavailable("overloaded", "the log's queue is full");
    // Counted from here: those that wait for D1's answer are held in memory as well.
    this.#bytes += bytes;
    try {
      return await this.#settle(request, bytes);
    } finally {
      this.#bytes -= bytes;
    }
  }

  async #settle(request: QueuedRequest, bytes: number): Promise<readonly ItemOutcome[] | Unavailable> {
    const { ids, frame, atomic, signedEpoch = null, idempotency } = request;
    const entries = decodeFrame(frame);
    for (;;) {
      const { evictions } = this.#context.ids();
      let known: ReadonlyMap<string, KnownEntry>;
      try {
        known = await this.#known(ids);
      } catch (error) {
        if (error instanceof RunsealError && error.code === "index-conflict") {
          return unavailable("index-conflict", error.message, 60);
        }
        if (error instanceof RunsealError && error.code === "storage-inconsistent") {
          logEvent("commit-failed", { code: error.code });
          return unavailable("storage-failed", "the entries could not be stored");
        }
        const detail = "whether an id was used before can't be told while D1 is away";
        return unavailable("index-unavailable", detail, 2);
      }
      const outcome = await new Promise<Settled>((resolve) => {
        this.#waiting.push({
          ids,
          entries,
          atomic,
          known,
          bytes,
          evictions,
          signedEpoch,
          idempotency,
          resolve,
        });
        this.#schedule();
      });
      if (outcome !== "look-up-again") return outcome;
    }
  }

  /** Entries outside the log's memory under the ids that may have been used before. */
  async #known(ids: readonly string[]): Promise<ReadonlyMap<string, KnownEntry>> {
    const index = this.#context.ids();
    const now = Date.now();
    const unknown = ids.filter((id) => index.get(id) === undefined && !index.isCertainlyNew(id, now));
    return unknown.length === 0 ? new Map() : this.#context.lookUp(unknown);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // A macrotask, so that every request that is being delivered now joins the same commit.
    setTimeout(() => {
      this.#scheduled = false;
      this.#drain();
    }, 0);
  }

  #drain(): void {
    const group: Waiting[] = [];
    let bytes = 0;
    let entries = 0;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const fits = bytes + next.bytes <= MAX_COMMIT_BYTES && entries + next.ids.length <= MAX_COMMIT_ENTRIES;
      if (group.length > 0 && !fits) break;
      this.#waiting.shift();
      if (next.evictions !== this.#context.ids().evictions) {
        next.resolve("look-up-again");
        continue;
      }
      if (next.signedEpoch !== null && next.signedEpoch !== this.#context.epoch()) {
        next.resolve(this.#epochMoved());
        continue;
      }
      group.push(next);
      bytes += next.bytes;
      entries += next.ids.length;
    }
    if (this.#waiting.length > 0) this.#schedule();
    const refusal = this.#context.refusal();
    if (refusal === null) this.#commit(group);
    else for (const request of group) request.resolve(refusal);
  }

  /** A key that held its role at one epoch may have lost it at another: it has to be checked again. */
  #epochMoved(): Unavailable {
    const detail = "the key registry has moved on since the entries' signatures were checked";
    return { ...unavailable("registry-unavailable", detail), epoch: this.#context.epoch() };
  }

  /** Commits together; if that throws, each alone, so that only the one that is at fault fails. */
  #commit(group: readonly Waiting[]): void {
    if (group.length === 0) return;
    let result: CommitResult;
    try {
      result = this.#context.commit(group);
    } catch (error) {
      const reloaded = this.#reload();
      if (reloaded && group.length > 1) {
        for (const request of group) this.#commitAlone(request);
        return;
      }
      logEvent("commit-failed", { code: error instanceof RunsealError ? error.code : "storage" });
      const refused = unavailable("storage-failed", "the entries could not be stored");
      for (const request of group) request.resolve(refused);
      return;
    }
    group.forEach((request, i) => {
      request.resolve(result.outcomes[i] ?? []);
    });
  }

  /** What a reload made memory forget must be asked for again first. */
  #commitAlone(request: Waiting): void {
    if (request.evictions === this.#context.ids().evictions) this.#commit([request]);
    else request.resolve("look-up-again");
  }

  /** Whether memory is what storage holds: while it is not, nothing is committed, and nobody waits in vain. */
  #reload(): boolean {
    try {
      this.#context.reload();
      return true;
    } catch {
      return false;
    }
  }
}
