/**
 * Takes old segments out of the log's object once R2 has all that is in them, so that the object's 10 GB hold what R2 can't
 * give back: hashes, keys, and the newest entries. In the alarm, in bounded steps, and never on the way of an append.
 *
 * A segment may go when all its entries are under a mirrored head, in full bundles and tiles, in boxes, and in D1, and when
 * its ids are none of those that the log remembers: what is compared with a retry is here. Before a step deletes, it reads
 * the bundles and boxes back from R2 and puts the rows together again: each leaf must have the tree's hash, each box must
 * open, each row must be the one that the segment has. After the last wait for R2 nothing waits until all is deleted, in
 * one transaction: a crash leaves the segments, or takes them whole.
 *
 * @module
 */

import { columnsOf } from "../../shared/entry/columns.ts";
import { hasErased } from "../../shared/entry/content.ts";
import type { EntryContent } from "../../shared/entry/erase.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { logEvent } from "../../workers/log-event.ts";
import { breathe } from "../breathe.ts";
import type { ArchiveContext, ArchivedEntry } from "../content/archived-entries.ts";
import { ArchivedEntries } from "../content/archived-entries.ts";
import type { Pass } from "../content/pass.ts";
import { ID_LIMITS } from "./id-index.ts";
import type { LogStorage, Progress } from "./storage.ts";

/** Bounds. An object, so that a test can lower them. */
export const PRUNE_LIMITS = {
  /** Entries of one step, unless a segment alone has more. Less than one step's is left alone: it costs as much to check. */
  entries: 512,
  /** Bytes of a step's segments, unless one alone has more. */
  bytes: 2 * 1024 * 1024,
  /** Steps of one pass: each takes tens of milliseconds of the thread that appends are served by. */
  steps: 8,
  /** Entries that may wait to be pruned while the log is at work. */
  backlog: 100_000,
  /** Steps of one pass beyond that: as many entries as come in between two passes. */
  busySteps: 32,
  /** Milliseconds until it is tried again where R2 did not hold what it should. */
  retryMs: 3_600_000,
};

export interface PrunerContext {
  readonly storage: LogStorage;
  readonly archive: ArchiveContext;
  /** For the operator's log. */
  readonly principal: string;
  readonly progress: () => Progress;
  readonly size: () => number;
  /** The newest entry whose id the log may have forgotten. */
  readonly forgottenUpTo: () => number;
  /** Whether nothing is going on that needs the segments: the log runs, D1 agrees with it, and no erasure is open. */
  readonly allowed: () => boolean;
}

/** Whole segments. */
interface Range {
  readonly first: number;
  readonly last: number;
  /** When the first of them was recorded. */
  readonly recordedAtMs: number;
}

export class Pruner {
  readonly #context: PrunerContext;
  #retryAt = 0;

  constructor(context: PrunerContext) {
    this.#context = context;
  }

  /** Entries that may go. */
  get backlog(): number {
    const end = this.#end();
    return end === 0 ? 0 : Math.max(0, end - this.#context.storage.prunedSeq);
  }

  /** Whether a step can be done. */
  get isDue(): boolean {
    return Date.now() >= this.#retryAt && this.#range() !== null;
  }

  /** Prunes, as far as the pass goes. Throws what R2 and the storage throw. */
  async run(pass: Pass): Promise<void> {
    if (Date.now() < this.#retryAt) return;
    // Held for one pass: the next step's first objects are often the last ones of the step before.
    const archived = new ArchivedEntries(this.#context.archive);
    for (let step = 0; pass.goesOn(step); step++) {
      const range = this.#range();
      if (range === null) return;
      try {
        await archived.load(range.first, range.last);
        this.#prune(archived, range);
        await breathe();
      } catch (error) {
        if (!(error instanceof RunsealError)) throw error;
        this.#retryAt = Date.now() + PRUNE_LIMITS.retryMs;
        const { principal } = this.#context;
        logEvent("prune-refused", { principal, from: range.first, to: range.last, reason: error.code });
        return;
      }
    }
  }

  /** The last entry that may go; 0: none. A log that remembers all its ids costs no query. */
  #end(): number {
    const { archive, progress, size, forgottenUpTo, allowed } = this.#context;
    const old = Math.min(size() - Math.max(ID_LIMITS.remembered, TILE_WIDTH), forgottenUpTo());
    if (old <= 0) return 0;
    const { flushedSeq, archivedSeq, mirroredSize } = progress();
    const end = Math.min(old, flushedSeq, archivedSeq, mirroredSize, archive.keys.boxedSeq);
    return end > 0 && allowed() ? end : 0;
  }

  /** The segments of the next step; null where there is not as much as one step's. */
  #range(): Range | null {
    const end = this.#end();
    if (end < PRUNE_LIMITS.entries) return null;
    const first = this.#context.storage.prunedSeq + 1;
    if (end - first + 1 < PRUNE_LIMITS.entries) return null;
    let last = first - 1;
    let bytes = 0;
    let recordedAtMs = 0;
    for (const segment of this.#context.storage.segmentSizesFrom(first)) {
      const segmentEnd = segment.firstSeq + segment.count - 1;
      const fits = segmentEnd - first < PRUNE_LIMITS.entries && bytes + segment.bytes <= PRUNE_LIMITS.bytes;
      if (last >= first && !fits) return { first, last, recordedAtMs };
      if (segmentEnd > end) return null;
      if (last < first) recordedAtMs = segment.recordedAtMs;
      last = segmentEnd;
      bytes += segment.bytes;
    }
    return null;
  }

  /** Without a wait from the look at what is allowed to the end of the transaction. Throws where R2 has something else. */
  #prune(archived: ArchivedEntries, { first, last, recordedAtMs }: Range): void {
    const { storage, archive } = this.#context;
    if (this.#end() < last || storage.prunedSeq !== first - 1) return;
    const left = this.#verified(archived, first, last);
    storage.transaction(() => {
      archive.keys.erase(left);
      storage.prune(first, last, recordedAtMs);
    });
  }

  /**
   * Compares segments with what R2 gives back.
   *
   * @returns what the object keeps of erased entries' content, for boxes do not tell of an erasure, or not for sure
   */
  #verified(archived: ArchivedEntries, first: number, last: number): ReadonlyMap<number, EntryContent> {
    const { storage, archive } = this.#context;
    const known = archive.keys.leftBetween(first, last);
    const left = new Map<number, EntryContent>();
    let seq = first;
    for (const segment of storage.segmentsFrom(first)) {
      if (seq > last) break;
      if (segment.firstSeq !== seq || seq + segment.count - 1 > last) throw differs();
      const entries = archived.entries(seq, seq + segment.count - 1);
      for (const [i, row] of segment.rows.split("\n").entries()) {
        const entry = entries[i];
        if (entry === undefined) throw differs();
        if (compare(entry, row) === "erased") {
          const { values, salts } = parseRow(row);
          const kept = known.get(seq);
          if (kept?.values !== values || kept.salts !== salts) left.set(seq, { values, salts });
        }
        seq += 1;
      }
    }
    if (seq !== last + 1) throw differs();
    return left;
  }
}

/** Throws `RunsealError` where the entry, as R2 has it, does not give the row. `erased`: something was taken out of it. */
function compare({ leaf, columns, content }: ArchivedEntry, row: string): "same" | "erased" {
  const stored = parseRow(row);
  if (stored.values === null || hasErased(stored.values)) {
    if (!sameColumns(columnsOf(leaf, stored.values), stored.columns)) throw differs();
    return "erased";
  }
  if (content === null) throw new RunsealError("content-lost", "an entry's values are not in R2 any more");
  const same = content.values === stored.values && content.salts === stored.salts;
  if (!same || !sameColumns(columns, stored.columns)) throw differs();
  return "same";
}

/** D1 takes the columns by their names and values: how a character is escaped in them makes no difference. */
function sameColumns(a: string, b: string): boolean {
  return a === b || JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
}

function differs(): RunsealError {
  return new RunsealError("archive-differs", "R2 gives back other rows than the segments have");
}
