import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { CedarValueError, cedarCount, cedarText, type Mapped } from "../../../shared/recheck/cedar-values.ts";
import { cedarEngine } from "../../support/cedar.ts";

function mapped(json: string): { text: string } & Mapped {
  const notes: Mapped = { nulls: false, numbers: false };
  const text = cedarText(canonicalJson(json), notes);
  return { text, ...notes };
}

const decimal = (text: string) => `{"__extn":{"arg":"${text}","fn":"decimal"}}`;

describe("a recorded value for Cedar", () => {
  it.each([
    ['{"b":1,"a":[true,"x"]}', '{"a":[true,"x"],"b":1}'],
    ["9223372036854775807", "9223372036854775807"],
    ["-9223372036854775808", "-9223372036854775808"],
    ["1.0", "1"],
    ["1e3", "1000"],
    ["-0", "0"],
    ["0.0e5", "0"],
    ['"null 1.5 -0 \\u003c"', '"null 1.5 -0 \\u003c"'],
  ])("is the same where Cedar has it: %s", (json, text) => {
    expect(mapped(json)).toEqual({ text, nulls: false, numbers: false });
  });

  it.each([
    ["1.5", decimal("1.5000")],
    ["-0.25", decimal("-0.2500")],
    ["12e-4", decimal("0.0012")],
    ["922337203685477.5807", decimal("922337203685477.5807")],
    ["-922337203685477.5808", decimal("-922337203685477.5808")],
    ["922337203685477.5808", '"922337203685477.5808"'],
    ["0.00001", '"0.00001"'],
    ["9223372036854775808", '"9223372036854775808"'],
    ["-9223372036854775809", '"-9223372036854775809"'],
    ["1e300", '"1e300"'],
  ])("is a decimal or its text, and noted, where it is another number: %s", (json, text) => {
    expect(mapped(json)).toEqual({ text, nulls: false, numbers: true });
  });

  it.each([
    ["null", ""],
    ['{"a":null,"b":[null,1,null],"c":{"d":null}}', '{"b":[1],"c":{}}'],
  ])("leaves out nulls, and is noted: %s", (json, text) => {
    expect(mapped(json)).toEqual({ text, nulls: true, numbers: false });
  });

  it.each(["__entity", "__extn", "__expr"])(
    "is refused with a member that Cedar reads as an escape: %s",
    (key) => {
      for (const json of [`{"${key}":1}`, `[{"a":{"${key}":null}}]`, `{"\\u005f${key.slice(1)}":{}}`])
        expect(() => mapped(json)).toThrow(CedarValueError);
      expect(mapped(`{"a":"{\\"${key}\\":1}"}`).text).toContain(key);
    },
  );

  it("is one that Cedar takes, whatever it was", () => {
    const engine = cedarEngine();
    const set = { key: "all", text: "permit(principal, action, resource);" };
    const value = fc.oneof(
      fc.json({ maxDepth: 4 }).filter((text) => !/e\+?\d{3}|__e/.test(text)),
      fc.constantFrom("1.50", "-0.00", "123456789012345678901234567890", "0.1e-3", "-922337203685477.5809"),
    );
    fc.assert(
      fc.property(value, (json) => {
        const { text } = mapped(`{"v":${json}}`);
        const answer = engine.authorize(
          set,
          (id) =>
            `{"principal":{"type":"A","id":""},"action":{"type":"A","id":""},"resource":{"type":"A","id":""},` +
            `"context":${text},"entities":[],"preparsedPolicySetId":"${id}"}`,
        );
        expect(answer).toMatchObject({ type: "success", response: { decision: "allow" } });
      }),
      { numRuns: 300 },
    );
  });

  it("is a count as any other number", () => {
    const notes: Mapped = { nulls: false, numbers: false };
    expect([0, -0, 12, "9223372036854775807"].map((count) => cedarCount(count, notes))).toEqual([
      "0",
      "0",
      "12",
      "9223372036854775807",
    ]);
    expect(notes.numbers).toBe(false);
    expect(cedarCount("9223372036854775808", notes)).toBe('"9223372036854775808"');
    expect(notes.numbers).toBe(true);
  });
});
