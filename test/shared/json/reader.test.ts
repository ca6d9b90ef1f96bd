import { describe, expect, it } from "vitest";
import { RunsealError } from "../../../shared/errors.ts";
import { JsonError } from "../../../shared/json/errors.ts";
import { JsonReader } from "../../../shared/json/reader.ts";
import { decodeUtf8 } from "../../../shared/json/utf8.ts";

/** The refusal that the call throws, as "code pointer". */
function refusal(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return `${error.code} ${error.pointer}`;
  }
  return "accepted";
}

/** Reads a batch as an entry parser does: what is wrong with one element costs that element alone. */
function readBatch(reader: JsonReader): (Record<string, string> | string)[] {
  const out: (Record<string, string> | string)[] = [];
  reader.enterArray();
  while (reader.nextElement()) {
    const mark = reader.mark();
    try {
      out.push(readFields(reader));
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      out.push(`${error.code} ${error.pointer}`);
      reader.rewind(mark);
      reader.skipValue();
    }
  }
  reader.finish();
  return out;
}

function readFields(reader: JsonReader): Record<string, string> {
  const fields: Record<string, string> = {};
  reader.enterObject();
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (key === "action") fields[key] = JSON.stringify(readFields(reader));
    else fields[key] = reader.readCanonical();
  }
  return fields;
}

describe("JsonReader", () => {
  it("pulls an object apart and gives each value's canonical text", () => {
    const reader = new JsonReader(
      ' { "kind" : "a\\u0062" , "n": 1.0, "on":true, "off" :false,"nil":null,"x":{"b":1,"a":[ ]} } ',
    );
    expect(reader.peek()).toBe("object");
    reader.enterObject();
    expect(reader.nextKey()).toBe("kind");
    expect(reader.peek()).toBe("string");
    expect(reader.readString()).toBe("ab");
    expect(reader.nextKey()).toBe("n");
    expect(reader.peek()).toBe("number");
    expect(reader.readNumber()).toBe("1.0");
    expect(reader.nextKey()).toBe("on");
    expect(reader.peek()).toBe("boolean");
    expect(reader.readLiteral()).toBe(true);
    expect(reader.nextKey()).toBe("off");
    expect(reader.readLiteral()).toBe(false);
    expect(reader.nextKey()).toBe("nil");
    expect(reader.peek()).toBe("null");
    expect(reader.readLiteral()).toBeNull();
    expect(reader.nextKey()).toBe("x");
    expect(reader.readCanonical()).toBe('{"a":[],"b":1}');
    expect(reader.nextKey()).toBeNull();
    reader.finish();
  });

  it("reads only the given part of the text", () => {
    const text = '{"a":1}\n{"a":12}\n[tru';
    const second = new JsonReader(text, 8, 16);
    expect(second.readCanonical()).toBe('{"a":12}');
    second.finish();
    expect(refusal(() => new JsonReader("123", 0, 0).readCanonical())).toBe("json-syntax ");
    expect(new JsonReader("123", 0, 2).readCanonical()).toBe("12");
    expect(refusal(() => new JsonReader('"abc"', 0, 3).readCanonical())).toBe("json-syntax ");
    expect(refusal(() => new JsonReader("true", 0, 3).readCanonical())).toBe("json-syntax ");
    expect(refusal(() => new JsonReader('"\\u0041"', 0, 6).readCanonical())).toBe("json-syntax ");
    expect(refusal(() => new JsonReader("1e5", 0, 2).readCanonical())).toBe("json-syntax ");
    expect(refusal(() => new JsonReader("-1", 0, 1).skipValue())).toBe("json-syntax ");
    expect(refusal(() => new JsonReader('"\\n"', 0, 2).skipValue())).toBe("json-syntax ");
    for (const text of ["1.5", "1e5", "12", "1  ", "1}"]) {
      const reader = new JsonReader(text, 0, 1);
      expect(reader.readCanonical()).toBe("1");
      reader.finish();
      expect(reader.offset).toBe(1);
    }
  });

  it("names the place it stands at", () => {
    const reader = new JsonReader('[0,{"a/b":{"c":[true,7]}},9]');
    expect(reader.pointer).toBe("");
    reader.enterArray();
    expect(reader.pointer).toBe("");
    reader.nextElement();
    reader.readNumber();
    reader.nextElement();
    expect(reader.pointer).toBe("/1");
    reader.enterObject();
    reader.nextKey();
    reader.enterObject();
    reader.nextKey();
    reader.enterArray();
    reader.nextElement();
    reader.readLiteral();
    reader.nextElement();
    expect(reader.pointer).toBe("/1/a~1b/c/1");
    expect(reader.readNumber()).toBe("7");
    expect(reader.pointer).toBe("/1/a~1b/c/1");
    expect(reader.nextElement()).toBe(false);
    expect(reader.nextKey()).toBeNull();
    expect(reader.nextKey()).toBeNull();
    expect(reader.nextElement()).toBe(true);
    expect(reader.pointer).toBe("/2");
  });

  it("refuses repeated keys on the levels that are entered", () => {
    expect(
      readBatch(new JsonReader('[{"a":1,"a":2},{"b":1,"c":2,"\\u0062":3},{"action":{"x":1,"x":2}}]')),
    ).toEqual(["json-duplicate-key /0/a", "json-duplicate-key /1/b", "json-duplicate-key /2/action/x"]);
  });

  it("names another kind of value than the one asked for, and reads nothing", () => {
    const reader = new JsonReader('{"a":[1]}');
    expect(refusal(() => reader.enterArray())).toBe("json-kind ");
    expect(refusal(() => reader.readString())).toBe("json-kind ");
    reader.enterObject();
    reader.nextKey();
    expect(refusal(() => reader.readNumber())).toBe("json-kind /a");
    expect(refusal(() => reader.readLiteral())).toBe("json-kind /a");
    expect(refusal(() => reader.nextElement())).toBe("json-kind /a");
    expect(reader.readCanonical()).toBe("[1]");
  });

  it("points into values, keys and separators of entered levels", () => {
    const at = (text: string): string => refusal(() => readBatch(new JsonReader(text)));
    expect(
      readBatch(
        new JsonReader(
          '[{"a":{"b":[1e999]}},{"action":{"f":"\\ud800"}},{"\\ud800":1},{"action":{"\\udc00":1}}]',
        ),
      ),
    ).toEqual([
      "json-number /0/a/b/0",
      "json-surrogate /1/action/f",
      "json-surrogate /2",
      "json-surrogate /3/action",
    ]);
    expect(at('[{"a":1} {"b":1}]')).toBe("json-syntax ");
    expect(at('[{"a":1},]')).toBe("json-syntax /1");
    expect(at('[{"a":1 "b":1}]')).toBe("json-syntax /0");
    expect(at('[{"a" 1}]')).toBe("json-syntax /0/a");
    expect(at('[{"a":tru}]')).toBe("json-syntax /0/a");
    expect(at('[{"a":1}')).toBe("json-syntax ");
    expect(at('[{"a":1}]x')).toBe("json-syntax ");
  });

  it("goes on with the next element after a value that is refused for its meaning", () => {
    const levels = 10_000;
    const deep = `{"x":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    expect(
      readBatch(
        new JsonReader(`[{"a":1},${deep},{"a":"\\ud800","b":[{}]},7,{"action":{"k":1e999}},{"z":9}]`),
      ),
    ).toEqual([
      { a: "1" },
      `json-depth /1/x${"/0".repeat(256)}`,
      "json-surrogate /2/a",
      "json-kind /3",
      "json-number /4/action/k",
      { z: "9" },
    ]);
  });
});

describe("skipValue", () => {
  it("reads past a million levels without a stack", () => {
    const levels = 1_000_000;
    const arrays = new JsonReader(`[${"[".repeat(levels)}1${"]".repeat(levels)},2]`);
    arrays.enterArray();
    arrays.nextElement();
    arrays.skipValue();
    arrays.nextElement();
    expect(arrays.readNumber()).toBe("2");
    const objects = new JsonReader(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);
    objects.skipValue();
    objects.finish();
  });

  it("refuses a million levels without a stack", () => {
    expect(refusal(() => new JsonReader("[".repeat(1_000_000)).readCanonical())).toBe(
      `json-depth ${"/0".repeat(256)}`,
    );
    const code = refusal(() => new JsonReader("[".repeat(1_000_000)).skipValue());
    expect(code.slice(0, 11)).toBe("json-syntax");
    expect(code.length).toBeLessThan(2_000);
  });

  it("refuses what closes something else", () => {
    for (const text of ["[1}", '{"a":1]', "[[]}", '[{"a":1]}', "[1,}", '{"a":1,]']) {
      expect(refusal(() => new JsonReader(text).skipValue())).toMatch(/^json-syntax /);
      expect(refusal(() => new JsonReader(text).readCanonical())).toMatch(/^json-syntax /);
    }
  });

  it("passes what is wrong in meaning only", () => {
    for (const text of [
      '{"a":1,"a":2}',
      '"\\ud800"',
      "1e999",
      '["\ud800"]',
      '{"\\udc00":[{},[],"",-0.1E+5]}',
    ]) {
      const reader = new JsonReader(text);
      reader.skipValue();
      reader.finish();
      expect(() => new JsonReader(text).readCanonical()).toThrow(JsonError);
    }
  });
});

describe("a reader of text with bad bytes", () => {
  const bytes = (...parts: (string | number[])[]): Uint8Array =>
    new Uint8Array(
      parts.flatMap((part) => (typeof part === "string" ? [...new TextEncoder().encode(part)] : part)),
    );
  const read = (...parts: (string | number[])[]): JsonReader => {
    const { ok, text } = decodeUtf8(bytes(...parts));
    return new JsonReader(text, 0, text.length, { escapedBytes: !ok });
  };

  it("names the string that holds them and reads the others", () => {
    expect(readBatch(read('[{"a":"\u{1f642}"},{"a":["x",', '"y', [0xff], '"]},{"a":"z"}]'))).toEqual([
      { a: '"\u{1f642}"' },
      "json-utf8 /1/a/1",
      { a: '"z"' },
    ]);
  });

  it("names the object whose key holds them", () => {
    expect(readBatch(read('[{"a":{"k', [0x80], '":1}},{"k', [0xc3], '":1}]'))).toEqual([
      "json-utf8 /0/a",
      "json-utf8 /1",
    ]);
  });

  it("refuses them outside of strings", () => {
    expect(refusal(() => readBatch(read("[{}", [0xfe], "]")))).toBe("json-utf8 ");
  });

  it("does not take a lone surrogate for a byte in text that was decoded well", () => {
    expect(refusal(() => new JsonReader('["\udc80"]').readCanonical())).toBe("json-surrogate /0");
    expect(refusal(() => read('["\\udc80', [0xff], '"]').readCanonical())).toBe("json-surrogate /0");
  });
});
