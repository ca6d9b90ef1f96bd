import { describe, expect, it } from "vitest";
import { utf8 } from "../../../shared/bytes.ts";
import { RunsealError } from "../../../shared/errors.ts";
import {
  MAX_DECLARATION_BYTES,
  MAX_DECLARED_KINDS,
  readDeclaration,
} from "../../../shared/kinds/declaration.ts";

const OBJECT = { type: "object" };

function refusal(body: unknown, prefix = "acme"): string {
  try {
    readDeclaration(
      prefix,
      body instanceof Uint8Array ? body : utf8(typeof body === "string" ? body : JSON.stringify(body)),
    );
  } catch (error) {
    if (error instanceof RunsealError) return `${error.code} ${error.pointer}`;
    throw error;
  }
  return "accepted";
}

const manyKinds = (count: number) => ({
  kinds: Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, { action: OBJECT }])),
});
/** A declaration whose canonical text has this many bytes. */
function sized(bytes: number): string {
  const text = (filler: string) => `{"kinds":{"k":{"action":{"$comment":"${filler}","type":"object"}}}}`;
  return text("x".repeat(bytes - text("").length));
}

describe("a declaration", () => {
  it("is canonical text, and the kinds that it names", () => {
    const sent =
      ' {"kinds": {"b.c": {"action": {"type":"object", "properties":{"n":{"type":"number","maximum":1.0}}}}}}';
    const { text, kinds } = readDeclaration("acme", utf8(sent));
    expect(text).toBe(
      '{"kinds":{"b.c":{"action":{"properties":{"n":{"maximum":1.0,"type":"number"}},"type":"object"}}}}',
    );
    expect(kinds.specOf("ext.acme.b.c")?.action.byName.has("n")).toBe(true);
    for (const kind of ["ext.acme.b", "ext.acme.B.c", "ext.other.b.c"])
      expect(kinds.specOf(kind)).toBeUndefined();
  });

  it("may have no kind: then nothing is taken under its prefix", () => {
    expect(refusal({ kinds: {} })).toBe("accepted");
  });

  it.each([
    ["no JSON", "{", "json-syntax "],
    ["nothing", "", "json-syntax "],
    ["no UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "json-syntax "],
    ["a key twice", '{"kinds":{},"kinds":{}}', "json-duplicate-key /kinds"],
    [
      "a number that no double holds",
      '{"kinds":{"k":{"action":{"type":"object","x":1e400}}}}',
      "json-number /kinds/k/action/x",
    ],
    ["another member", { kinds: {}, more: 1 }, "bad-schema /more"],
    ["no kinds", {}, "bad-schema /kinds"],
    ["an array", [], "bad-schema "],
    ["a kind that is no object", { kinds: { k: 1 } }, "bad-schema /kinds/k"],
    ["a kind without an action", { kinds: { k: {} } }, "bad-schema /kinds/k/action"],
    [
      "a member of a kind that there is not",
      { kinds: { k: { action: OBJECT, x: 1 } } },
      "bad-schema /kinds/k/x",
    ],
    [
      "a long description",
      { kinds: { k: { action: OBJECT, description: "x".repeat(513) } } },
      "bad-schema /kinds/k/description",
    ],
    [
      "a schema that is not taken",
      { kinds: { "a.b": { action: OBJECT, outcome: { type: "object", x: 1 } } } },
      "bad-schema /kinds/a.b/outcome/x",
    ],
    ["a bad name", { kinds: { "a/b": { action: OBJECT } } }, "bad-schema /kinds/a~1b"],
    ["an empty name", { kinds: { "": { action: OBJECT } } }, "bad-schema /kinds/"],
    [
      "a long name",
      { kinds: { ["x".repeat(120)]: { action: OBJECT } } },
      `bad-schema /kinds/${"x".repeat(120)}`,
    ],
    [
      "__proto__ for a name",
      '{"kinds":{"__proto__":{"action":{"type":"object"}}}}',
      "bad-schema /kinds/__proto__",
    ],
    ["too many kinds", manyKinds(MAX_DECLARED_KINDS + 1), "bad-schema /kinds"],
    ["too many bytes", sized(MAX_DECLARATION_BYTES + 1), "bad-schema "],
  ])("is refused where it is or has %s", (_name, body, expected) => {
    expect(refusal(body)).toBe(expected);
  });

  it("is taken up to its limits", () => {
    expect(refusal(manyKinds(MAX_DECLARED_KINDS))).toBe("accepted");
    expect(refusal(sized(MAX_DECLARATION_BYTES))).toBe("accepted");
    expect(refusal({ kinds: { ["x".repeat(119)]: { action: OBJECT } } })).toBe("accepted");
  });
});
