import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Losses, readJson } from "../../../cli/import/lenient.ts";
import { MAX_SOURCE_DEPTH } from "../../../cli/import/tree.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";

/** The canonical text of what is read, and the reasons of what was repaired on the way. */
function read(text: string): { text: string; losses: Losses; value: JsonValue } {
  const losses = new Losses();
  const value = readJson(text, losses);
  return { text: jsonText(value), losses, value };
}

describe("readJson", () => {
  it("gives what the strict reader gives where that one accepts the text", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        let strict: string;
        try {
          strict = jsonText(parseJsonValue(text));
        } catch {
          return;
        }
        const found = read(text);
        expect(found.text).toBe(strict);
        expect(found.losses.count).toBe(0);
      }),
    );
  });

  it("reads a text with one refused string exactly as the strict reader does without it", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        try {
          parseJsonValue(text);
        } catch {
          return;
        }
        const found = read(`[${text}, "\\ud800"]`);
        expect(found.text).toBe(`[${jsonText(parseJsonValue(text))},"\ufffd"]`);
        expect(found.losses.count).toBe(1);
      }),
    );
  });

  it("repairs an unpaired surrogate and says so, raw or escaped, and keeps a pair", () => {
    for (const bad of ["\\ud83d", "\\udc00x", "\\ud83d\\ud83d\\ude00", "\ud83d"]) {
      const { value, losses } = read(`{"a":"${bad}"}`);
      const text = value instanceof Map ? value.get("a") : undefined;
      expect(text).toContain("\ufffd");
      expect(losses.reason(text ?? null)).toBe("json-surrogate");
    }
    expect(read('["\\ud83d\\ude00"]').text).toBe('["😀"]');
  });

  it("marks Python's NaN and numbers that are not finite, and keeps their text", () => {
    expect(read("[NaN,-Infinity,1e400,5.0,12345678901234567890]").text).toBe(
      '[{"head":"NaN","runseal.lossy":"json-number"},{"head":"-Infinity","runseal.lossy":"json-number"},' +
        '{"head":"1e400","runseal.lossy":"json-number"},5.0,12345678901234567890]',
    );
  });

  it("keeps the last of two equal keys and marks the object", () => {
    const { text, losses, value } = read('{"a":1,"a":2,"b":3}');
    expect(text).toBe('{"a":2,"b":3}');
    expect(losses.reason(value)).toBe("json-duplicate-key");
  });

  it("replaces what nests too deep, however deep, and reads on behind it", () => {
    const deep = 100_000;
    const { value, losses } = read(`{"deep":${"[".repeat(deep)}"]"${"]".repeat(deep)},"after":1}`);
    expect(losses.count).toBe(1);
    expect(value instanceof Map && jsonText(value.get("after") ?? null)).toBe("1");
  });

  it("reads nesting up to its limit", () => {
    const text = `[NaN,${"[".repeat(MAX_SOURCE_DEPTH - 1)}${"]".repeat(MAX_SOURCE_DEPTH - 1)}]`;
    expect(read(text).losses.count).toBe(1);
    expect(read(`[${text}]`).losses.count).toBe(2);
    const strict = `${"[".repeat(MAX_SOURCE_DEPTH)}${"]".repeat(MAX_SOURCE_DEPTH)}`;
    expect(read(strict)).toMatchObject({ text: strict, losses: { count: 0 } });
    expect(read(`[${strict}]`).losses.count).toBe(1);
  });

  it("keeps raw control characters, and __proto__ as a key like any other", () => {
    expect(read('{"__proto__":"a\tb\u0001","x":NaN}').text).toContain('"__proto__":"a\\tb\\u0001"');
  });

  it.each(["", "{", '{"a" 1}', "[1,]", "[NaN 1]", '["\\x"]', '{"a":NaN,}', "nul", '["abc', "[1] 2", "{1:2}"])(
    "refuses %j, which is no JSON at all",
    (text) => {
      expect(() => read(text)).toThrow(expect.objectContaining({ code: "import-json" }));
    },
  );
});
