import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { compileSchema } from "../../../shared/kinds/schema-check.ts";

function check(schema: unknown, text: string): string {
  const violation = compileSchema(schema)(JSON.parse(text));
  return violation === null ? "valid" : `${violation.code} ${violation.path}`;
}

const scalar = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom("", "a", "bc", "def"),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(0.5, -1.5),
);
const names = fc.constantFrom("a", "b", "toString", "c/d");
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 3 }),
  ),
}));
const optional = <T>(name: string, of: fc.Arbitrary<T>) =>
  fc.option(of, { nil: undefined }).map((one) => (one === undefined ? {} : { [name]: one }));
const merged = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as object);
const small = fc.integer({ min: 0, max: 3 });
const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    fc.constant({}),
    scalar.map((one) => ({ const: one })),
    fc.uniqueArray(scalar, { minLength: 1, maxLength: 3 }).map((all) => ({ enum: all })),
    fc.constantFrom("boolean", "null", "integer", "number", "string").map((type) => ({ type })),
    merged(fc.constant({ type: "string" }), optional("minLength", small), optional("maxLength", small)),
    merged(
      fc.constantFrom({ type: "number" }, { type: "integer" }, { type: ["integer", "null"] }),
      optional("minimum", small),
      optional("exclusiveMaximum", small),
      optional("exclusiveMinimum", small),
      optional("maximum", small),
    ),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((all) => ({ anyOf: all })),
    merged(
      fc.constantFrom({ type: "array" }, { type: ["array", "string"] }),
      tie("schema").map((items) => ({ items })),
      optional("minItems", small),
      optional("maxItems", small),
    ),
    merged(
      fc.constant({ type: "object" }),
      fc
        .dictionary(fc.constantFrom("a", "b", "c/d"), tie("schema"), { maxKeys: 3 })
        .chain((properties) =>
          fc.subarray(Object.keys(properties)).map((required) => ({ properties, required })),
        ),
      optional("additionalProperties", fc.oneof(fc.boolean(), tie("schema"))),
    ),
  ),
}));

describe("a schema's check", () => {
  it("takes what another implementation of JSON Schema takes, and refuses the rest with a place in the value", () => {
    let [taken, refused] = [0, 0];
    fc.assert(
      fc.property(schema, value, (of, one) => {
        const violation = compileSchema(of)(one);
        expect(violation === null).toBe(z.fromJSONSchema(of as never).safeParse(one).success);
        if (violation === null) taken += 1;
        else {
          refused += 1;
          expect(violation.path).toMatch(/^(\/[^/]*)*$/);
        }
      }),
      { numRuns: 5000 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(500);
  });

  it("names the place of what is wrong", () => {
    const of = {
      type: "object",
      properties: {
        "x/y": { type: "array", items: { type: "object", properties: { n: true }, required: ["n"] } },
      },
      additionalProperties: false,
    };
    expect(check(of, '{"x/y":[{"n":1},{}]}')).toBe("missing-field /x~1y/1/n");
    expect(check(of, '{"x/y":[1]}')).toBe("invalid-field /x~1y/0");
    expect(check(of, '{"z":1}')).toBe("unknown-field /z");
  });

  it("counts characters, not units, and takes decimal fractions for what they say", () => {
    const two = { type: "string", minLength: 2, maxLength: 2 };
    expect(
      ["\u{1f600}", "\u{1f600}a", "\u{1f600}\u{1f600}", "abc"].map((text) =>
        check(two, JSON.stringify(text)),
      ),
    ).toEqual(["invalid-field ", "valid", "valid", "invalid-field "]);
    const cents = { type: "number", multipleOf: 0.01 };
    expect(["0.3", "1.15", "4.35", "1e17", "0", "-0.07"].map((text) => check(cents, text))).toEqual(
      Array(6).fill("valid"),
    );
    expect(["0.005", "1.155", "1e-300"].map((text) => check(cents, text))).toEqual(
      Array(3).fill("invalid-field "),
    );
    expect(check({ type: "number", multipleOf: 1e-300 }, "1e300")).toBe("invalid-field ");
  });

  it("looks at members of any name, and at no inherited ones", () => {
    const closed = { type: "object", properties: {}, additionalProperties: false };
    expect(check(closed, '{"__proto__":1}')).toBe("unknown-field /__proto__");
    expect(check({ type: "object", additionalProperties: { type: "string" } }, '{"__proto__":1}')).toBe(
      "invalid-field /__proto__",
    );
    const named = { type: "object", properties: { toString: { type: "string" } } };
    expect(check(named, "{}")).toBe("valid");
    expect(check({ ...named, required: ["toString"] }, "{}")).toBe("missing-field /toString");
  });
});
