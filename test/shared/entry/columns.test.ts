import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { columnsText, idOfColumns } from "../../../shared/entry/columns.ts";
import type { LeafBody } from "../../../shared/entry/leaf.ts";
import { formatRow } from "../../../shared/entry/row.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";

const opaque = fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/);
const bodies = fc.record({
  occurredAt: fc.constant(null),
  id: opaque,
  kind: fc.constantFrom("tool.call.started", "ext.acme.thing"),
  session: fc.option(opaque),
  run: fc.option(opaque),
  step: fc.option(opaque),
  call: fc.option(opaque),
  actor: fc.constant(null),
  submitter: fc.constant({ credential: new Uint8Array(16), reporter: "agent" as const }),
  action: fc.constant(new Map<string, Uint8Array>()),
  authorization: fc.constant(null),
  outcome: fc.option(fc.constant({ tag: "success", fields: new Map<string, Uint8Array>() })),
  client: fc.constant(null),
}) satisfies fc.Arbitrary<LeafBody>;
const tools = fc.string({ unit: "grapheme", maxLength: 40 });

describe("the index columns of an entry", () => {
  it("are JSON of its names, and of its tool as it was sent", () => {
    fc.assert(
      fc.property(bodies, fc.option(tools), (body, tool) => {
        const text = tool === null ? undefined : canonicalJson(JSON.stringify(tool));
        const { id: i, kind: k, session, run, step, call, outcome } = body;
        const given = { i, k, e: session, r: run, p: step, c: call, o: tool, u: outcome?.tag ?? null };
        const expected = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
        const columns = columnsText(body, text);
        expect(JSON.parse(columns)).toEqual(expected);
        expect(idOfColumns(formatRow({ columns, values: null, salts: null }))).toBe(i);
      }),
    );
  });

  it("have no tool that is no text, or a long one", () => {
    const [body] = fc.sample(bodies, 1);
    if (body === undefined) throw new Error("no sample");
    for (const tool of ["7", "null", '{"a":1}', `"${"x".repeat(1023)}"`, undefined])
      expect(columnsText(body, tool)).not.toContain('"o"');
    expect(columnsText(body, `"${"x".repeat(1022)}"`)).toContain('"o"');
  });

  it("that do not begin with an id are refused", () => {
    for (const text of ["", "{}", '{"k":"a","i":"b"}'])
      expect(() => idOfColumns(text)).toThrow(expect.objectContaining({ code: "malformed-content" }));
  });
});
