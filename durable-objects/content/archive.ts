/**
 * Puts the content of archived entries into R2: after each mirror pass, for the entries whose bundles are there. Nothing
 * of it happens on the way from an append to its receipt.
 *
 * The keys are durable before the object is put, and the object's name is random: a put whose answer was lost is made
 * again under the same name, create-only, and what is there then is what the first one put.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { toHex } from "../../shared/bytes.ts";
import { idOfColumns } from "../../shared/entry/columns.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import { breathe } from "../breathe.ts";
import type { Segment } from "../principal-log/storage.ts";
import type { BoxEntry } from "./boxes.ts";
import { KEY_BYTES, newKeys, sealBoxes } from "./boxes.ts";
import type { ContentChunk, ContentKeys } from "./content-keys.ts";
import type { Pass } from "./pass.ts";

/** Bounds. An object, so that a test can lower them. */
export const CONTENT_LIMITS = {
  /** Objects of one pass: sealing takes tens of microseconds an entry of the thread that appends are served by. */
  objects: 4,
  /** Entries that wait to be sealed, at most, while the log is at work. */
  backlog: 16_384,
  /** Objects of one pass beyond that: as many entries as come in between two passes, or the backlog would only grow. */
  busyObjects: 16,
  /** Entries of one object. */
  entries: 1024,
  /** UTF-8 bytes of values and salts, unless one entry alone has more: what one pass holds in memory, twice. */
  bytes: 8 * 1024 * 1024,
};

/** Sections without a field: such an entry has nothing to seal. */
const NO_VALUES = /^\{(?:"[a-z]+":\{\},?)*\}$/;

export interface ContentArchiveContext {
  readonly keys: ContentKeys;
  readonly bucket: R2Bucket;
  /** Key prefix of the log. */
  readonly prefix: string;
  readonly logId: Uint8Array;
  /** Segments that hold entries from `seq` on, in order. */
  readonly segmentsFrom: (seq: number) => Iterable<Segment>;
  /** Up to which entry full bundles are in R2. */
  readonly archivedSeq: () => number;
  /** Resolves once what was stored is durable. */
  readonly sync: () => Promise<void>;
}

interface Waiting {
  readonly id: string;
  /** `values U+0001 salts`; null where there is no value. */
  readonly text: string | null;
}

/** Key of a content object in R2. */
export function contentPath(prefix: string, chunk: Pick<ContentChunk, "name">): string {
  return `${prefix}/content/${chunk.name}`;
}

export class ContentArchive {
  readonly #context: ContentArchiveContext;
  #running: Promise<void> | null = null;

  constructor(context: ContentArchiveContext) {
    this.#context = context;
  }

  /** Whether archived entries have content that R2 lacks. */
  get isBehind(): boolean {
    return this.#context.keys.boxedSeq < this.#context.archivedSeq();
  }

  /** Archived entries whose content R2 lacks. */
  get backlog(): number {
    return Math.max(0, this.#context.archivedSeq() - this.#context.keys.boxedSeq);
  }

  /** Puts the next objects that R2 lacks, as far as the pass goes. Throws what R2 and the storage throw. */
  async run(pass: Pass): Promise<void> {
    this.#running ??= this.#run(pass).finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  async #run(pass: Pass): Promise<void> {
    const { keys, bucket, prefix, logId, sync } = this.#context;
    for (let object = 0; pass.goesOn(object) && this.isBehind; object++) {
      const { chunk, entries } = this.#begin();
      // Durable before anything is sealed under the keys. Whoever erases an entry from now on deletes its key.
      await sync();
      const bytes = await sealBoxes(logId, chunk.firstSeq, entries);
      // Null: it is there already, from a put whose answer was lost.
      await bucket.put(contentPath(prefix, chunk), bytes, { onlyIf: new Headers({ "If-None-Match": "*" }) });
      keys.boxedSeq = chunk.firstSeq + chunk.count - 1;
      await breathe();
    }
  }

  /** The next object, with its keys stored. There is no await in here: what was erased before is not in it. */
  #begin(): { chunk: ContentChunk; entries: BoxEntry[] } {
    const { keys } = this.#context;
    const firstSeq = keys.boxedSeq + 1;
    const begun = keys.chunkOf(firstSeq);
    const waiting = this.#read(firstSeq, begun?.count ?? null);
    const chunk = begun ?? newChunk(firstSeq, waiting);
    if (begun === null) keys.add(chunk);
    const entries = waiting.map(({ id, text }, place): BoxEntry => {
      // Without a key: nothing to seal, or erased since the keys were stored.
      const key = chunk.keys.get(place);
      return { id, sealed: text === null || key === undefined ? null : { key, text } };
    });
    return { chunk, entries };
  }

  /** Entries from `firstSeq` on: as many as fit, or exactly `count`. */
  #read(firstSeq: number, count: number | null): Waiting[] {
    const { segmentsFrom, archivedSeq } = this.#context;
    const last = count === null ? archivedSeq() : firstSeq + count - 1;
    const out: Waiting[] = [];
    let bytes = 0;
    for (const segment of segmentsFrom(firstSeq)) {
      let seq = segment.firstSeq;
      for (const row of segment.rows.split("\n")) {
        if (seq > last) return out;
        if (seq === firstSeq + out.length) {
          const entry = waitingOf(row);
          bytes += entry.text === null ? 0 : Buffer.byteLength(entry.text);
          const full = out.length >= CONTENT_LIMITS.entries || bytes > CONTENT_LIMITS.bytes;
          if (count === null && full && out.length > 0) return out;
          out.push(entry);
        }
        seq += 1;
      }
    }
    if (out.length < last - firstSeq + 1) {
      throw new RunsealError("storage-inconsistent", "a segment is gone before its content was archived");
    }
    return out;
  }
}

function waitingOf(row: string): Waiting {
  const { columns, values, salts } = parseRow(row);
  const id = idOfColumns(columns);
  const empty = values === null || NO_VALUES.test(values);
  return { id, text: empty ? null : `${values}\u0001${salts ?? ""}` };
}

function newChunk(firstSeq: number, entries: readonly Waiting[]): ContentChunk {
  const places = entries.flatMap(({ text }, place) => (text === null ? [] : [place]));
  const joined = newKeys(places.length);
  const keys = new Map(
    places.map((place, i) => [place, joined.subarray(i * KEY_BYTES, (i + 1) * KEY_BYTES)] as const),
  );
  const random = toHex(crypto.getRandomValues(new Uint8Array(16)));
  return { firstSeq, count: entries.length, name: `${firstSeq}.${random}`, keys };
}
