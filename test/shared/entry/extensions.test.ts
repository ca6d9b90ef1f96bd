import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { utf8 } from "../../../shared/bytes.ts";
import type { Extensions } from "../../../shared/kinds/catalogue.ts";
import { readDeclaration } from "../../../shared/kinds/declaration.ts";
import { contextOf, parse, refusal } from "./ingest-support.ts";

function declared(kinds: object): Extensions {
  const { kinds: acme } = readDeclaration("acme", utf8(JSON.stringify({ kinds })));
  return (prefix) => (prefix === "acme" ? acme : null);
}
const context = (kinds: object) => contextOf({ extensions: declared(kinds) });
const entry = (kind: string, sections: object = { action: {} }) =>
  JSON.stringify({ id: "e", kind, ...sections });

const REFUND = {
  "refund.made": {
    action: {
      type: "object",
      properties: { cents: { type: "integer", minimum: 1 }, note: { type: "string" } },
      required: ["cents"],
      additionalProperties: false,
    },
    outcome: { type: "object", properties: { receipt: { type: "string" } }, additionalProperties: false },
  },
  plain: { action: { type: "object" } },
};

describe("an entry of a declared kind", () => {
  it.each([
    [
      "as declared",
      { action: { cents: 5, note: "n" }, outcome: { status: "success", receipt: "r" } },
      "accepted",
    ],
    [
      "with what every kind has",
      { action: { cents: 5, extra: [1], "imported.seq": 3 }, outcome: { status: "failure", error: "e" } },
      "accepted",
    ],
    [
      "with an authorization",
      { action: { cents: 5 }, authorization: { type: "system", reason: "r" } },
      "accepted",
    ],
    ["with null for an optional field", { action: { cents: 5, note: null } }, "accepted"],
    ["with a commitment for a field", { action: { cents: { $commitment: "ab".repeat(32) } } }, "accepted"],
    ["without a field", { action: {} }, "missing-field /action/cents"],
    ["with null for a field that is needed", { action: { cents: null } }, "invalid-field /action/cents"],
    ["with a wrong value", { action: { cents: 0 } }, "invalid-field /action/cents"],
    [
      "with a wrong value and a salt of its own",
      { action: { cents: { $value: 0, $salt: "ab".repeat(16) } } },
      "invalid-field /action/cents",
    ],
    ["with another field", { action: { cents: 1, sents: 1 } }, "unknown-field /action/sents"],
    [
      "with another field of its outcome",
      { action: { cents: 1 }, outcome: { status: "success", x: 1 } },
      "unknown-field /outcome/x",
    ],
    [
      "with another status",
      { action: { cents: 1 }, outcome: { status: "done" } },
      "invalid-field /outcome/status",
    ],
  ])("%s: %j is %s", (_name, sections, expected) => {
    expect(refusal(entry("ext.acme.refund.made", sections), context(REFUND))).toBe(expected);
  });

  it("has an outcome only where one is declared", () => {
    const sections = { action: {}, outcome: { status: "success" } };
    expect(refusal(entry("ext.acme.plain", sections), context(REFUND))).toBe("unknown-field /outcome");
  });
});

describe("a prefix", () => {
  it("that is declared has the kinds of its declaration alone", () => {
    for (const kind of [
      "ext.acme.refund",
      "ext.acme.refund.Made",
      "ext.acme.constructor",
      "ext.acme.plain.x",
    ])
      expect(refusal(entry(kind), context(REFUND))).toBe("unknown-kind /kind");
    expect(refusal(entry("ext.acme.plain"), context({}))).toBe("unknown-kind /kind");
  });

  it("that is not declared takes any kind and any fields", () => {
    expect(refusal(entry("ext.other.refund.made", { action: { sents: 1 } }), context(REFUND))).toBe(
      "accepted",
    );
    expect(refusal(entry("ext.acme.anything", { action: { sents: 1 } }))).toBe("accepted");
  });

  it("is looked up for kinds under a prefix alone", () => {
    const asked: string[] = [];
    const extensions: Extensions = (prefix) => {
      asked.push(prefix);
      return null;
    };
    const kinds = ["run.created", "ext.acme", "no.such", "run.completed", "ext.acme.a"];
    parse(kinds.map((kind) => entry(kind)).join("\n"), "ndjson", contextOf({ extensions }));
    expect(asked).toEqual(["acme"]);
  });
});

/** A schema of a field with a value that it takes and one that it does not. */
const field: fc.Arbitrary<{ schema: object; good: unknown; bad: unknown }> = fc.letrec<{
  field: { schema: object; good: unknown; bad: unknown };
}>((tie) => ({
  field: fc.oneof(
    { maxDepth: 3 },
    fc
      .integer({ min: -5, max: 5 })
      .map((n) => ({ schema: { type: "integer", minimum: n }, good: n, bad: n - 1 })),
    fc.string({ maxLength: 5 }).map((text) => ({
      schema: { type: "string", maxLength: [...text].length },
      good: text,
      bad: `${text}x`,
    })),
    fc.boolean().map((one) => ({ schema: { const: one }, good: one, bad: !one })),
    fc.constant({ schema: { enum: ["a", 1, null] }, good: 1, bad: "1" }),
    fc.tuple(tie("field"), fc.nat(3)).map(([{ schema, good, bad }, before]) => ({
      schema: { type: "array", items: schema },
      good: Array(before).fill(good),
      bad: [...Array(before).fill(good), bad],
    })),
    tie("field").map(({ schema, good, bad }) => ({
      schema: { type: "object", properties: { m: schema }, required: ["m"], additionalProperties: false },
      good: { m: good },
      bad: { m: bad },
    })),
    tie("field").map(({ schema, good }) => ({
      schema: { type: "object", properties: { m: schema }, required: ["m"] },
      good: { m: good, other: 1 },
      bad: { other: 1 },
    })),
    // Whatever the other field takes, it takes no object with this one member.
    tie("field").map(({ schema, good }) => ({
      schema: {
        anyOf: [{ type: "object", properties: { m: schema }, required: ["m"], additionalProperties: false }],
      },
      good: { m: good },
      bad: { "not m": good },
    })),
  ),
})).field;

it("what the declared schema takes is accepted, and everything else is refused with a pointer to it", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^f[a-z0-9_]{1,6}$/), field, { minKeys: 1, maxKeys: 4 }),
      fc.nat(),
      (fields, pick) => {
        const names = Object.keys(fields);
        const schema = {
          type: "object",
          properties: Object.fromEntries(names.map((name) => [name, fields[name]?.schema])),
          required: names,
          additionalProperties: false,
        };
        const of = context({ k: { action: schema } });
        const good = Object.fromEntries(names.map((name) => [name, fields[name]?.good]));
        const check = (action: object) => refusal(entry("ext.acme.k", { action }), of);
        expect(check(good)).toBe("accepted");
        const chosen = names[pick % names.length] ?? "";
        const { [chosen]: _left, ...without } = good;
        expect(check(without)).toBe(`missing-field /action/${chosen}`);
        expect(check({ ...good, g: 1 })).toBe("unknown-field /action/g");
        const [code, pointer] = check({ ...good, [chosen]: fields[chosen]?.bad }).split(" ");
        expect(["invalid-field", "missing-field", "unknown-field"]).toContain(code);
        expect(`${pointer}/`.startsWith(`/action/${chosen}/`)).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});
