import { describe, expect, it } from "vitest";
import { JsonError } from "../../../shared/json/errors.ts";
import { JsonNumber, type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";

function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return `${error.code} ${error.pointer}`;
  }
  return "accepted";
}

describe("parseJsonValue", () => {
  it("keeps literals, the order of members and __proto__", () => {
    const value = parseJsonValue(
      ' {"n":[1.0,9007199254740993],"__proto__":{"x":null},"a":[true,"\\u00e9"]} ',
    );
    expect(value).toBeInstanceOf(Map);
    expect([...(value as Map<string, JsonValue>).keys()]).toEqual(["n", "__proto__", "a"]);
    const [one, large] = (value as Map<string, JsonValue>).get("n") as JsonNumber[];
    expect([one?.literal, large?.literal, one?.toNumber()]).toEqual(["1.0", "9007199254740993", 1]);
    expect(jsonText(value)).toBe('{"__proto__":{"x":null},"a":[true,"\u00e9"],"n":[1.0,9007199254740993]}');
  });

  it("refuses as the reader does, blank text too", () => {
    expect(refusal(() => parseJsonValue('{"a":[{"k":1,"k":2}]}'))).toBe("json-duplicate-key /a/0/k");
    expect(refusal(() => parseJsonValue(`${"[".repeat(10_000)}${"]".repeat(10_000)}`))).toBe(
      `json-depth ${"/0".repeat(256)}`,
    );
    expect(refusal(() => parseJsonValue("1 2"))).toBe("json-syntax ");
    expect(refusal(() => parseJsonValue(" "))).toBe("json-syntax ");
  });
});

describe("jsonText", () => {
  it("refuses trees that have no canonical text", () => {
    let deep: JsonValue = null;
    for (let i = 0; i < 256; i++) deep = [deep];
    expect(refusal(() => jsonText(deep))).toBe("accepted");
    expect(refusal(() => jsonText(new Map([["a/b", deep]])))).toBe(`json-depth /a~1b${"/0".repeat(255)}`);
    expect(refusal(() => jsonText(["x", "\ud800"]))).toBe("json-surrogate /1");
    expect(refusal(() => jsonText([new Map([["\udc00", null]])]))).toBe("json-surrogate /0");
  });
});

describe("JsonNumber", () => {
  it("is made of a number literal only", () => {
    for (const literal of ["", " 1", "1 ", "01", "1.", "+1", "true", '"1"', "[1]", "1,2", "NaN"]) {
      expect(refusal(() => new JsonNumber(literal))).toBe("json-syntax ");
    }
    expect(refusal(() => new JsonNumber("1e999"))).toBe("json-number ");
    expect(new JsonNumber("-0.0e-0").literal).toBe("-0.0e-0");
  });
});
