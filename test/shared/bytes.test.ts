import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  compareBytes,
  concat,
  equalSecret,
  fromBase64,
  fromHex,
  toBase64,
  toHex,
} from "../../shared/bytes.ts";

describe("hex and base64", () => {
  it("give what the platform's Buffer gives, and back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(toHex(bytes)).toBe(buffer.toString("hex"));
        expect(toBase64(bytes)).toBe(buffer.toString("base64"));
        expect(Buffer.compare(fromHex(toHex(bytes)), bytes)).toBe(0);
        expect(Buffer.compare(fromBase64(toBase64(bytes)), bytes)).toBe(0);
      }),
    );
  });

  it.each([
    "A",
    "AA",
    "AAA",
    "A===",
    "====",
    "=",
    "AA=A",
    "AB==",
    "AAB=",
    "A-_A",
    "AAAA\n",
    " AAAA",
    "AA==AAAA",
    "é===",
  ])("refuse %j: there is one text for the same bytes", (text) => {
    expect(() => fromBase64(text)).toThrow(expect.objectContaining({ code: "bad-base64" }));
  });

  it.each(["a", "AB", "0g", " 0", "00 "])("refuse %j as hex", (text) => {
    expect(() => fromHex(text)).toThrow(expect.objectContaining({ code: "bad-hex" }));
  });

  it("refuse hex of another length than is demanded", () => {
    expect(() => fromHex("abcd", 3)).toThrow(expect.objectContaining({ code: "bad-hex" }));
    expect(toHex(fromHex("abcd", 2))).toBe("abcd");
  });
});

describe("comparison", () => {
  it("orders as Buffer does, and secrets are equal only where all bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 8 }), fc.uint8Array({ maxLength: 8 }), (a, b) => {
        expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(a, b));
        expect(equalSecret(a, b)).toBe(Buffer.compare(a, b) === 0);
        expect(Buffer.compare(concat(a, b), Buffer.concat([a, b]))).toBe(0);
      }),
    );
  });
});
