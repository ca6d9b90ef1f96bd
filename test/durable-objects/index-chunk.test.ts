import { env } from "cloudflare:workers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FramedEntry } from "../../durable-objects/principal-log/frame.ts";
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { IndexChunk } from "../../durable-objects/principal-log/index-chunk.ts";
import { CHUNK_BOUNDS, INDEX_COLUMNS, nextChunk } from "../../durable-objects/principal-log/index-chunk.ts";
import type { Segment } from "../../durable-objects/principal-log/storage.ts";
import { TileTree } from "../../durable-objects/tile-store/tile-tree.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toBase64, toHex } from "../../shared/bytes.ts";
import { formatRow } from "../../shared/entry/row.ts";

/** D1's limit of a bound parameter. */
const MAX_PARAMETER_BYTES = 2_000_000;

interface Given {
  readonly columns: Readonly<Record<string, string>>;
  readonly values: string | null;
  readonly salts: string | null;
}

/** A log's segments of these entries, so many each, and its tree. */
function logOf(entries: readonly Given[], perSegment: number): { tree: TileTree; segments: Segment[] } {
  const tiles = new Map<string, Uint8Array>();
  const tree = new TileTree(
    {
      tile: (level, tile) => tiles.get(`${level}/${tile}`) ?? null,
      setTile: (level, tile, hashes) => void tiles.set(`${level}/${tile}`, hashes),
    },
    nativeCrypto,
  );
  tree.adopt(
    entries.length,
    tree.write(
      entries.map((_, i) => hashOf(i + 1)),
      [],
    ),
  );
  const segments: Segment[] = [];
  for (let at = 0; at < entries.length; at += perSegment) {
    const framed = entries.slice(at, at + perSegment).map(
      ({ columns, values, salts }, i): FramedEntry => ({
        bytes: leafOf(at + i + 1),
        row: formatRow({ columns: JSON.stringify(columns), values, salts }),
      }),
    );
    const { bytes: leaves, rows } = encodeFrame(framed);
    segments.push({ firstSeq: at + 1, count: framed.length, recordedAtMs: timeOf(at + 1), leaves, rows });
  }
  return { tree, segments };
}

/** Leaves of one length, so that rows of one content are of one length. */
const leafOf = (seq: number): Uint8Array => new TextEncoder().encode(`leaf ${String(seq).padStart(5, "0")}`);
const hashOf = (seq: number): Uint8Array => nativeCrypto.sha256(leafOf(seq));
const timeOf = (firstSeq: number): number => 1_700_000_000_000 + firstSeq;

/** Every chunk of what is after `flushedSeq`. */
function chunksOf(entries: readonly Given[], perSegment = 7, flushedSeq = 0): IndexChunk[] {
  const { tree, segments } = logOf(entries, perSegment);
  const chunks: IndexChunk[] = [];
  for (let at = flushedSeq; ; ) {
    const from = segments.filter(({ firstSeq, count }) => firstSeq + count > at + 1);
    const chunk = nextChunk(tree, from, at, entries.length);
    if (chunk === null) return chunks;
    expect(chunk.firstSeq).toBe(at + 1);
    chunks.push(chunk);
    at = chunk.lastSeq;
  }
}

const lengths = (chunks: readonly IndexChunk[]): number[] =>
  chunks.map(({ firstSeq, lastSeq }) => lastSeq - firstSeq + 1);

const plain = (values = "{}"): Given => ({ columns: { i: "id", k: "k" }, values, salts: "{}" });
/** An entry whose row takes so many bytes in a chunk. */
const ofBytes = (bytes: number): Given => {
  const [{ rows } = { rows: "" }] = chunksOf([plain('""')]);
  return plain(JSON.stringify("x".repeat(bytes - rows.length + "[]".length)));
};

describe("the next chunk of what D1 lacks", () => {
  it.each([
    [0, []],
    [1, [1]],
    [1000, [1000]],
    [1001, [1000, 1]],
    [2500, [1000, 1000, 500]],
  ])("has at most 1000 entries: of %i", (count, expected) => {
    expect(lengths(chunksOf(Array.from({ length: count }, () => plain())))).toEqual(expected);
  });

  it("begins inside a segment, and tells the hashes and the last of them", () => {
    const entries = Array.from({ length: 20 }, () => plain());
    const [chunk] = chunksOf(entries, 7, 10);
    const hashes = entries.map((_, i) => toHex(hashOf(i + 1))).slice(10);
    expect(chunk).toMatchObject({ firstSeq: 11, lastSeq: 20, hashes, lastHash: hashes.at(-1), large: null });
    expect(chunksOf(entries, 7, 20)).toEqual([]);
  });

  it("ends with the log as it was when its size was read, inside a segment or between two", () => {
    const { tree, segments } = logOf(
      Array.from({ length: 20 }, () => plain()),
      7,
    );
    for (const size of [1, 7, 10, 14]) {
      const chunk = nextChunk(tree, segments, 0, size);
      expect(chunk).toMatchObject({ firstSeq: 1, lastSeq: size, lastHash: toHex(hashOf(size)) });
      expect(nextChunk(tree, segments, size, size)).toBeNull();
    }
  });

  it("is as long as its bytes allow, to the byte", () => {
    const row = 180_000;
    expect(CHUNK_BOUNDS.bytes).toBe(10 * row);
    const ten = Array.from({ length: 10 }, () => ofBytes(row));
    expect(lengths(chunksOf([...ten, plain()]))).toEqual([10, 1]);
    expect(lengths(chunksOf([...ten.slice(1), ofBytes(row + 1), plain()]))).toEqual([9, 2]);
    for (const { rows } of chunksOf(ten))
      expect(new TextEncoder().encode(rows).length).toBeLessThan(MAX_PARAMETER_BYTES);
  });

  it("counts bytes, not characters, and its escapes with them", () => {
    for (const [unit, bytes] of [
      ["é", 2],
      ["\u2028", 3],
      ["😀", 4],
      ["'", 2],
      // JSON makes two of it, and the chunk four.
      ["\\", 4],
    ] as const) {
      const values = JSON.stringify(unit.repeat(60_000));
      const perChunk = Math.floor(CHUNK_BOUNDS.bytes / (60_000 * bytes + 300));
      expect([unit, lengths(chunksOf(Array.from({ length: 2 * perChunk }, () => plain(values))))]).toEqual([
        unit,
        [perChunk, perChunk],
      ]);
    }
  });

  it("is one large entry alone, whose content it has beside its row", () => {
    const large: Given = {
      columns: { i: "id", k: "k", r: "run" },
      values: `"${"'".repeat(300_000)}"`,
      salts: "'",
    };
    const chunks = chunksOf([plain(), large, large, plain(), plain()]);
    expect(lengths(chunks)).toEqual([1, 1, 1, 2]);
    expect(chunks.map((chunk) => chunk.large)).toEqual([
      null,
      { values: large.values, salts: "'" },
      { values: large.values, salts: "'" },
      null,
    ]);
    expect(chunks[1]?.rows.length).toBeLessThan(300);
    expect(chunks.map(({ runs }) => runs)).toEqual(["[]", '[["run",2,2,1]]', '[["run",3,3,1]]', "[]"]);
  });

  it("tells the spans of its runs", () => {
    const runs = ["a", undefined, "b", "a", "b", undefined, "a"];
    const entries = runs.map(
      (r): Given => ({ ...plain(), columns: { i: "i", k: "k", ...(r === undefined ? {} : { r }) } }),
    );
    expect(JSON.parse(chunksOf(entries, 2)[0]?.runs ?? "")).toEqual([
      ["a", 1, 7, 3],
      ["b", 3, 5, 2],
    ]);
    expect(JSON.parse(chunksOf(entries, 2, 3)[0]?.runs ?? "")).toEqual([
      ["a", 4, 7, 2],
      ["b", 5, 5, 1],
    ]);
  });
});

const Name = fc.stringMatching(/^[A-Za-z0-9._:-]{1,12}$/);
const Unicode = fc.string({
  unit: fc.oneof(
    fc.constantFrom("'", '"', "\\", "\\'", '\\\\\\"', "\u0000", "\n", "\u2028", "\u2029", "\ufeff", "😀"),
    fc.string({ unit: "binary", minLength: 1, maxLength: 2 }),
  ),
  maxLength: 12,
});
const Entry: fc.Arbitrary<Given> = fc.record({
  columns: fc.record(
    { i: Name, k: Name, e: Name, r: Name, p: Name, c: Name, o: Unicode, u: Name },
    { requiredKeys: ["i", "k"], noNullPrototype: true },
  ) as fc.Arbitrary<Given["columns"]>,
  values: fc.option(Unicode.map((text) => JSON.stringify({ [text]: text }))),
  salts: fc.option(Unicode.map((text) => JSON.stringify({ [text]: text }))),
});

describe("the rows of a chunk", () => {
  it.each(["json_each", "jsonb_each"])("are the same entries again to %s of SQLite", async (each) => {
    const cells = INDEX_COLUMNS.map((column, i) =>
      column === "recorded_at"
        ? `CAST(value ->> ${i} AS TEXT) AS recorded_at`
        : `value ->> ${i} AS ${column}`,
    );
    await fc.assert(
      fc.asyncProperty(fc.array(Entry, { minLength: 1, maxLength: 8 }), async (entries) => {
        const [chunk] = chunksOf(entries, 3);
        const { results } = await env.DB.prepare(`SELECT ${cells.join(", ")} FROM ${each}(?1) ORDER BY key`)
          .bind(chunk?.rows ?? "")
          .all();
        const expected = entries.map(({ columns: { i, k, e, r, p, c, o, u }, values, salts }, at) => ({
          hash: toHex(hashOf(at + 1)),
          leaf: toBase64(leafOf(at + 1)),
          recorded_at: `${timeOf(at - (at % 3) + 1)}000000`,
          id: i,
          kind: k,
          session: e ?? null,
          run: r ?? null,
          step: p ?? null,
          call: c ?? null,
          tool: o ?? null,
          status: u ?? null,
          content: values,
          salts,
        }));
        expect(results).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});
