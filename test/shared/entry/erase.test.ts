import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { columnsOf } from "../../../shared/entry/columns.ts";
import type { SectionName } from "../../../shared/entry/commitment.ts";
import { SECTIONS } from "../../../shared/entry/commitment.ts";
import { hasErased, joinSections, splitContent, splitSections } from "../../../shared/entry/content.ts";
import { ALL_ERASED, eraseContent } from "../../../shared/entry/erase.ts";
import { FieldSelection } from "../../../shared/entry/field-selection.ts";
import { parseRow } from "../../../shared/entry/row.ts";
import { viewOf } from "../../../shared/entry/to-view.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { accepted, membersOf, seal, sectionOf } from "./ingest-support.ts";

const HASH = "ab".repeat(32);

const name = fc.stringMatching(/^[a-z0-9_.]{1,12}$/);
const value = fc.oneof(
  fc.json().map(canonicalJson),
  fc.constantFrom("12345678901234567890", '"]}}"', '{"$erased":{"action":["a"]}}', "[[]]"),
);
const sections = fc
  .uniqueArray(fc.constantFrom(...SECTIONS), { minLength: 1 })
  .chain((names) =>
    fc.tuple(
      ...names.map((section) => fc.tuple(fc.constant(section), fc.dictionary(name, value, { maxKeys: 4 }))),
    ),
  );

/** Content with a salt of its own for every value. */
function contentOf(parts: readonly (readonly [SectionName, Record<string, string>])[]): {
  values: string;
  salts: string;
} {
  const values = new Map(
    parts.map(([section, fields]) => [section, new Map(Object.entries(fields))] as const),
  );
  let count = 0;
  const salts = new Map(
    parts.map(
      ([section, fields]) =>
        [
          section,
          new Map(Object.keys(fields).map((one) => [one, `"${String(++count).padStart(32, "0")}"`] as const)),
        ] as const,
    ),
  );
  return { values: joinSections(values), salts: joinSections(salts) };
}

describe("erasing content", () => {
  it("takes exactly the chosen values and their salts, and names them, in any order and as often as asked", () => {
    fc.assert(
      fc.property(sections, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (parts, choice) => {
        const content = contentOf(parts);
        const all = parts.flatMap(([section, fields]) =>
          Object.keys(fields).map((one) => `${section}.${one}`),
        );
        const chosen = all.filter((_, i) => choice[i % choice.length]);
        if (chosen.length === 0) return;
        const now = eraseContent(content, FieldSelection.of(chosen));
        if (now === null || now.values === null) throw new Error("nothing was erased");
        const before = splitSections(content.values);
        const saltsBefore = splitSections(content.salts);
        const { texts, erased } = splitContent(now.values);
        const salts = now.salts === null ? null : splitSections(now.salts);
        for (const [section, fields] of before) {
          for (const [field, text] of fields) {
            const gone = chosen.includes(`${section}.${field}`);
            expect(texts.get(section)?.get(field)).toBe(gone ? undefined : text);
            expect(salts?.get(section)?.get(field)).toBe(
              gone ? undefined : saltsBefore.get(section)?.get(field),
            );
            expect(erased.get(section)?.has(field) ?? false).toBe(gone);
          }
        }
        expect([...texts.keys()]).toEqual([...before.keys()]);
        expect(now.salts === null).toBe(chosen.length === all.length);
        expect(hasErased(now.values)).toBe(true);
        expect(hasErased(content.values)).toBe(false);
        // Again: nothing. One after the other: the same as all at once.
        expect(eraseContent(now, FieldSelection.of(chosen))).toBe(null);
        let step: { values: string | null; salts: string | null } = content;
        for (const one of chosen.toReversed()) step = eraseContent(step, FieldSelection.of([one])) ?? step;
        expect(splitContent(step.values ?? "").texts).toEqual(texts);
        expect(step.salts).toBe(now.salts);
      }),
    );
  });

  it("of an entry without values, of other fields, and of what is erased already does nothing", () => {
    expect(eraseContent({ values: '{"action":{}}', salts: '{"action":{}}' }, FieldSelection.all)).toBe(null);
    expect(eraseContent(ALL_ERASED, FieldSelection.all)).toBe(null);
    const content = { values: '{"action":{"a":1}}', salts: '{"action":{"a":"00"}}' };
    expect(eraseContent(content, FieldSelection.of(["outcome.a", "action.b"]))).toBe(null);
    expect(eraseContent(content, FieldSelection.all)).toEqual({
      values: '{"action":{},"$erased":{"action":["a"]}}',
      salts: null,
    });
  });

  it.each([
    [[]],
    [["tool"]],
    [["action."]],
    [["action.A"]],
    [["other.tool"]],
    [["action.tool", "x"]],
    [["action.*"]],
  ])("takes no selection %j", (names) => {
    expect(() => FieldSelection.of(names)).toThrow(expect.objectContaining({ code: "invalid-field" }));
  });

  it("is told from a value that was never there, for readers and for the folds", () => {
    const sent = accepted(
      `{"id":"e","kind":"ext.test.x","action":{"a":1,"b":{"$commitment":"${HASH}"},"tool":"t"},"outcome":{"status":"success","result":2}}`,
    );
    const { leaf, values, salts } = seal(sent);
    const left = eraseContent({ values, salts }, FieldSelection.of(["action.a", "action.tool"]));
    const view = viewOf(leaf, "00", left?.values ?? null);
    expect(view.action.get("a")).toEqual({ missing: "erased" });
    expect(view.action.get("b")).toEqual({ missing: "commitment-only" });
    expect(view.outcome?.fields.get("result")).toEqual({ text: "2" });
    const all = eraseContent({ values, salts }, FieldSelection.all);
    expect(viewOf(leaf, "00", all?.values ?? null).action.get("b")).toEqual({ missing: "commitment-only" });
    expect(viewOf(leaf, "00", all?.values ?? null).outcome?.fields.get("result")).toEqual({
      missing: "erased",
    });
    const text = seal({
      ...sent,
      row: `${parseRow(sent.row).columns}\u0001${left?.values}\u0001${left?.salts}`,
    }).text;
    expect(sectionOf(text, "action").get("a")).toMatch(
      /^\{"\$commitment":"[0-9a-f]{64}","\$erased":true\}$|^\{"\$erased":true,"\$commitment":"[0-9a-f]{64}"\}$/,
    );
    expect(sectionOf(text, "action").get("b")).toBe(`{"$commitment":"${HASH}"}`);
    expect(membersOf(text).get("outcome")).toContain('"result":2');
    // The tool's name is in an index column: it goes with the value.
    expect(columnsOf(leaf, values)).toBe(parseRow(sent.row).columns);
    expect(columnsOf(leaf, left?.values ?? null)).not.toContain('"o"');
    expect(columnsOf(leaf, null)).not.toContain('"o"');
  });
});
