/**
 * A queue in front of the service, for senders that must not wait: entries are taken at once, sent in order for each
 * principal, in batches, and sent again until they are stored. It is bounded, and says itself in the log what it could
 * not keep.
 *
 *     const queue = await EntryQueue.open({ url, apiKey, journal: new FileJournal("queue.json") });
 *     queue.add("agent-7", { kind: "run.created", run: "r1", action: { goal: "…" } });
 *     await queue.close();
 *
 * Beyond the bound the newest entry is dropped, and a `host.loss` takes its place in the order. A process that ends
 * without `close` loses what is in memory; with a journal the next start writes a `host.gap`.
 *
 * @module
 */
import { MAX_BATCH_BYTES, MAX_BATCH_ENTRIES } from "../shared/entry/limits.ts";
import type { Append, ClientOptions, Entry } from "./client.ts";
import { logPath, ProblemError, RunsealClient, withId } from "./client.ts";
import { sizeOf, windowLimits } from "./limits.ts";
import type { Gap, QueueJournal } from "./queue-journal.ts";
import { QueueMarker } from "./queue-journal.ts";
import type { LaneContext, QueuedEntry, SendAnswer, SendResult } from "./queue-lane.ts";
import { Lane } from "./queue-lane.ts";

export interface QueueOptions extends Omit<ClientOptions, "attempts"> {
  /** Entries that wait at most, over all principals; 65,536. */
  readonly maxEntries?: number;
  /** UTF-8 bytes of them at most; 32 MiB. */
  readonly maxBytes?: number;
  /** Entries and UTF-8 bytes of one request at most; 500 and 1 MiB. */
  readonly batchEntries?: number;
  readonly batchBytes?: number;
  /** How long a first entry waits for others; 20 ms. */
  readonly lingerMs?: number;
  /** Longest pause between two attempts, where the service asks for no longer one; 30 s. */
  readonly maxBackoffMs?: number;
  /** Without one an unclean end is not told. */
  readonly journal?: QueueJournal;
  /** Principals that are known to be used: they are in the journal from the start. */
  readonly principals?: readonly string[];
  /** An entry was refused for good: it is declared as lost in the log. `problem` is its problem document. */
  readonly onRefused?: (principal: string, text: string, problem: unknown) => void;
  /** An attempt failed; it is made again after the pause. A wrong key shows here, again and again. */
  readonly onRetry?: (principal: string, error: unknown, pauseMs: number) => void;
  /** For tests. */
  readonly sleep?: (ms: number) => Promise<void>;
  readonly now?: () => number;
  readonly random?: () => number;
}

/** What became of everything since the queue was opened. */
export interface QueueStats {
  /** Entries taken with `add`. */
  readonly accepted: number;
  /** Of those, stored. */
  readonly stored: number;
  /** Of those, refused for good. */
  readonly refused: number;
  /** Not taken: the queue was full, or the entry too large. */
  readonly dropped: number;
  /** Losses and gaps declared in logs. */
  readonly declared: number;
  readonly waiting: number;
}

const MIB = 1024 * 1024;

export class EntryQueue {
  readonly #options: QueueOptions;
  readonly #client: RunsealClient;
  readonly #marker: QueueMarker | null;
  readonly #lanes = new Map<string, Lane>();
  #entries = 0;
  #bytes = 0;
  #closed = false;
  #stats = { accepted: 0, stored: 0, refused: 0, dropped: 0, declared: 0 };

  private constructor(options: QueueOptions, marker: QueueMarker | null) {
    this.#options = options;
    this.#client = new RunsealClient({ ...options, attempts: 1 });
    this.#marker = marker;
  }

  /** Opens a queue. Throws what the journal throws where it can't be written. */
  static async open(options: QueueOptions): Promise<EntryQueue> {
    const { journal, principals = [], now = Date.now } = options;
    const marker = journal === undefined ? null : await QueueMarker.open(journal, now(), principals);
    const queue = new EntryQueue(options, marker);
    for (const gap of marker?.gaps ?? []) queue.#lane(gap.principal, false).push(gapEntry(gap));
    return queue;
  }

  get stats(): QueueStats {
    return { ...this.#stats, waiting: this.#entries };
  }

  /**
   * Takes an entry, as a value or as JSON text, and gives it an id where it has none. Never waits.
   *
   * @returns whether it was taken; where not, its loss will be in the log
   * @throws `JsonError` where a text is no JSON; `Error` after `close`
   */
  add(principal: string, entry: Entry | string): boolean {
    if (this.#closed) throw new Error("the queue is closed");
    const text = withId(typeof entry === "string" ? entry.replaceAll(/[\n\r]/g, " ") : JSON.stringify(entry));
    const lane = this.#lane(principal, true);
    const { maxEntries = 65_536, maxBytes = 32 * MIB } = this.#options;
    const size = sizeOf(text);
    const tooLarge = size > MAX_BATCH_BYTES;
    if (tooLarge || this.#entries >= maxEntries || this.#bytes + size > maxBytes) {
      this.#stats.dropped += 1;
      lane.lose(tooLarge ? "too_large" : "queue_full");
      return false;
    }
    this.#stats.accepted += 1;
    this.#entries += 1;
    this.#bytes += size;
    lane.push({ text, size, own: null });
    return true;
  }

  /** Resolves once everything that was added before is stored, or refused for good. */
  async flush(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.drained()));
  }

  /**
   * Takes no more, and sends what waits, until `timeoutMs` is over where it is given.
   *
   * @returns entries that were not sent: they are lost with the queue, and the next start says so
   */
  async close({ timeoutMs }: { readonly timeoutMs?: number } = {}): Promise<{ readonly unsent: number }> {
    this.#closed = true;
    const { sleep = pause } = this.#options;
    const flushed = this.flush();
    await (timeoutMs === undefined ? flushed : Promise.race([flushed, sleep(timeoutMs)]));
    let unsent = 0;
    for (const lane of this.#lanes.values()) {
      unsent += lane.length;
      lane.stop();
    }
    if (unsent === 0) await this.#marker?.close();
    return { unsent };
  }

  #lane(principal: string, isUsed: boolean): Lane {
    let lane = this.#lanes.get(principal);
    if (lane === undefined) {
      lane = new Lane(this.#context(principal));
      this.#lanes.set(principal, lane);
    }
    const gap = isUsed ? (this.#marker?.use(principal, this.#now()) ?? null) : null;
    if (gap !== null) lane.push(gapEntry(gap));
    return lane;
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }

  #context(principal: string): LaneContext {
    const options = this.#options;
    return {
      send: (texts) => this.#send(principal, texts),
      sleep: options.sleep ?? pause,
      now: () => this.#now(),
      random: options.random ?? Math.random,
      batchEntries: Math.min(MAX_BATCH_ENTRIES, options.batchEntries ?? 500),
      batchBytes: Math.min(MAX_BATCH_BYTES, options.batchBytes ?? MIB),
      lingerMs: options.lingerMs ?? 20,
      maxBackoffMs: options.maxBackoffMs ?? 30_000,
      ready: async () => this.#marker?.kept(),
      settled: (entry, problem) => this.#settled(principal, entry, problem),
      failed: (error, pauseMs) => quietly(() => options.onRetry?.(principal, error, pauseMs)),
    };
  }

  async #send(principal: string, texts: readonly string[]): Promise<SendAnswer> {
    try {
      const response = await this.#client.request("POST", `${logPath(principal)}/entries`, {
        body: texts.join("\n"),
        contentType: "application/x-ndjson",
      });
      const results = resultsOf((await response.json()) as Pick<Append, "results">);
      return { results, limits: windowLimits(response.headers) };
    } catch (error) {
      // All refused: the reason of each is in the document.
      if (!(error instanceof ProblemError) || !Array.isArray(error.problem.results)) throw error;
      const results = resultsOf(error.problem as Pick<Append, "results">);
      if (results.length !== texts.length) throw error;
      return { results, limits: null };
    }
  }

  #settled(principal: string, entry: QueuedEntry, problem: unknown): void {
    if (entry.own === null) {
      this.#entries -= 1;
      this.#bytes -= entry.size;
      if (problem === null) this.#stats.stored += 1;
      else this.#stats.refused += 1;
    } else if (problem === null) this.#stats.declared += 1;
    const { onRefused } = this.#options;
    if (problem !== null) quietly(() => onRefused?.(principal, entry.text, problem));
    else if (entry.gapId !== undefined) void this.#marker?.declared(entry.gapId).catch(() => {});
  }
}

/** What a listener throws must not stop the queue. */
function quietly(listener: () => void): void {
  try {
    listener();
  } catch {
    // Its own affair.
  }
}

function resultsOf({ results }: Pick<Append, "results">): SendResult[] {
  return results.map(({ error }) => ({ error: error ?? null }));
}

function gapEntry({ id, epoch, openedAt, reason }: Gap): QueuedEntry {
  const action = { epoch, ...(openedAt === null ? {} : { opened_at: openedAt }), reason };
  const text = JSON.stringify({ id, kind: "host.gap", action });
  return { text, size: sizeOf(text), own: "gap", gapId: id };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
