import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { decode } from "cborg";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { decodeLeaf } from "../../../shared/entry/decode-leaf.ts";
import { encodeLeaf } from "../../../shared/entry/leaf.ts";
import { scanLeaf } from "../../../shared/entry/scan-leaf.ts";
import { docExamples, fillExamples } from "../../vectors/doc.ts";
import { vectorFiles } from "../../vectors/files.ts";
import { leafJson } from "../../vectors/inputs.ts";
import { LEAVES } from "../../vectors/make-leaves.ts";
import { readVectorFile, readVectors } from "../../vectors/read.ts";

const folder = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "vectors");

interface LeafVector {
  readonly name: string;
  readonly leaf: Record<string, unknown>;
  readonly encoded: string;
}

describe("test/vectors", () => {
  it.each([
    ["native", nativeCrypto],
    ["pure", pureCrypto],
  ])("are what the code gives, with the %s crypto", (_, crypto) => {
    const files = vectorFiles(crypto);
    for (const [name, text] of files) expect([name, text]).toEqual([name, readVectorFile(name)]);
    expect([...files.keys()].sort()).toEqual(
      readdirSync(folder)
        .filter((name) => name.endsWith(".json"))
        .sort(),
    );
  });

  it("and the examples of docs/format.md are of one making", () => {
    const page = readFileSync(join(folder, "..", "..", "docs", "format.md"), "utf8");
    expect(fillExamples(page, docExamples(pureCrypto))).toBe(page);
    for (const name of docExamples(pureCrypto).keys()) expect(page).toContain(`<!-- example: ${name} -->`);
  });

  /** The same shape as `leafJson`, from what a CBOR library read. */
  function plain(value: unknown): unknown {
    if (value instanceof Uint8Array) return toHex(value);
    if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
    if (Array.isArray(value)) return value.map(plain);
    return typeof value === "bigint" ? String(value) : value;
  }

  it("cborg reads the same items from every leaf", () => {
    for (const { name, leaf, encoded } of readVectors<LeafVector[]>("leaf")) {
      const [tag, ...items] = decode(fromHex(encoded), { useMaps: true, strict: true }) as unknown[];
      expect(tag).toBe("runseal.entry.v1");
      const times = new Set(["recorded_at", "occurred_at"]);
      const expected = Object.entries(leaf).map(([key, value]) =>
        times.has(key) && value !== null && Number.isSafeInteger(Number(value)) ? Number(value) : value,
      );
      expect([name, items.map(plain)]).toEqual([name, expected]);
    }
  });

  it("hold a leaf with and without each optional item, every reporter, and the widest numbers and names", () => {
    const leaves = Object.values(LEAVES);
    for (const item of [
      "occurredAt",
      "session",
      "run",
      "step",
      "call",
      "actor",
      "authorization",
      "outcome",
      "client",
    ] as const) {
      expect(new Set(leaves.map((leaf) => leaf[item] === null)), item).toEqual(new Set([true, false]));
    }
    expect(new Set(leaves.map(({ submitter }) => submitter.reporter)).size).toBe(4);
    expect(
      leaves.some(({ recordedAt, occurredAt }) => recordedAt === 2n ** 64n - 1n && occurredAt === recordedAt),
    ).toBe(true);
    expect(leaves.some(({ action }) => [...action.keys()].some((name) => name.length === 64))).toBe(true);
    expect(Math.max(...leaves.map(({ action }) => action.size))).toBe(128);
  });

  it("decode to the leaf that was encoded, by the decoder and by the scanner", () => {
    for (const { name, leaf, encoded } of readVectors<LeafVector[]>("leaf")) {
      const bytes = fromHex(encoded);
      const decoded = decodeLeaf(bytes);
      expect([name, leafJson(decoded)]).toEqual([name, leaf]);
      expect(toHex(encodeLeaf(decoded))).toBe(encoded);
      expect(scanLeaf(bytes)).toMatchObject({
        seq: decoded.seq,
        epoch: decoded.epoch,
        hasClient: decoded.client !== null,
      });
    }
  });

  it("stay below the limit of a leaf with all that a leaf may hold", () => {
    const widest = readVectors<LeafVector[]>("leaf").find(({ name }) => name === "the widest of all");
    expect((widest?.encoded.length ?? 0) / 2).toBeGreaterThan(14_000);
    expect((widest?.encoded.length ?? 0) / 2).toBeLessThan(16_384);
  });
});
