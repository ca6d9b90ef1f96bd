import { describe, expect, it } from "vitest";
import type { BoxEntry } from "../../../durable-objects/content/boxes.ts";
import { BoxReader, KEY_BYTES, newKeys, sealBoxes } from "../../../durable-objects/content/boxes.ts";

const LOG = new Uint8Array(32).fill(7);
const key = (n: number) => new Uint8Array(KEY_BYTES).fill(n);
const ENTRIES: BoxEntry[] = [
  { id: "a", sealed: { key: key(1), text: '{"action":{"a":"é😀"}}\u0001{"action":{"a":"00"}}' } },
  { id: "b", sealed: null },
  { id: "c", sealed: { key: key(3), text: "x".repeat(100_000) } },
];
const altered = expect.objectContaining({ code: "content-altered" });

describe("a content object", async () => {
  const bytes = await sealBoxes(LOG, 513, ENTRIES);

  it("gives each text to who holds the entry's key, and says which entries had none", () => {
    const reader = new BoxReader(bytes);
    expect([reader.firstSeq, reader.count]).toEqual([513, 3]);
    expect([0, 1, 2].map((place) => reader.isEmpty(place))).toEqual([false, true, false]);
    expect(reader.open(0, key(1), LOG, "a")).toBe(ENTRIES[0]?.sealed?.text);
    expect(reader.open(2, key(3), LOG, "c")).toBe(ENTRIES[2]?.sealed?.text);
  });

  it("opens for no other key, log, entry or place", () => {
    const reader = new BoxReader(bytes);
    expect(() => reader.open(0, key(2), LOG, "a")).toThrow(altered);
    expect(() => reader.open(0, key(1), new Uint8Array(32), "a")).toThrow(altered);
    expect(() => reader.open(0, key(1), LOG, "c")).toThrow(altered);
    expect(() => reader.open(2, key(1), LOG, "a")).toThrow(altered);
    expect(() => reader.open(1, key(1), LOG, "b")).toThrow(altered);
  });

  it("is refused with any of its bytes changed, or cut", () => {
    // Every byte of the head and of the first box; the rest is a box like it.
    for (let at = 0; at < 160; at++) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ 0x40;
      let opened: unknown;
      try {
        const reader = new BoxReader(changed);
        opened = [
          reader.firstSeq,
          reader.count,
          reader.open(0, key(1), LOG, "a"),
          reader.open(2, key(3), LOG, "c"),
        ];
      } catch (error) {
        opened = (error as { code?: string }).code;
      }
      const expected = at >= 31 && at < 39 ? expect.arrayContaining([3]) : "content-altered";
      expect([at, opened]).toEqual([at, expected]);
    }
    for (const length of [0, 10, 42, 60, bytes.length - 1]) {
      expect(() => new BoxReader(bytes.slice(0, length))).toThrow(altered);
    }
    expect(() => new BoxReader(new Uint8Array([...bytes, 0]))).toThrow(altered);
  });

  it("never has the same bytes twice, and has no text in it", async () => {
    expect(await sealBoxes(LOG, 513, ENTRIES)).not.toEqual(bytes);
    expect(new TextDecoder().decode(bytes)).not.toContain("xxxx");
    const keys = newKeys(2);
    expect(keys.subarray(0, KEY_BYTES)).not.toEqual(keys.subarray(KEY_BYTES));
  });
});
