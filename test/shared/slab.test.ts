import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Slab } from "../../shared/slab.ts";

describe("a slab", () => {
  it("gives each its own bytes, all zero, whatever was taken before", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(400), fc.nat(70_000)), { maxLength: 300 }), (lengths) => {
        const slab = new Slab();
        const taken = lengths.map((length, i) => {
          const bytes = slab.take(length);
          expect(bytes.length).toBe(length);
          expect(bytes.every((byte) => byte === 0)).toBe(true);
          return bytes.fill((i % 255) + 1);
        });
        taken.forEach((bytes, i) => {
          expect(bytes.every((byte) => byte === (i % 255) + 1)).toBe(true);
        });
      }),
      { numRuns: 50 },
    );
  });
});
