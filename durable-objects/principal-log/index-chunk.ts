/**
 * The rows that D1 lacks of a log, a bounded number at a time, as one JSON5 array: D1 gets it as a bound parameter.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { toBase64, toHex } from "../../shared/bytes.ts";
import { parseRow } from "../../shared/entry/row.ts";
import { HASH_BYTES } from "../../shared/merkle/hash.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import { decodeFrame } from "./frame.ts";
import type { Segment } from "./storage.ts";

/** UTF-8 bytes of one chunk's text: a bound parameter of D1 holds 2 MB. Fewer chunks are fewer transactions there. */
const MAX_CHUNK_BYTES = 1_800_000;
/** Characters of a row whose content is bound on its own: escaped, and at three bytes each, it could pass the 2 MB. */
const LARGE_ROW_CHARS = 300_000;
const MAX_CHUNK_ENTRIES = 1000;

export const CHUNK_BOUNDS = { entries: MAX_CHUNK_ENTRIES, bytes: MAX_CHUNK_BYTES };

/** The columns that a chunk has of each entry, in the order of its values. */
export const INDEX_COLUMNS = [
  "hash",
  "leaf",
  "recorded_at",
  "id",
  "kind",
  "session",
  "run",
  "step",
  "call",
  "tool",
  "status",
  "content",
  "salts",
] as const;

export interface IndexChunk {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Hex. */
  readonly lastHash: string;
  readonly hashes: readonly string[];
  /** An array of rows, each an array in the order of the columns. */
  readonly rows: string;
  /** A JSON array with [run, first_seq, last_seq, entries] for each run among them. */
  readonly runs: string;
  /** Values and salts of a single large entry, whose row has null for them. */
  readonly large: { readonly values: string | null; readonly salts: string | null } | null;
}

/** The index columns of a stored row: what `columnsText` made. */
interface StoredColumns {
  readonly i: string;
  readonly k: string;
  readonly e?: string;
  readonly r?: string;
  readonly p?: string;
  readonly c?: string;
  readonly o?: string;
  readonly u?: string;
}

/**
 * The next chunk after `flushedSeq`, of these segments from there on; null where D1 holds everything.
 *
 * @param tree has the entries' hashes
 * @param size of the log; what lies behind is not taken
 */
export function nextChunk(
  tree: TileTree,
  segments: Iterable<Segment>,
  flushedSeq: number,
  size: number,
): IndexChunk | null {
  if (flushedSeq >= size) return null;
  const rows: string[] = [];
  const hashes: string[] = [];
  const runs = new RunSpans();
  // In one go: a call for each hash would take longer than its digits.
  const known = toHex(tree.leafHashes(flushedSeq, Math.min(size, flushedSeq + MAX_CHUNK_ENTRIES + 1)));
  let filled = 0;
  for (const segment of segments) {
    const recordedAt = BigInt(segment.recordedAtMs) * 1_000_000n;
    let seq = segment.firstSeq;
    for (const { bytes: leaf, row: text } of decodeFrame({ bytes: segment.leaves, rows: segment.rows })) {
      // What was committed since `size` was read: its hashes were not.
      if (seq > size) return rows.length === 0 ? null : finish();
      if (seq > flushedSeq) {
        const at = (seq - flushedSeq - 1) * 2 * HASH_BYTES;
        const hash = known.slice(at, at + 2 * HASH_BYTES);
        const large = text.length > LARGE_ROW_CHARS;
        if (large && rows.length > 0) return finish();
        const { columns, values, salts } = parseRow(text);
        const stored = JSON.parse(columns) as StoredColumns;
        const content = large ? "null,null" : `${quotedJson(values)},${quotedJson(salts)}`;
        const row = `['${hash}','${toBase64(leaf)}',${recordedAt},${columnValues(stored)},${content}]`;
        const bytes = Buffer.byteLength(row);
        const full = filled + bytes > MAX_CHUNK_BYTES || rows.length >= MAX_CHUNK_ENTRIES;
        if (rows.length > 0 && full) return finish();
        rows.push(row);
        hashes.push(hash);
        if (stored.r !== undefined) runs.add(stored.r, seq);
        if (large) return finish({ values, salts });
        filled += bytes;
      }
      seq += 1;
    }
  }
  return rows.length === 0 ? null : finish();

  function finish(large: IndexChunk["large"] = null): IndexChunk {
    return {
      firstSeq: flushedSeq + 1,
      lastSeq: flushedSeq + rows.length,
      lastHash: hashes.at(-1) ?? "",
      hashes,
      rows: `[${rows.join(",")}]`,
      runs: runs.json(),
      large,
    };
  }
}

function columnValues({ i, k, e, r, p, c, o, u }: StoredColumns): string {
  // Identifiers, kinds and statuses have no character that would need escaping.
  return `'${i}','${k}',${name(e)},${name(r)},${name(p)},${name(c)},${o === undefined ? "null" : JSON.stringify(o)},${name(u)}`;
}

function name(text: string | undefined): string {
  return text === undefined ? "null" : `'${text}'`;
}

/**
 * A JSON text as a string of JSON5. Between single quotes its own quotation marks stand as they are: on its way to D1 the
 * whole is escaped once more, and each mark would become four characters. JSON has no control character unescaped.
 */
function quotedJson(text: string | null): string {
  if (text === null) return "null";
  const escaped = text.includes("\\") ? text.replaceAll("\\", "\\\\") : text;
  return `'${escaped.includes("'") ? escaped.replaceAll("'", "\\'") : escaped}'`;
}

/** The spans of the runs of one chunk: told here, because to tell them in D1 would be to read the chunk once more there. */
class RunSpans {
  readonly #spans = new Map<string, { first: number; last: number; entries: number }>();

  add(run: string, seq: number): void {
    const span = this.#spans.get(run);
    if (span === undefined) this.#spans.set(run, { first: seq, last: seq, entries: 1 });
    else {
      span.last = seq;
      span.entries += 1;
    }
  }

  json(): string {
    return JSON.stringify([...this.#spans].map(([run, span]) => [run, span.first, span.last, span.entries]));
  }
}
