import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RunsealError } from "../../shared/errors.ts";
import { isOpaqueId, timeOfId, uuidv7 } from "../../shared/ids.ts";

describe("isOpaqueId", () => {
  it("accepts 1 to 128 of [A-Za-z0-9._:-]", () => {
    for (const id of ["a", "-", "a.b_c:d-E9", "x".repeat(128)]) expect(isOpaqueId(id)).toBe(true);
    for (const id of ["", "x".repeat(129), "a b", "a/b", "é", "a\n", "\na", "a@b", "a\u0000"]) {
      expect(isOpaqueId(id)).toBe(false);
    }
  });
});

describe("uuidv7", () => {
  it("gives the example of RFC 9562, appendix A.6", () => {
    const random = new Uint8Array([
      0, 0, 0, 0, 0, 0, 0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f,
    ]);
    expect(uuidv7(0x017f22e279b0, random)).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  });

  it("carries version, variant and time, and is an opaque id", () => {
    const bytes = fc.uint8Array({ minLength: 16, maxLength: 16 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), bytes, (ms, random) => {
        const id = uuidv7(ms, random);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(isOpaqueId(id)).toBe(true);
        expect(timeOfId(id)).toBe(ms);
        expect(id.endsWith(Buffer.from(random.subarray(10)).toString("hex"))).toBe(true);
      }),
    );
  });

  it("drops a fraction of a millisecond", () => {
    expect(timeOfId(uuidv7(1234.9, new Uint8Array(16)))).toBe(1234);
  });

  it("refuses a time or random bytes that do not fit", () => {
    for (const call of [
      () => uuidv7(-1, new Uint8Array(16)),
      () => uuidv7(2 ** 48, new Uint8Array(16)),
      () => uuidv7(Number.NaN, new Uint8Array(16)),
      () => uuidv7(0, new Uint8Array(15)),
    ]) {
      expect(call).toThrow(RunsealError);
    }
  });
});

describe("timeOfId", () => {
  it("reads the time of a ULID", () => {
    expect(timeOfId("01ARYZ6S41TSV4RRFFQ69G5FAV")).toBe(1469918176385);
    expect(timeOfId("00000000000000000000000000")).toBe(0);
    expect(timeOfId("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")).toBe(2 ** 48 - 1);
  });

  it("gives null for every other id", () => {
    for (const id of [
      "",
      "run-1",
      "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
      "01ARYZ6S41TSV4RRFFQ69G5FAI",
      "01ARYZ6S41TSV4RRFFQ69G5FAU",
      "01aryz6s41tsv4rrffq69g5fav",
      "01ARYZ6S41TSV4RRFFQ69G5FA",
      "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
      "017f22e279b07cc398c4dc0c0c07398f",
      "017f22e2-79b0-4cc3-98c4-dc0c0c07398f",
      "017f22e2-79b0-7cc3-c8c4-dc0c0c07398f",
      "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
    ]) {
      expect(timeOfId(id)).toBeNull();
    }
  });
});
