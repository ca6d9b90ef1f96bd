import { describe, expect, it } from "vitest";
import { RunsealError } from "../../../shared/errors.ts";
import { specWith } from "../../../shared/kinds/extension.ts";
import { extensionSections } from "../../../shared/kinds/extension-schema.ts";
import { validateSection } from "../../../shared/kinds/validate.ts";

const object = (properties: object, more: object = {}): object => ({ type: "object", properties, ...more });

/** "code pointer" of the first problem of an action under the declared schema, or "valid". */
function check(action: object, texts: Record<string, string>, commitments: string[] = []): string {
  const spec = specWith("ext.acme.thing", extensionSections({ action }));
  const content = {
    tag: null,
    texts: new Map(Object.entries(texts)),
    commitments: new Map(commitments.map((name) => [name, 1])),
  };
  const problem = validateSection(spec, "action", content);
  return problem === null ? "valid" : `${problem.code} ${problem.pointer}`;
}

function refusal(action: unknown): string {
  try {
    extensionSections({ action });
  } catch (error) {
    if (error instanceof RunsealError) return `${error.code} ${error.pointer}`;
    throw error;
  }
  return "accepted";
}

describe("a declared schema", () => {
  const schema = object(
    {
      amount: { type: "integer", minimum: 1, description: "cents" },
      who: { type: ["string", "null"], maxLength: 3 },
      tags: { type: "array", items: { enum: ["a", "b"] }, maxItems: 2 },
      deep: object(
        { x: { type: "number", exclusiveMinimum: 0 } },
        { required: ["x"], additionalProperties: { type: "string" } },
      ),
      either: { anyOf: [{ const: 5 }, { type: "boolean" }] },
    },
    { required: ["amount"], additionalProperties: false },
  );

  it("checks the fields of an entry", () => {
    expect(
      check(schema, {
        amount: "1",
        who: "null",
        tags: '["a"]',
        deep: '{"x":0.5,"y":"z"}',
        either: "5",
        extra: "{}",
      }),
    ).toBe("valid");
    expect(check(schema, {})).toBe("missing-field /action/amount");
    expect(check(schema, {}, ["amount"])).toBe("valid");
    expect(check(schema, { amount: "null" })).toBe("invalid-field /action/amount");
    expect(check(schema, { amount: "0" })).toBe("invalid-field /action/amount");
    expect(check(schema, { amount: "1.5" })).toBe("invalid-field /action/amount");
    expect(check(schema, { amount: "1", who: '"abcd"' })).toBe("invalid-field /action/who");
    expect(check(schema, { amount: "1", tags: '["a","c"]' })).toBe("invalid-field /action/tags/1");
    expect(check(schema, { amount: "1", tags: '["a","a","a"]' })).toBe("invalid-field /action/tags");
    expect(check(schema, { amount: "1", deep: "{}" })).toBe("missing-field /action/deep/x");
    expect(check(schema, { amount: "1", deep: '{"x":0}' })).toBe("invalid-field /action/deep/x");
    expect(check(schema, { amount: "1", deep: '{"x":1,"y":2}' })).toBe("invalid-field /action/deep/y");
    expect(check(schema, { amount: "1", either: "6" })).toBe("invalid-field /action/either");
    expect(check(schema, { amount: "1", other: "1" })).toBe("unknown-field /action/other");
    expect(check(schema, { amount: "9007199254740992" })).toBe("invalid-field /action/amount");
  });

  it("accepts fields that it does not describe unless it says not to", () => {
    expect(check(object({}), { other: "1" })).toBe("valid");
    expect(check(object({}), { Other: "1" })).toBe("unknown-field /action/Other");
  });

  it("declares the outcome too", () => {
    const sections = extensionSections({
      description: "d",
      action: object({}),
      outcome: object({ code: { type: "integer" } }, { additionalProperties: false }),
    });
    const spec = specWith("ext.acme.thing", sections);
    expect(spec.description).toBe("d");
    const outcome = (name: string): string | undefined =>
      validateSection(spec, "outcome", {
        tag: "success",
        texts: new Map([[name, "1"]]),
        commitments: new Map(),
      })?.pointer;
    expect([outcome("code"), outcome("error"), outcome("other")]).toEqual([
      undefined,
      undefined,
      "/outcome/other",
    ]);
    const none = specWith("ext.acme.thing", extensionSections({ action: object({}) }));
    expect(none.outcome).toBeUndefined();
  });

  const refused: [string, unknown, string][] = [
    ["what is no schema", "x", "/action"],
    ["a section that is no object", { type: "array" }, "/action/type"],
    [
      "another dialect",
      { ...object({}), $schema: "http://json-schema.org/draft-07/schema#" },
      "/action/$schema",
    ],
    ["a bad field name", object({ "Bad name": true }), "/action/properties/Bad name"],
    ["a pattern", object({ a: { type: "string", pattern: "(a+)+" } }), "/action/properties/a/pattern"],
    ["a conditional", object({ a: { if: {}, type: "string" } }), "/action/properties/a/if"],
    ["a reference", object({ a: { $ref: "#" } }), "/action/properties/a/$ref"],
    ["a keyword without its type", object({ a: { minLength: 3 } }), "/action/properties/a/minLength"],
    [
      "a keyword of another type",
      object({ a: { type: "integer", minLength: 3 } }),
      "/action/properties/a/minLength",
    ],
    ["a type beside enum", object({ a: { enum: ["x"], type: "integer" } }), "/action/properties/a/type"],
    ["an enum of objects", object({ a: { enum: [{}] } }), "/action/properties/a/enum/0"],
    ["an empty enum", object({ a: { enum: [] } }), "/action/properties/a/enum"],
    ["a const of an array", object({ a: { const: [] } }), "/action/properties/a/const"],
    ["minItems without items", object({ a: { type: "array", minItems: 1 } }), "/action/properties/a"],
    [
      "a bound that is no number",
      object({ a: { type: "integer", minimum: "1" } }),
      "/action/properties/a/minimum",
    ],
    ["a type that there is not", object({ a: { type: "text" } }), "/action/properties/a/type"],
    ["a type from the prototype", object({ a: { type: "constructor" } }), "/action/properties/a/type"],
    ["a required field that is not described", object({}, { required: ["a"] }), "/action/required"],
    [
      "a required member that is not described",
      object({ a: object({}, { required: ["b"] }) }),
      "/action/properties/a/required",
    ],
    ["a default", object({ a: { type: "string", default: "x" } }), "/action/properties/a/default"],
    ["a schema for other fields", object({}, { additionalProperties: {} }), "/action/additionalProperties"],
    [
      "an own __proto__",
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
      "/action/properties",
    ],
    ["false", object({ a: false }), "/action/properties/a"],
    ["a field that every kind has", object({ extra: { type: "string" } }), "/action/properties/extra"],
    ["no type in a list of types", object({ a: { type: [] } }), "/action/properties/a/type"],
    ["a length below 0", object({ a: { type: "string", minLength: -1 } }), "/action/properties/a/minLength"],
    [
      "a fraction of an element",
      object({ a: { type: "array", items: true, maxItems: 1.5 } }),
      "/action/properties/a/maxItems",
    ],
    ["multiples of 0", object({ a: { type: "number", multipleOf: 0 } }), "/action/properties/a/multipleOf"],
    [
      "too many alternatives for one place",
      object({ a: { anyOf: Array(5).fill({ type: "array", items: { anyOf: Array(4).fill(true) } }) } }),
      "/action/properties/a/anyOf/0/items/anyOf",
    ],
  ];
  for (const [name, schema, pointer] of refused) {
    it(`is refused where it has ${name}`, () => expect(refusal(schema)).toBe(`bad-schema ${pointer}`));
  }

  it("is refused where it nests too deep", () => {
    let deep: object = { type: "string" };
    for (let i = 0; i < 40; i++) deep = { type: "array", items: deep };
    expect(refusal(object({ a: deep }))).toMatch(/^bad-schema \/action\/properties\/a(\/items)+$/);
  });
});
