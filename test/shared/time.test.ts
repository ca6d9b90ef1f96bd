import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RunsealError } from "../../shared/errors.ts";
import { formatTime, isTime, MAX_TIME, parseTime } from "../../shared/time.ts";

const code = (call: () => unknown): string => {
  try {
    call();
  } catch (error) {
    if (error instanceof RunsealError) return error.code;
    throw error;
  }
  return "accepted";
};

describe("parseTime", () => {
  const accepted: [string, bigint][] = [
    ["1970-01-01T00:00:00Z", 0n],
    ["2026-10-01T09:00:00Z", 1790845200000000000n],
    ["2026-10-01T09:00:00.5Z", 1790845200500000000n],
    ["2026-10-01T09:00:00.000000001Z", 1790845200000000001n],
    ["2026-10-01t09:00:00.123456789z", 1790845200123456789n],
    ["2026-10-01T11:30:00.25+02:30", 1790845200250000000n],
    ["2026-09-30T23:00:00-10:00", 1790845200000000000n],
    ["2026-10-01T09:00:00-00:00", 1790845200000000000n],
    ["1970-01-01T23:59:00+23:59", 0n],
    ["1969-12-31T23:30:00-00:30", 0n],
    ["2024-02-29T00:00:00Z", 1709164800000000000n],
    ["2000-02-29T00:00:00Z", 951782400000000000n],
    ["2554-07-21T23:34:33.709551615Z", 18446744073709551615n],
    ["2554-07-22T01:34:33.709551615+02:00", 18446744073709551615n],
  ];
  for (const [text, ns] of accepted) {
    it(`reads ${text}`, () => {
      expect(parseTime(text)).toBe(ns);
      expect(isTime(text)).toBe(true);
    });
  }

  const refused = [
    "",
    "2026-10-01",
    "2026-10-01 09:00:00Z",
    "2026-10-01T09:00:00",
    "2026-10-01T09:00Z",
    "2026-10-01T09:00:00.Z",
    "2026-10-01T09:00:00,5Z",
    "2026-10-01T09:00:00.1234567890Z",
    "2026-10-01T09:00:00+0200",
    "2026-10-01T09:00:00+24:00",
    "2026-10-01T09:00:00+01:60",
    "2026-10-01T24:00:00Z",
    "2026-10-01T09:60:00Z",
    "2016-12-31T23:59:60Z",
    "2026-13-01T09:00:00Z",
    "2026-00-01T09:00:00Z",
    "2026-10-00T09:00:00Z",
    "2026-11-31T09:00:00Z",
    "2026-02-29T09:00:00Z",
    "2100-02-29T09:00:00Z",
    "1969-12-31T23:59:59.999999999Z",
    "1970-01-01T00:00:00+00:01",
    "0070-01-01T00:00:00Z",
    "2554-07-21T23:34:33.709551616Z",
    "2555-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    " 2026-10-01T09:00:00Z",
    "2026-10-01T09:00:00Z\n",
    "٢026-10-01T09:00:00Z",
    "+02026-10-01T09:00:00Z",
  ];
  for (const text of refused) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      expect(code(() => parseTime(text))).toBe("bad-time");
      expect(isTime(text)).toBe(false);
    });
  }
});

describe("formatTime", () => {
  it("drops the fraction's trailing zeros, and an empty fraction", () => {
    expect(formatTime(0n)).toBe("1970-01-01T00:00:00Z");
    expect(formatTime(1790845200000000000n)).toBe("2026-10-01T09:00:00Z");
    expect(formatTime(1790845200500000000n)).toBe("2026-10-01T09:00:00.5Z");
    expect(formatTime(1790845200000000010n)).toBe("2026-10-01T09:00:00.00000001Z");
    expect(formatTime(MAX_TIME)).toBe("2554-07-21T23:34:33.709551615Z");
  });

  it("refuses what does not fit 64 bits", () => {
    expect(code(() => formatTime(-1n))).toBe("bad-time");
    expect(code(() => formatTime(MAX_TIME + 1n))).toBe("bad-time");
  });

  it("is undone by parseTime, at any offset", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: MAX_TIME }),
        fc.integer({ min: -1439, max: 1439 }),
        (ns, minutes) => {
          const text = formatTime(ns);
          expect(parseTime(text)).toBe(ns);
          const shifted = ns + BigInt(minutes) * 60_000_000_000n;
          if (shifted < 0n || shifted > MAX_TIME) return;
          const [h, m] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((n) =>
            String(n).padStart(2, "0"),
          );
          const local = formatTime(shifted).replace("Z", `${minutes < 0 ? "-" : "+"}${h}:${m}`);
          expect(parseTime(local)).toBe(ns);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
