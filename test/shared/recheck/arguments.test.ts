import { describe, expect, it } from "vitest";
import { checkArguments } from "../../../shared/recheck/arguments.ts";
import { checkPattern, pathsOf } from "../../../shared/recheck/pattern.ts";

/** The result, and why. */
function check(schema: unknown, args: unknown): string {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const answer = checkArguments(text(schema), text(args));
  return answer.result === "holds" ? "holds" : `${answer.result}: ${answer.why}`;
}

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

describe("arguments against a schema", () => {
  it.each([
    [null, {}, "holds"],
    [{}, {}, "holds"],
    [true, {}, "holds"],
    [false, {}, "fails: the arguments: nothing is allowed here"],
    [{ type: "object" }, "[]", "fails: the arguments: type is not object"],
    [{ type: ["string", "null"] }, "null", "holds"],
    [{ type: ["string", "null"] }, "1", "fails: the arguments: type is not string or null"],
    [{ type: "integer" }, "1.0", "holds"],
    [{ type: "integer" }, "10e-1", "holds"],
    [{ type: "integer" }, "1.5", "fails: the arguments: type is not integer"],
    [{ type: "number" }, "12345678901234567890", "holds"],
    [{ type: "boolean" }, "false", "holds"],
    [{ type: "array" }, "{}", "fails: the arguments: type is not array"],
    [object({ a: { type: "string" } }), { a: 1 }, "fails: /a: type is not string"],
    [object({ a: { type: "string" } }), { b: 1 }, "holds"],
    [object({ "a/b~": { type: "string" } }), { "a/b~": 1 }, "fails: /a~1b~0: type is not string"],
    [object({}, { required: ["a"] }), {}, "fails: /a: required, and missing"],
    [object({}, { required: ["__proto__"] }), {}, "fails: /__proto__: required, and missing"],
    [
      object({ a: {} }, { additionalProperties: false }),
      { a: 1, b: 2 },
      "fails: /b: a property that is not allowed",
    ],
    [
      object({ a: {} }, { additionalProperties: { type: "string" } }),
      { b: 2 },
      "fails: /b: type is not string",
    ],
    [object({ a: {} }, { additionalProperties: { type: "string" } }), { a: 1, b: "2" }, "holds"],
    [{ enum: [1, "a"] }, "1.0", "holds"],
    [{ enum: [1, "a"] }, "2", "fails: the arguments: not one of the values of enum"],
    [{ const: { a: [1, null], b: "x" } }, '{"b":"x","a":[1e0,null]}', "holds"],
    [{ const: { a: 1 } }, { a: 1, b: 1 }, "fails: the arguments: not the value of const"],
    [{ const: "9007199254740993" }, "9007199254740992", "fails: the arguments: not the value of const"],
    ['{"const":9007199254740993}', "9007199254740992", "fails: the arguments: not the value of const"],
    [{ items: { type: "string" } }, ["a", 1], "fails: /1: type is not string"],
    [{ minimum: 1 }, "0.99", "fails: the arguments: minimum does not hold"],
    [{ minimum: 1 }, "1.0", "holds"],
    [{ maximum: 1 }, "1.01", "fails: the arguments: maximum does not hold"],
    ['{"maximum":9007199254740992}', "9007199254740993", "fails: the arguments: maximum does not hold"],
    [{ minimum: -2 }, "-3", "fails: the arguments: minimum does not hold"],
    [{ minimum: -2 }, "-1.5e0", "holds"],
    [{ exclusiveMinimum: 1 }, "1", "fails: the arguments: exclusiveMinimum does not hold"],
    [{ exclusiveMaximum: 1 }, "1", "fails: the arguments: exclusiveMaximum does not hold"],
    [{ exclusiveMaximum: 1 }, "0.5", "holds"],
    [{ minimum: 5 }, '"text"', "holds"],
    [{ minLength: 2 }, '"😀"', "fails: the arguments: minLength does not hold"],
    [{ maxLength: 1 }, '"😀"', "holds"],
    [{ maxItems: 1 }, "[1,2]", "fails: the arguments: maxItems does not hold"],
    [{ minItems: 1 }, "[]", "fails: the arguments: minItems does not hold"],
    [{ minProperties: 1 }, "{}", "fails: the arguments: minProperties does not hold"],
    [{ maxProperties: 0 }, { a: 1 }, "fails: the arguments: maxProperties does not hold"],
    [{ pattern: "^[a-z]+$" }, '"ab"', "holds"],
    [{ pattern: "^[a-z]+$" }, '"a1"', "fails: the arguments: does not match the pattern"],
    [{ pattern: "b" }, '"abc"', "holds"],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, "3", "fails: the arguments: maximum does not hold"],
    [{ anyOf: [{ type: "string" }, { minimum: 5 }] }, "7", "holds"],
    [{ anyOf: [{ type: "string" }, { minimum: 5 }] }, "3", "fails: the arguments: matches none of anyOf"],
    [{ oneOf: [{ minimum: 1 }, { minimum: 5 }] }, "3", "holds"],
    [
      { oneOf: [{ minimum: 1 }, { minimum: 5 }] },
      "7",
      "fails: the arguments: matches more than one of oneOf",
    ],
    [{ oneOf: [{ minimum: 5 }] }, "3", "fails: the arguments: matches none of oneOf"],
    [{ not: { type: "string" } }, '"x"', "fails: the arguments: what not excludes"],
    [{ not: { type: "string" } }, "1", "holds"],
    [
      {
        title: "t",
        description: "d",
        default: 1,
        format: "email",
        $schema: "s",
        "x-source": 1,
        $comment: "c",
      },
      "1",
      "holds",
    ],
  ])("%j and %j", (schema, args, expected) => {
    expect(check(schema, args)).toBe(expected);
  });

  it("follows references inside the schema, also recursive ones", () => {
    const tree = {
      $ref: "#/$defs/no~1de",
      $defs: { "no/de": object({ next: { $ref: "#/$defs/no~1de" }, n: { type: "integer" } }) },
    };
    expect(check(tree, { next: { next: { n: 1 } } })).toBe("holds");
    expect(check(tree, { next: { next: { n: "x" } } })).toBe("fails: /next/next/n: type is not integer");
    const list = { items: { $ref: "#" } };
    expect(check(list, [[[]]])).toBe("holds");
    expect(check({ $ref: "#/definitions/a", definitions: { a: { type: "string" } } }, "1")).toMatch(/^fails/);
  });
});

describe("what is not checked", () => {
  const FOREIGN = { patternProperties: {} };

  it.each([
    [FOREIGN, "{}", 'unchecked: "patternProperties" is not supported'],
    [{ if: {}, else: {} }, "{}", 'unchecked: "if" is not supported'],
    [{ uniqueItems: true }, "[1,1]", 'unchecked: "uniqueItems" is not supported'],
    [{ properties: { a: FOREIGN } }, { a: {} }, 'unchecked: "patternProperties" is not supported'],
    [{ properties: { a: FOREIGN } }, {}, "holds"],
    [{ type: "string", ...FOREIGN }, "{}", "fails: the arguments: type is not string"],
    [{ ...FOREIGN, type: "string" }, "{}", "fails: the arguments: type is not string"],
    [{ anyOf: [FOREIGN, { type: "object" }] }, "{}", "holds"],
    [{ anyOf: [FOREIGN, { type: "string" }] }, "{}", 'unchecked: "patternProperties" is not supported'],
    [{ oneOf: [FOREIGN, { type: "object" }] }, "{}", 'unchecked: "patternProperties" is not supported'],
    [{ oneOf: [FOREIGN, {}, {}] }, "{}", "fails: the arguments: matches more than one of oneOf"],
    [{ not: FOREIGN }, "{}", 'unchecked: "patternProperties" is not supported'],
    [
      { ...FOREIGN, additionalProperties: false },
      { a: 1 },
      'unchecked: "patternProperties" is not supported',
    ],
    [
      { additionalProperties: false, ...FOREIGN },
      { a: 1 },
      'unchecked: "patternProperties" is not supported',
    ],
    [{ $ref: "https://example.org/s" }, "{}", "unchecked: a $ref leads out of the schema or nowhere"],
    [{ $ref: "#/$defs/no" }, "{}", "unchecked: a $ref leads out of the schema or nowhere"],
    [{ $ref: "#/$defs/%" }, "{}", "unchecked: a $ref leads out of the schema or nowhere"],
    [{ $ref: "#" }, "{}", "unchecked: its $refs lead in a circle"],
    [{ type: "strin" }, "{}", 'unchecked: "type" is not what JSON Schema says'],
    [{ type: [] }, "{}", 'unchecked: "type" is not what JSON Schema says'],
    [{ minimum: "1" }, "0", 'unchecked: "minimum" is not what JSON Schema says'],
    [{ required: "a" }, "{}", 'unchecked: "required" is not what JSON Schema says'],
    [7, "{}", "unchecked: a schema in it is neither an object nor a boolean"],
    [{ pattern: "(a+)+$" }, '"aaaa"', "unchecked: a pattern in it may take long"],
    [{ pattern: "(" }, '"aaaa"', "unchecked: a pattern in it may take long"],
  ])("%j and %j", (schema, args, expected) => {
    expect(check(schema, args)).toBe(expected);
  });

  it("is a schema that takes too many steps, and one that nests too deep for the stack", () => {
    const wide = {
      $defs: {
        a: { anyOf: Array(60).fill({ $ref: "#/$defs/b" }) },
        b: { anyOf: Array(60).fill({ $ref: "#/$defs/c" }) },
        c: { anyOf: Array(60).fill({ type: "string" }) },
      },
      $ref: "#/$defs/a",
    };
    expect(check(wide, "1")).toBe("unchecked: it takes more than 100000 steps");
    const depth = 120;
    const loop = `{"$defs":{"a":${'{"allOf":['.repeat(depth)}{"$ref":"#/$defs/a"}${"]}".repeat(depth)}},"$ref":"#/$defs/a"}`;
    expect(check(loop, "1")).toBe("unchecked: it nests too deep");
  });
});

describe("patterns", () => {
  it.each([
    ["^abc$", 10, 1],
    ["abc", 10, 11],
    ["^a*$", 10, 11],
    ["^a*b+$", 10, 121],
    ["^a?a?$", 10, 4],
    ["^a{3}$", 10, 1],
    ["^a{2,5}$", 10, 4],
    ["^a{2,}$", 10, 9],
    ["^(a|b|c)$", 10, 4],
    ["^[a*+?|]+$", 10, 11],
    ["^\\*\\+$", 10, 1],
    ["^(?:ab)+$", 10, 11],
    ["^a+?$", 10, 11],
    ["(a+)+", 10, null],
    ["(?:a|b)*", 10, null],
    ["((a)?b)*", 10, null],
    ["(a)\\1", 10, null],
    ["(?=a)b", 10, null],
    ["(?<!a)b", 10, null],
    ["(?<n>a)\\k<n>", 10, null],
  ])("%s over %i characters can go %s ways", (pattern, length, paths) => {
    expect(pathsOf(pattern, length)).toBe(paths);
  });

  it("are not run where they could take long", () => {
    expect(checkPattern("^a*a*a*b$", "a".repeat(50))).toBe("fails");
    expect(checkPattern("^a*a*a*b$", "a".repeat(5_000))).toBe("unchecked");
    expect(checkPattern("a?".repeat(30), "a".repeat(30))).toBe("unchecked");
    expect(checkPattern(`^${"(a|a)".repeat(40)}$`, "b")).toBe("unchecked");
  });
});
