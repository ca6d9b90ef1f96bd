import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, utf8 } from "../../../shared/bytes.ts";
import { commitField } from "../../../shared/entry/commitment.ts";
import { writeFieldForm } from "../../../shared/entry/field-form.ts";
import { MAX_BATCH_ENTRIES } from "../../../shared/entry/limits.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { parse, seal, sectionOf } from "./ingest-support.ts";

/** White space that JSON allows and that does not end a line. */
const space = fc.constantFrom("", "", " ", "\t", "  ");
const number = fc.constantFrom(
  "0",
  "-0",
  "1.0",
  "1e0",
  "1E+2",
  "12345678901234567890",
  "0.1",
  "1e-400",
  "-1.50e10",
);
const string = fc.oneof(
  fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\u00e9\\/\\b"',
    '"\\ud83d\\ude00"',
    '"<&>\u2028\u2029\u007f"',
    '"$value"',
    '"__proto__"',
  ),
);

/** JSON texts of any shape, with white space, and numbers and strings spelled in unusual ways. */
const { text: jsonText } = fc.letrec<{ text: string; array: string; object: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    number,
    string,
    fc.constantFrom("true", "false", "null"),
    tie("array"),
    tie("object"),
  ),
  array: fc
    .tuple(fc.array(tie("text"), { maxLength: 4 }), space)
    .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
  object: fc
    .tuple(
      fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 6 }), tie("text")), { maxLength: 4 }),
      space,
    )
    .map(([members, gap]) => {
      const unique = new Map(members);
      return `{${gap}${[...unique].map(([name, value]) => `${JSON.stringify(name)}${gap}:${value}`).join(`,${gap}`)}${gap}}`;
    }),
}));

/** Values that stand for themselves: no special form at their top. */
const values = jsonText.filter((text) => writeFieldForm(canonicalJson(text)) === canonicalJson(text));
const batches = fc.array(
  fc.dictionary(fc.stringMatching(/^[a-z0-9_.]{1,12}$/), values, { minKeys: 1, maxKeys: 3 }),
  {
    minLength: 1,
    maxLength: 6,
  },
);

const entryOf = (fields: Record<string, string>, i: number) => {
  const members = Object.entries(fields).map(([name, text]) => `"${name}":${text}`);
  return `{"id":"e-${i}","kind":"ext.test.any","action":{${members.join(",")}}}`;
};

describe("a body", () => {
  it("gives the same entries as an array, as lines, and one by one; their values come out as they went in", () => {
    fc.assert(
      fc.property(batches, fc.constantFrom("\n", "\r\n", "\n\n", "\n \t\n"), (batch, ending) => {
        const texts = batch.map(entryOf);
        const asArray = parse(`[${texts.join(",")}]`);
        const asLines = parse(`${texts.join(ending)}${ending}`, "ndjson");
        const alone = texts.map((text) => parse(text).entries[0]);
        expect([asArray.single, asLines.single, parse(texts[0] ?? "").single]).toEqual([false, false, true]);
        for (const entries of [asArray.entries, asLines.entries, alone]) {
          expect(entries.length).toBe(batch.length);
          entries.forEach((parsed, i) => {
            if (parsed?.ok !== true) throw new Error(`refused: ${JSON.stringify(parsed)}`);
            const { leaf, text, values: stored, salts } = seal(parsed.entry);
            expect(leaf.id).toBe(`e-${i}`);
            const answered = sectionOf(text, "action");
            const salt = sectionOf(salts, "action");
            expect(answered).toEqual(sectionOf(stored, "action"));
            expect(answered.size).toBe(Object.keys(batch[i] ?? {}).length);
            for (const [name, value] of Object.entries(batch[i] ?? {})) {
              expect(answered.get(name)).toBe(canonicalJson(value));
              const opening = {
                section: "action",
                name,
                salt: fromHex(salt.get(name)?.slice(1, -1) ?? ""),
                text: answered.get(name) ?? "",
              } as const;
              expect(leaf.action.get(name)).toEqual(commitField(nativeCrypto, opening));
            }
          });
        }
      }),
      { numRuns: 150 },
    );
  });

  const good = entryOf({ a: "1" }, 1);
  const codes = (body: string | Uint8Array, form: "json" | "ndjson") =>
    parse(body, form).entries.map((one) =>
      one.ok ? "ok" : `${one.problem.code} ${one.problem.pointer} ${one.id}`,
    );

  it("loses only the entries that are bad, each with its pointer and, where it can be told, its id", () => {
    const bad = [
      ['{"id":"x-1","kind":"ext.test.any","action":{"a":1,"a":2}}', "json-duplicate-key /action/a x-1"],
      ['{"id":"x-2","kind":"ext.test.any","action":{"a":"\\ud800"}}', "json-surrogate /action/a x-2"],
      ['{"id":"x-3","kind":"ext.test.any","action":{"a":[0,1e999]}}', "json-number /action/a/1 x-3"],
      ['{"id":"x-4","kind":"none","action":{}}', "unknown-kind /kind x-4"],
      ['{"id":"a b","kind":"ext.test.any","action":{}}', "invalid-field /id null"],
      ['{"kind":"ext.test.any","action":{},"typo":1}', "unknown-field /typo null"],
      ['"text"', "invalid-field  null"],
      ["17", "invalid-field  null"],
      ["[]", "invalid-field  null"],
    ] as const;
    const texts = bad.flatMap(([text]) => [good, text]);
    const expected = bad.flatMap(([, problem]) => ["ok", problem]);
    expect(codes(`[${texts.join(",")}]`, "json")).toEqual(expected);
    expect(codes(texts.join("\n"), "ndjson")).toEqual(expected);
  });

  it("loses only the entry whose bytes are not UTF-8", () => {
    const bytes = utf8(`[${good},${good.replace('"a":1', '"a":"X"').replace("e-1", "e-2")},${good}]`);
    bytes[bytes.indexOf("X".charCodeAt(0))] = 0xff;
    expect(codes(bytes, "json")).toEqual(["ok", "json-utf8 /action/a e-2", "ok"]);
  });

  it("as JSON is refused whole where its structure can't be followed; as lines, by the line", () => {
    const broken = good.slice(0, -1);
    for (const body of [
      "",
      "[",
      `[${good}`,
      `[${good},]`,
      `${good}${good}`,
      `${good} x`,
      broken,
      `\ufeff${good}`,
    ]) {
      expect(() => parse(body), body).toThrow(expect.objectContaining({ code: "json-syntax" }));
    }
    expect(codes([good, broken, `${good}${good}`, good].join("\n"), "ndjson")).toEqual([
      "ok",
      "json-syntax  e-1",
      "json-syntax  e-1",
      "ok",
    ]);
    expect(codes("", "ndjson")).toEqual([]);
    expect(codes("[]", "json")).toEqual([]);
  });

  it("has at most 1,000 entries", () => {
    const entries = (count: number) => Array.from({ length: count }, (_, i) => entryOf({ a: "1" }, i));
    for (const [form, join] of [
      ["json", (all: string[]) => `[${all.join(",")}]`],
      ["ndjson", (all: string[]) => all.join("\n")],
    ] as const) {
      expect(parse(join(entries(MAX_BATCH_ENTRIES)), form).entries.every(({ ok }) => ok)).toBe(true);
      expect(() => parse(join(entries(MAX_BATCH_ENTRIES + 1)), form)).toThrow(
        expect.objectContaining({ code: "batch-too-large" }),
      );
    }
  });
});
