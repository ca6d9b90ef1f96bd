/**
 * Erases content (docs/privacy.md). The request is durable before anything is done,
 * on the tenant's system log as `erasure.requested` and here. Then three steps, each of which can be made again:
 *
 * 1. `log`: the segments' rows lose the content and the boxes in R2 their keys, in one transaction a segment.
 * 2. `index`: D1's columns follow, once D1 holds the entries: no flush that is under way can bring the content back.
 * 3. `record`: `erasure.done` on the tenant's system log.
 *
 * What can't be done now is done by the alarm.
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import { hasErased } from "../../shared/entry/content.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import { ALL_ERASED, eraseContent } from "../../shared/entry/erase.ts";
import { FieldSelection } from "../../shared/entry/field-selection.ts";
import { formatRow, parseRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import { recordSystemEntry } from "../../workers/logs/system-log.ts";
import type { Segment } from "../principal-log/storage.ts";
import type { LogIdentity } from "../principal-log/types.ts";
import type { ArchiveContext } from "./archived-entries.ts";
import { ArchivedEntries } from "./archived-entries.ts";
import type { LeftContent } from "./erase-index.ts";
import { eraseInIndex } from "./erase-index.ts";
import type { ErasureStore, StoredErasure } from "./erasure-store.ts";
import type { ErasureReport, ErasureRequest } from "./erasure-types.ts";
import type { ContentSource } from "./stored-content.ts";
import { contentReader } from "./stored-content.ts";

/** For how long the platform can set D1 and a Durable Object back, at most (docs/privacy.md). */
const RECOVERY_DAYS = 30;
const DAY_MS = 24 * 3_600_000;

export interface ErasuresContext extends ContentSource, ArchiveContext {
  readonly env: Env;
  readonly store: ErasureStore;
  readonly identity: LogIdentity;
  /** Entries that D1 confirmed. */
  readonly flushedSeq: () => number;
  /** Makes D1 hold what it lacks. Never throws. */
  readonly flush: () => Promise<unknown>;
  /** Counts the outbox's bytes again: its rows became shorter. */
  readonly recount: () => void;
  readonly sync: () => Promise<void>;
}

export class Erasures {
  readonly #context: ErasuresContext;
  readonly #archived: ArchivedEntries;
  #last: Promise<boolean> = Promise.resolve(true);

  constructor(context: ErasuresContext) {
    this.#context = context;
    this.#archived = new ArchivedEntries(context);
  }

  /** Whether something is left to do. */
  get isOpen(): boolean {
    return this.#context.store.isOpen;
  }

  /** Takes the request, and does what can be done of it now. */
  async erase(request: ErasureRequest): Promise<ErasureReport> {
    const { store, sync } = this.#context;
    store.begin(request);
    await sync();
    await this.run();
    const stored = store.get(request.id);
    if (stored === null) throw new RunsealError("storage-inconsistent", "an erasure is not stored");
    const { request: _request, next: _next, ...report } = stored;
    return report;
  }

  /** Goes on with what is left to do, one at a time; whether all of it is done. Never throws. */
  run(): Promise<boolean> {
    this.#last = this.#last.then(() => this.#runOpen());
    return this.#last;
  }

  async #runOpen(): Promise<boolean> {
    const { store, identity } = this.#context;
    let done = true;
    try {
      for (const id of store.open()) done = (await this.#go(id)) && done;
    } catch {
      done = false;
    } finally {
      this.#archived.clear();
    }
    if (!done) logEvent("erasure-pending", { principal: identity.principal });
    return done;
  }

  async #go(id: string): Promise<boolean> {
    const { store } = this.#context;
    try {
      for (let erasure = store.get(id); erasure !== null; erasure = store.get(id)) {
        const [step] = erasure.pending;
        if (step === undefined) return true;
        if (step === "log") await this.#eraseHere(erasure);
        else if (step === "index") await this.#eraseInIndex(erasure);
        else await this.#record(erasure);
      }
    } catch (error) {
      const code = error instanceof RunsealError ? error.code : "unavailable";
      logEvent("erasure-step-failed", { principal: this.#context.identity.principal, code });
    }
    return false;
  }

  /** Erases in the segment, or in the box alone, that holds the next entry; then storage says how far that is. */
  async #eraseHere({ id, request, next }: StoredErasure): Promise<void> {
    const { storage, store, keys, recount, sync } = this.#context;
    const { seqs, fields } = request;
    const seq = seqs[next];
    if (seq === undefined) {
      store.erased(id, next, 0, true);
      return;
    }
    const selection = fields === null ? FieldSelection.all : FieldSelection.of(fields);
    const boxed = storage.segmentOf(seq) === null ? await this.#readBoxed(seq, selection) : null;
    storage.transaction(() => {
      const segment = storage.segmentOf(seq);
      const end = segment === null ? seq + 1 : segment.firstSeq + segment.count;
      let after = next;
      while (after < seqs.length && (seqs[after] ?? end) < end) after += 1;
      const left =
        segment === null
          ? this.#eraseContent([[seq, boxed ?? ALL_ERASED]], selection)
          : this.#eraseSegment(segment, seqs.slice(next, after), selection);
      keys.erase(left);
      store.erased(id, after, left.size, after === seqs.length);
    });
    recount();
    await sync();
  }

  /** The content of an entry that is in R2 alone. Where it can't be read, all of it can be erased all the same. */
  async #readBoxed(seq: number, selection: FieldSelection): Promise<EntryContent> {
    const own = contentReader(this.#context)(seq);
    if (own !== null) return own;
    try {
      await this.#archived.load(seq, seq);
      const content = this.#archived.entries(seq, seq)[0]?.content ?? null;
      if (content !== null) return content;
    } catch (error) {
      if (selection.names !== null) throw error;
    }
    if (selection.names !== null) {
      throw new RunsealError(
        "content-lost",
        "an entry's box can't be read: it can be erased as a whole only",
      );
    }
    return ALL_ERASED;
  }

  #eraseContent(
    entries: Iterable<readonly [number, EntryContent]>,
    selection: FieldSelection,
  ): Map<number, EntryContent> {
    const left = new Map<number, EntryContent>();
    for (const [seq, content] of entries) {
      const now = eraseContent(content, selection);
      if (now !== null) left.set(seq, now);
      // What could not be read is erased as a whole: its key goes, and no name is known to say what it was.
      else if (content === ALL_ERASED) left.set(seq, ALL_ERASED);
    }
    return left;
  }

  #eraseSegment(
    segment: Segment,
    seqs: readonly number[],
    selection: FieldSelection,
  ): Map<number, EntryContent> {
    const rows = segment.rows.split("\n");
    const parsed = new Map(seqs.map((seq) => [seq, parseRow(rows[seq - segment.firstSeq] ?? "")] as const));
    const left = this.#eraseContent(parsed, selection);
    for (const [seq, content] of left) {
      const columns = parsed.get(seq)?.columns ?? "{}";
      rows[seq - segment.firstSeq] = formatRow({ columns: withoutTool(columns, selection), ...content });
    }
    if (left.size > 0) this.#context.storage.rewriteRows(segment.firstSeq, rows.join("\n"));
    return left;
  }

  /** D1 confirmed the entries first: what a flush had read before the erasure is there, and is overwritten. */
  async #eraseInIndex({ id, request }: StoredErasure): Promise<void> {
    const { env, store, logId, flush, flushedSeq } = this.#context;
    const last = request.seqs.at(-1) ?? 0;
    if (flushedSeq() < last) await flush();
    if (flushedSeq() < last) throw new RunsealError("index-behind", "D1 does not hold the entries yet");
    const { fallBacks } = store;
    await eraseInIndex(env.DB, toHex(logId), this.#leftOf(request.seqs));
    // It went backwards meanwhile. That it holds the entries again says nothing: they may be as they were before.
    if (store.fallBacks !== fallBacks || flushedSeq() < last)
      throw new RunsealError("index-behind", "D1 does not hold the entries any more");
    store.indexed(id, new Date(Date.now() + RECOVERY_DAYS * DAY_MS).toISOString());
  }

  *#leftOf(seqs: readonly number[]): Generator<LeftContent> {
    const contentOf = contentReader(this.#context);
    for (const seq of seqs) {
      const content = contentOf(seq);
      // An entry of which nothing was erased is in D1 as it is, wherever its content is here.
      if (content !== null && (content.values === null || hasErased(content.values)))
        yield { seq, values: content.values, salts: content.salts };
    }
  }

  async #record({ id, request, entries, recoverableUntil }: StoredErasure): Promise<void> {
    const { env, store, identity, logId } = this.#context;
    const { tenant, host, registryId } = identity;
    const { by, reason, requested } = request;
    const item = await recordSystemEntry(
      env,
      { id: tenant, host, registryId, name: "", createdAt: "" },
      {
        id: `erasure.done.${id}`,
        kind: "erasure.done",
        action: {
          ...erasureFields(toHex(logId), request),
          count: entries,
          recoverable_until: recoverableUntil,
          request_entry: requested,
          by,
          reason,
        },
      },
    );
    if (item.status !== "stored" && item.status !== "seen") {
      throw new RunsealError("storage-inconsistent", "the erasure is recorded with other facts");
    }
    store.recorded(id, { seq: item.seq, hash: item.hash });
  }
}

/** What an erasure is recorded with: its log, entries and fields. */
export function erasureFields(
  logId: string,
  { seqs, fields }: Pick<ErasureRequest, "seqs" | "fields">,
): Record<string, unknown> {
  const from = seqs[0] ?? 0;
  const to = seqs.at(-1) ?? 0;
  return {
    log_id: logId,
    from,
    to,
    ...(seqs.length === to - from + 1 ? {} : { seqs }),
    ...(fields === null ? {} : { fields }),
  };
}

/** The index columns; the tool's name is taken from a value, and goes with it. */
function withoutTool(columns: string, selection: FieldSelection): string {
  if (!selection.has("action", "tool")) return columns;
  const { o: _tool, ...others } = JSON.parse(columns) as Record<string, string>;
  return JSON.stringify(others);
}
