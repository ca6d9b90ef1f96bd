import { encode as cborgEncode } from "cborg";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concat } from "../../../shared/bytes.ts";
import { CborWriter, encodeCbor } from "../../../shared/cbor/encode.ts";

describe("CborWriter", () => {
  it("writes the same bytes as the generic encoder for every item", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 100 }),
        fc.uint8Array({ maxLength: 700 }),
        fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
        fc.maxSafeNat(),
        fc.boolean(),
        (text, bytes, big, number, flag) => {
          const writer = new CborWriter(1)
            .arrayHead(8)
            .text(text)
            .bytes(bytes)
            .uint(big)
            .uint(number)
            .negint(-1 - Math.floor(number / 2))
            .nil()
            .bool(flag);
          writer
            .mapHead(1)
            .text("k")
            .raw(encodeCbor([1]));
          const same = [
            text,
            bytes,
            big,
            number,
            -1 - Math.floor(number / 2),
            null,
            flag,
            new Map([["k", [1]]]),
          ];
          expect(writer.finish()).toEqual(encodeCbor(same));
        },
      ),
    );
  });

  it("writes every head at the borders of its length", () => {
    const BORDERS = [0, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];
    for (const count of BORDERS) {
      expect(new CborWriter().uint(count).finish()).toEqual(Uint8Array.from(cborgEncode(count)));
      expect(new CborWriter().uint(BigInt(count)).finish()).toEqual(Uint8Array.from(cborgEncode(count)));
      const negative = -1n - BigInt(count);
      expect(new CborWriter().negint(negative).finish()).toEqual(Uint8Array.from(cborgEncode(negative)));
      const head = new CborWriter().uint(count).finish();
      head[0]! |= 0x80;
      expect(new CborWriter().arrayHead(count).finish()).toEqual(head);
      head[0]! |= 0xa0;
      expect(new CborWriter().mapHead(count).finish()).toEqual(head);
    }
  });

  it("is empty after finish and can be used again without touching what it gave", () => {
    const writer = new CborWriter(4);
    const first = writer.text("first").finish();
    expect(writer.length).toBe(0);
    const second = writer.text("other").finish();
    expect(first).toEqual(encodeCbor("first"));
    expect(second).toEqual(encodeCbor("other"));
  });

  it("never shares its buffer with another writer that is in use", () => {
    const make = () => new CborWriter(8).text("a");
    make().finish();
    const [one, two] = [make(), make()];
    one.text("one");
    two.text("two").text("2".repeat(5000));
    one.text("1".repeat(3000));
    const finished = one.finish();
    const three = make().text("three");
    expect(one.text("again").finish()).toEqual(encodeCbor("again"));
    expect(two.finish()).toEqual(concat(...["a", "two", "2".repeat(5000)].map((text) => encodeCbor(text))));
    expect(three.finish()).toEqual(concat(encodeCbor("a"), encodeCbor("three")));
    expect(finished).toEqual(concat(...["a", "one", "1".repeat(3000)].map((text) => encodeCbor(text))));
  });

  it("says how many bytes were written, also after it had to grow", () => {
    const writer = new CborWriter(1);
    writer.bytes(new Uint8Array(1000)).text("x");
    expect(writer.length).toBe(3 + 1000 + 2);
    expect(writer.finish()).toEqual(concat(encodeCbor(new Uint8Array(1000)), encodeCbor("x")));
  });

  it("refuses integers out of range", () => {
    for (const bad of [-1, 1.5, 2 ** 53, -1n, 1n << 64n]) {
      expect(() => new CborWriter().uint(bad)).toThrow(expect.objectContaining({ code: "bad-cbor-value" }));
    }
    for (const bad of [0, 1.5, -(2 ** 53), 0n, -(1n << 64n) - 1n]) {
      expect(() => new CborWriter().negint(bad)).toThrow(expect.objectContaining({ code: "bad-cbor-value" }));
    }
    expect(() => new CborWriter().arrayHead(-1)).toThrow(expect.objectContaining({ code: "bad-cbor-value" }));
  });
});
