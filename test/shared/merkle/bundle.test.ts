import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toHex } from "../../../shared/bytes.ts";
import { decodeEntryBundle, encodeEntryBundle } from "../../../shared/merkle/bundle.ts";

describe("entry bundles", () => {
  const bad = expect.objectContaining({ code: "bad-bundle" });

  it("decode to the entries that they were made of", () => {
    const entries = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 256 });
    fc.assert(
      fc.property(entries, (some) => {
        expect(decodeEntryBundle(encodeEntryBundle(some))).toEqual(some);
        expect(decodeEntryBundle(encodeEntryBundle(some), some.length)).toEqual(some);
        expect(() => decodeEntryBundle(encodeEntryBundle(some), some.length + 1)).toThrow(bad);
      }),
      { numRuns: 50 },
    );
    const longest = new Uint8Array(65_535).fill(1);
    expect(decodeEntryBundle(encodeEntryBundle([longest, longest]))).toEqual([longest, longest]);
  });

  it("lie anywhere in a buffer", () => {
    const bundle = encodeEntryBundle([new Uint8Array([1, 2]), new Uint8Array(0)]);
    expect(toHex(bundle)).toBe("000201020000");
    const larger = new Uint8Array(20);
    larger.set(bundle, 5);
    expect(decodeEntryBundle(larger.subarray(5, 11))).toEqual([new Uint8Array([1, 2]), new Uint8Array(0)]);
  });

  it("are refused when cut short, empty or overfull", () => {
    const bundle = encodeEntryBundle([new Uint8Array(3), new Uint8Array(3)]);
    for (const length of [0, 1, 4, 6, 9])
      expect(() => decodeEntryBundle(bundle.subarray(0, length))).toThrow(bad);
    expect(() => decodeEntryBundle(new Uint8Array(2 * 257))).toThrow(bad);
    expect(() => encodeEntryBundle([])).toThrow(bad);
    expect(() => encodeEntryBundle(Array.from({ length: 257 }, () => new Uint8Array(1)))).toThrow(bad);
    expect(() => encodeEntryBundle([new Uint8Array(65_536)])).toThrow(bad);
  });
});
