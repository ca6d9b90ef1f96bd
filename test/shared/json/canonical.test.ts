import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canonicalJson, checkJson, policyJson } from "../../../shared/json/canonical.ts";
import { JsonError, type JsonErrorCode } from "../../../shared/json/errors.ts";
import { JsonReader } from "../../../shared/json/reader.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex");

/** The refusal that the call throws, as [code, pointer, offset]. */
function refusal(call: () => unknown): [JsonErrorCode, string, number] | "accepted" {
  try {
    call();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return [error.code, error.pointer, error.offset];
  }
  return "accepted";
}

interface SeedVectors {
  agentrt_content_hash: readonly (readonly [text: string, hash: string, refused?: string])[];
  agentrt_approval_hash: readonly {
    kind: string;
    capability: string;
    presentation: string;
    request: string;
    hash: string;
  }[];
}

describeWithShared("agentrt's known answers", "vectors/seed-systems.json", () => {
  const vectors = readSharedJson<SeedVectors>("vectors/seed-systems.json");
  // We refuse what agentrt's CanonicalJSON refuses, and a top-level number that is not finite besides.
  const refusedHere = new Map<string, string>([
    ['"\\ud800"', '"\ufffd"'],
    ['"\\udc00x"', '"\ufffdx"'],
    ['{"a":2,"a":1}', '{"a":1}'],
    ['{"a":1} trailing', '{"a":1}'],
    ["1e400", "1e400"],
  ]);

  it("has the 46 literals", () => {
    expect(vectors.agentrt_content_hash).toHaveLength(46);
  });

  for (const [text, hash, refused] of vectors.agentrt_content_hash) {
    const lenient = refusedHere.get(text);
    if (lenient === undefined) {
      it(`hashes ${JSON.stringify(text)} as agentrt does`, () => {
        expect(refused).toBeUndefined();
        expect(sha256(canonicalJson(text))).toBe(hash);
      });
    } else {
      it(`refuses ${JSON.stringify(text)}, whose hash there is that of its repaired text`, () => {
        expect(refused === undefined ? text : refused).toBe(
          text === "1e400" ? text : "refused by CanonicalJSON",
        );
        expect(() => canonicalJson(text)).toThrow(JsonError);
        expect(sha256(lenient)).toBe(hash);
      });
    }
  }

  it("gives the approval hash", () => {
    expect(vectors.agentrt_approval_hash.length).toBeGreaterThan(0);
    for (const { kind, capability, presentation, request, hash } of vectors.agentrt_approval_hash) {
      const text = `{"kind":${JSON.stringify(kind)},"capability":${capability},"presentation":${presentation},"request":${request}}`;
      expect(sha256(canonicalJson(text))).toBe(hash);
    }
  });
});

describe("canonicalJson", () => {
  const cases: [string, string, string][] = [
    ["drops white space", ' { "b" : [ 1 ,\t2 ] ,\r\n"a" : { } } ', '{"a":{},"b":[1,2]}'],
    ["keeps an integer past 2^53", "9007199254740993", "9007199254740993"],
    ["keeps number literals apart", "[1,1.0,1e0,-0,0.50,1E+2]", "[1,1.0,1e0,-0,0.50,1E+2]"],
    ["sorts keys by UTF-8 bytes", '{"\u{1f600}":1,"\uff5e":2,"z":3}', '{"z":3,"\uff5e":2,"\u{1f600}":1}'],
    ["sorts a key before its extensions", '{"ab":1,"a":2,"":3}', '{"":3,"a":2,"ab":1}'],
    ["sorts keys as they are once unescaped", '{"b":1,"\\u0061":2}', '{"a":2,"b":1}'],
    ["takes __proto__ for a key as any other", '{"b":1,"__proto__":{"x":1}}', '{"__proto__":{"x":1},"b":1}'],
    ["unescapes what needs no escape", '"\\/\\u0041\\u00e9\\ud83d\\ude42"', '"/A\u00e9\u{1f642}"'],
    [
      "writes short escapes",
      '"\\u0008\\u000c\\u000a\\u000d\\u0009\\u0022\\u005c"',
      '"\\b\\f\\n\\r\\t\\"\\\\"',
    ],
    ["writes other controls in lower-case hex", '"\\u001F\\u0000\\u007f"', '"\\u001f\\u0000\u007f"'],
    ["escapes what HTML minds", '"<a>&\\u003C"', '"\\u003ca\\u003e\\u0026\\u003c"'],
    ["escapes U+2028 and U+2029", '"\u2028\\u2029"', '"\\u2028\\u2029"'],
    ["keeps canonical text", '{"a":[true,false,null,"\\n\\u2028"]}', '{"a":[true,false,null,"\\n\\u2028"]}'],
    ["gives null for blank text", " \n", "null"],
  ];
  for (const [name, text, expected] of cases) it(name, () => expect(canonicalJson(text)).toBe(expected));

  it("finds a stop behind a long plain run", () => {
    const plain = "x".repeat(500);
    expect(canonicalJson(`"${plain}<${plain}\\/${plain}\u2028${plain}\u{1f642}"`)).toBe(
      `"${plain}\\u003c${plain}/${plain}\\u2028${plain}\u{1f642}"`,
    );
  });

  it("sorts objects of many members", () => {
    const names = Array.from({ length: 300 }, (_, i) => `k${(i * 7919) % 300}`);
    const members = (order: readonly string[]): string => order.map((name) => `"${name}":1`).join(",");
    expect(canonicalJson(`{${members(names)}}`)).toBe(`{${members(names.toSorted())}}`);
    expect(refusal(() => canonicalJson(`{${members(names)},"k77":2}`))).toEqual([
      "json-duplicate-key",
      "/k77",
      members(names).length + 2,
    ]);
  });
});

describe("policyJson", () => {
  it("leaves raw what the hashed form escapes, and nothing else", () => {
    expect(policyJson('{"b":"<&>\\u003c\u2028\\u2029\\u0001\\n","a":1.0}')).toBe(
      '{"a":1.0,"b":"<&><\u2028\u2029\\u0001\\n"}',
    );
    const plain = "y".repeat(100);
    expect(policyJson(`"${plain}<${plain}\u2029${plain}"`)).toBe(`"${plain}<${plain}\u2029${plain}"`);
  });

  it("refuses as the hashed form does", () => {
    expect(refusal(() => policyJson('[{"a":1,"a":2}]'))).toEqual(["json-duplicate-key", "/0/a", 8]);
  });
});

describe("the refusals", () => {
  const deep = (levels: number, core = ""): string => "[".repeat(levels) + core + "]".repeat(levels);
  const place = (levels: number): string => "/0".repeat(levels);
  const long = `1${"0".repeat(10_000)}`;
  const cases: [string, string, JsonErrorCode, string, number][] = [
    ["a byte order mark", "\ufeff1", "json-syntax", "", 0],
    ["text after the value", '{"a":1} x', "json-syntax", "", 8],
    ["a missing value", '{"a":}', "json-syntax", "/a", 5],
    ["a missing comma", '{"a":1 "b":2}', "json-syntax", "", 7],
    ["a trailing comma", "[1,]", "json-syntax", "/1", 3],
    ["a trailing comma in an object", '{"a":1,}', "json-syntax", "", 7],
    ["a key without quotes", '{"a":{b:1}}', "json-syntax", "/a", 6],
    ["an end inside of an array", '{"a":[1', "json-syntax", "/a/0", 7],
    ["an end inside of a string", '["x', "json-syntax", "/0", 3],
    ["an end inside of an escape", '["\\', "json-syntax", "/0", 3],
    ["a raw control character", '["a\u0001"]', "json-syntax", "/0", 3],
    ["an unknown escape", '["\\x"]', "json-syntax", "/0", 2],
    ["a cut escape", '["\\u12"]', "json-syntax", "/0", 2],
    ["a leading zero", "[01]", "json-syntax", "/0", 2],
    ["a bare dot", "[1.]", "json-syntax", "/0", 3],
    ["a plus sign", "[+1]", "json-syntax", "/0", 1],
    ["a cut word", "[tru]", "json-syntax", "/0", 4],
    ["an escaped half of a pair", '{"a":["\\ud800"]}', "json-surrogate", "/a/0", 7],
    ["an escaped second half", '{"a":["\\udc00"]}', "json-surrogate", "/a/0", 7],
    ["two escaped first halves", '"\\ud83d\\ud83d"', "json-surrogate", "", 1],
    ["an escaped half with a raw one", '"\\ud83d\ude42"', "json-surrogate", "", 1],
    ["a raw half of a pair", '{"a":"x\ud800"}', "json-surrogate", "/a", 7],
    ["half of a pair in a key", '{"a":{"\\ud800":1}}', "json-surrogate", "/a", 7],
    ["a repeated key", '{"a":{"k":1,"j":2,"k":3}}', "json-duplicate-key", "/a/k", 18],
    ["a key repeated next to the first", '{"k":1,"k":1}', "json-duplicate-key", "/k", 7],
    ["a repeated key under another escape", '{"k":1,"\\u006b":1}', "json-duplicate-key", "/k", 7],
    ["a repeated __proto__", '{"__proto__":1,"__proto__":1}', "json-duplicate-key", "/__proto__", 15],
    ["keys that pointers escape", '[0,{"a/b":{"~":[1,{"":1e999}]}}]', "json-number", "/1/a~1b/~0/1/", 22],
    ["a number out of range", "[1,1e400]", "json-number", "/1", 3],
    ["an integer out of range", `[${"9".repeat(400)}]`, "json-number", "/0", 1],
    ["an exponent past 10000", '{"n":1e-10001}', "json-number", "/n", 5],
    ["an endless exponent", '{"n":0e99999999999999999999}', "json-number", "/n", 5],
    ["a literal past 10000 characters", `[0.${long}]`, "json-number", "/0", 1],
    ["a literal of 10001 characters", `[0.${long.slice(2)}]`, "json-number", "/0", 1],
    ["257 levels", deep(257), "json-depth", place(256), 256],
    ["10000 levels", deep(10_000), "json-depth", place(256), 256],
    [
      "257 levels of objects",
      `${'{"a":'.repeat(257)}1${"}".repeat(257)}`,
      "json-depth",
      "/a".repeat(256),
      5 * 256,
    ],
    ["a deep value in an object", `{"a":${deep(256)}}`, "json-depth", `/a${place(255)}`, 260],
  ];
  for (const [name, text, code, pointer, offset] of cases) {
    it(`refuses ${name} at its place`, () => {
      expect(refusal(() => canonicalJson(text))).toEqual([code, pointer, offset]);
    });
  }

  it("refuses every raw control character, wherever it stands in a string", () => {
    for (let unit = 0; unit < 0x20; unit++) {
      for (const before of ["", "x".repeat(200), "\\n", "\u2028"]) {
        const text = `["${before}${String.fromCharCode(unit)}"]`;
        const expected = ["json-syntax", "/0", before.length + 2];
        expect(refusal(() => canonicalJson(text))).toEqual(expected);
        expect(refusal(() => policyJson(text))).toEqual(expected);
        expect(refusal(() => new JsonReader(text).skipValue())).toEqual(expected);
      }
    }
  });

  it("accepts what is just inside the limits", () => {
    expect(canonicalJson(deep(256))).toBe(deep(256));
    const objects = `${'{"a":'.repeat(256)}1${"}".repeat(256)}`;
    expect(canonicalJson(objects)).toBe(objects);
    expect(canonicalJson("1e308")).toBe("1e308");
    expect(canonicalJson("1e-10000")).toBe("1e-10000");
    expect(canonicalJson(`0.${"1".repeat(9998)}`)).toHaveLength(10_000);
  });

  it("never repeats the text in its messages", () => {
    for (const [, text] of cases) {
      try {
        canonicalJson(text.replaceAll("a", "secret"));
      } catch (error) {
        expect((error as Error).message).not.toContain("secret");
      }
    }
  });
});

describe("checkJson", () => {
  // Every text has all the faults from its own on; the order of the text is the reverse.
  const depth = "[".repeat(257);
  const ordered: [JsonErrorCode, string][] = [
    ["json-depth", `[1e999,{"a":1,"a":1},"\\ud800",x,"\ud800",${depth}`],
    ["json-surrogate", `[1e999,{"a":1,"a":1},"\\ud800",x,"\ud800"]`],
    ["json-syntax", `[1e999,{"a":1,"a":1},"\\ud800",x]`],
    ["json-surrogate", `[1e999,{"a":1,"a":1},"\\ud800"]`],
    ["json-duplicate-key", `[1e999,{"a":1,"a":1}]`],
    ["json-number", "[1e999]"],
  ];
  const places = [`/5${"/0".repeat(255)}`, "/4", "/3", "/2", "/1/a", "/0"];
  ordered.forEach(([code, text], index) => {
    it(`names refusal ${index + 1} of the order first: ${code}`, () => {
      const found = refusal(() => checkJson(text));
      expect(found.slice(0, 2)).toEqual([code, places[index]]);
    });
  });

  it("accepts what canonicalJson accepts, and demands a value", () => {
    expect(refusal(() => checkJson(' {"a":[1]} '))).toBe("accepted");
    expect(refusal(() => checkJson(" "))).toEqual(["json-syntax", "", 1]);
  });

  it("counts no bracket inside a string", () => {
    expect(refusal(() => checkJson(`["${"[".repeat(300)}\\"${"[".repeat(300)}"]`))).toBe("accepted");
    expect(refusal(() => checkJson(`["${"[".repeat(300)}\\"", x]`))).toEqual(["json-syntax", "/1", 307]);
  });
});
