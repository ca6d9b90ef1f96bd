import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeUtf8, decodeUtf8Lossless } from "../../../shared/json/utf8.ts";

describe("decodeUtf8", () => {
  it("decodes what is UTF-8, a byte order mark included", () => {
    expect(decodeUtf8(new TextEncoder().encode("\ufeffé\u{1f642}"))).toEqual({
      ok: true,
      text: "\ufeffé\u{1f642}",
    });
  });

  const bad: [string, number[], string][] = [
    ["a stray continuation byte", [0x61, 0x80, 0x62], "a\udc80b"],
    ["bytes that never occur", [0xc0, 0xc1, 0xf5, 0xff], "\udcc0\udcc1\udcf5\udcff"],
    ["leads that never occur", [0xc1, 0xbf, 0xf5, 0x80, 0x80, 0x80], "\udcc1\udcbf\udcf5\udc80\udc80\udc80"],
    ["a cut sequence", [0xe2, 0x82], "\udce2\udc82"],
    ["a sequence that another cuts", [0xe2, 0x82, 0xc3, 0xa9], "\udce2\udc82é"],
    [
      "overlong forms",
      [0xe0, 0x9f, 0xbf, 0xf0, 0x8f, 0xbf, 0xbf],
      "\udce0\udc9f\udcbf\udcf0\udc8f\udcbf\udcbf",
    ],
    ["an encoded surrogate", [0xed, 0xa0, 0x80], "\udced\udca0\udc80"],
    ["a code point past U+10FFFF", [0xf4, 0x90, 0x80, 0x80], "\udcf4\udc90\udc80\udc80"],
  ];
  for (const [name, bytes, text] of bad) {
    it(`escapes ${name} byte by byte`, () => {
      expect(decodeUtf8(new Uint8Array(bytes))).toEqual({ ok: false, text });
    });
  }

  it("agrees with the platform on what is UTF-8, and loses no byte of the rest", () => {
    const interesting = fc.constantFrom(
      0x41,
      0x7f,
      0x80,
      0x9f,
      0xa0,
      0xbf,
      0xc2,
      0xdf,
      0xe0,
      0xe1,
      0xed,
      0xef,
      0xf0,
      0xf3,
      0xf4,
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(interesting, fc.nat(255)), { maxLength: 12 }), (list) => {
        const bytes = new Uint8Array(list);
        const { ok, text } = decodeUtf8(bytes);
        expect(ok).toBe(!/\p{Surrogate}/u.test(text));
        expect(decodeUtf8Lossless(bytes)).toBe(text);
        const parts = text.split(/([\udc80-\udcff])/u);
        const back = parts.map((part, i) =>
          i % 2 === 1 ? [part.charCodeAt(0) & 0xff] : [...Buffer.from(part, "utf8")],
        );
        expect(back.flat()).toEqual(list);
      }),
      { numRuns: 3000 },
    );
  });

  it("decodes long text in pieces", () => {
    const text = "aé€\u{1f642}".repeat(5_000);
    expect(decodeUtf8Lossless(new TextEncoder().encode(text))).toBe(text);
  });
});
