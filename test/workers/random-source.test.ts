import { describe, expect, it } from "vitest";
import { randomSource } from "../../native/random-source.ts";
import { toHex } from "../../shared/bytes.ts";

describe("random bytes in pieces", () => {
  it("are never given twice, within a block and over its end, of any length", () => {
    const random = randomSource();
    const seen = new Set<string>();
    let pieces = 0;
    for (let i = 0; i < 6000; i++) {
      for (const count of [16, 48, 17]) {
        const piece = random(count);
        expect(piece.length).toBe(count);
        seen.add(toHex(piece.subarray(0, 16)));
        pieces += 1;
      }
    }
    expect(seen.size).toBe(pieces);
    expect(random(40_000).length).toBe(40_000);
  });

  it("are windows that no other piece shares, and differ from source to source", () => {
    const random = randomSource();
    const first = random(16);
    const before = toHex(first);
    const second = random(16);
    second.fill(0);
    for (let i = 0; i < 4000; i++) random(16);
    expect(toHex(first)).toBe(before);
    expect(toHex(randomSource()(16))).not.toBe(toHex(randomSource()(16)));
  });
});
