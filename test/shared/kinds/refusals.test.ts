import { describe, expect, it } from "vitest";
import { kindSpec, validateEntrySections } from "../../../shared/kinds/catalogue.ts";
import { check, EVALUATED, H, sectionsOf, VIEW } from "./sections-of.ts";

describe("validateEntrySections", () => {
  const refused: [string, string, unknown, string][] = [
    ["an unknown field", "run.created", { action: { gaol: "x" } }, "unknown-field /action/gaol"],
    [
      "an unknown field with a slash",
      "run.created",
      { action: { "a/b~": 1 } },
      "unknown-field /action/a~1b~0",
    ],
    [
      "an unknown field as a commitment",
      "run.created",
      { action: { gaol: { $commitment: H } } },
      "unknown-field /action/gaol",
    ],
    ["a missing field", "tool.call.started", { action: { tool: "t" } }, "missing-field /action/args"],
    [
      "a null in place of a field that is needed",
      "tool.call.started",
      { action: { tool: null, args: 1 } },
      "invalid-field /action/tool",
    ],
    ["no action", "run.created", {}, "missing-field /action"],
    [
      "no outcome where there has to be one",
      "tool.call.completed",
      { action: { tool: "t" } },
      "missing-field /outcome",
    ],
    [
      "an outcome where there is none",
      "run.created",
      { action: {}, outcome: { status: "success" } },
      "unknown-section /outcome",
    ],
    [
      "an authorization where there is none",
      "policy.evaluated",
      { action: EVALUATED, authorization: { type: "system", reason: "r" } },
      "unknown-section /authorization",
    ],
    [
      "an unknown status",
      "tool.call.completed",
      { action: { tool: "t" }, outcome: { status: "ok" } },
      "invalid-field /outcome/status",
    ],
    [
      "no status",
      "tool.call.completed",
      { action: { tool: "t" }, outcome: {} },
      "missing-field /outcome/status",
    ],
    [
      "an unknown type of authorization",
      "run.created",
      { action: {}, authorization: { type: "admin" } },
      "invalid-field /authorization/type",
    ],
    [
      "no type of authorization",
      "run.created",
      { action: {}, authorization: { user_id: "u" } },
      "missing-field /authorization/type",
    ],
    [
      "a field of another type of authorization",
      "run.created",
      { action: {}, authorization: { type: "system", reason: "r", user_id: "u" } },
      "unknown-field /authorization/user_id",
    ],
    [
      "an authorization without its field",
      "run.created",
      { action: {}, authorization: { type: "denied" } },
      "missing-field /authorization/reason",
    ],
    [
      "extra in an outcome",
      "tool.call.completed",
      { action: { tool: "t" }, outcome: { status: "success", extra: 1 } },
      "unknown-field /outcome/extra",
    ],
    ["a wrong type", "tool.call.started", { action: { tool: 7, args: 1 } }, "invalid-field /action/tool"],
    [
      "a label that is too long",
      "tool.call.started",
      { action: { tool: "x".repeat(513), args: 1 } },
      "invalid-field /action/tool",
    ],
    [
      "an upper-case hash",
      "tool.call.started",
      { action: { tool: "t", args: 1, spec_hash: H.toUpperCase() } },
      "invalid-field /action/spec_hash",
    ],
    [
      "a time without an offset",
      "run.timeout",
      { action: { deadline_at: "2026-01-01T00:00:00" } },
      "invalid-field /action/deadline_at",
    ],
    [
      "an unknown outcome of a policy",
      "policy.evaluated",
      { action: { ...EVALUATED, decision: { outcome: "maybe" } } },
      "invalid-field /action/decision/outcome",
    ],
    [
      "a decision without outcome",
      "policy.evaluated",
      { action: { ...EVALUATED, decision: { reason: "r" } } },
      "missing-field /action/decision/outcome",
    ],
    [
      "an unknown member of a decision",
      "policy.evaluated",
      { action: { ...EVALUATED, decision: { outcome: "deny", "rea/son": "r" } } },
      "unknown-field /action/decision/rea~1son",
    ],
    [
      "a view with a count missing",
      "policy.evaluated",
      { action: { ...EVALUATED, view: { ...VIEW, steps: undefined } } },
      "missing-field /action/view/steps",
    ],
    [
      "a view with a negative count",
      "policy.evaluated",
      { action: { ...EVALUATED, view: { ...VIEW, steps: -1 } } },
      "invalid-field /action/view/steps",
    ],
    [
      "a view with a null count",
      "policy.evaluated",
      { action: { ...EVALUATED, view: { ...VIEW, steps: null } } },
      "invalid-field /action/view/steps",
    ],
    [
      "an eleventh member of a view",
      "policy.evaluated",
      { action: { ...EVALUATED, view: { ...VIEW, cost: 1 } } },
      "unknown-field /action/view/cost",
    ],
    [
      "a limit that is no limit",
      "run.created",
      { action: { limits: { max_steps: 0 } } },
      "invalid-field /action/limits/max_steps",
    ],
    [
      "tools that are no hashes",
      "run.created",
      { action: { tools: [H, "x"] } },
      "invalid-field /action/tools",
    ],
    [
      "tools by name that are no hashes",
      "run.created",
      { action: { tools: { a: "x" } } },
      "invalid-field /action/tools",
    ],
    [
      "a port out of range",
      "net.connect",
      { action: { host: "h", port: 65536 } },
      "invalid-field /action/port",
    ],
    [
      "a header without value",
      "http.response",
      {
        action: { sequence: 1 },
        outcome: { status: "success", body_len: 0, complete: true, provider_request_ids: [{ header: "h" }] },
      },
      "missing-field /outcome/provider_request_ids/0/value",
    ],
    [
      "an unknown outcome in a tally",
      "host.run",
      { action: { calls: { count: 1, tally: [{ class: "c", outcome: "fine", count: 1 }] } } },
      "invalid-field /action/calls/tally/0/outcome",
    ],
    [
      "a line of no calls in a tally",
      "host.run",
      { action: { calls: { count: 1, tally: [{ class: "c", outcome: "ok", count: 0 }] } } },
      "invalid-field /action/calls/tally/0/count",
    ],
    [
      "a loss of nothing",
      "host.loss",
      { action: { calls: { count: 0 }, reason: "queue_full" } },
      "invalid-field /action/calls/count",
    ],
    [
      "a reference to no entry",
      "approval.granted",
      { action: { approval_id: "a", request_entry: { seq: 0, hash: H } } },
      "invalid-field /action/request_entry/seq",
    ],
    [
      "a field name that is none, in an extension",
      "ext.acme.thing",
      { action: { "Bad Name": 1 } },
      "unknown-field /action/Bad Name",
    ],
    [
      "a wrong type of a common field, in an extension",
      "ext.acme.thing",
      { action: { "imported.seq": "x" } },
      "invalid-field /action/imported.seq",
    ],
  ];
  for (const [name, kind, entry, expected] of refused) {
    it(`refuses ${name} at its place`, () => expect(check(kind, entry)).toBe(expected));
  }

  it("demands all ten members of a view", () => {
    expect(Object.keys(VIEW)).toHaveLength(10);
    for (const member of Object.keys(VIEW)) {
      const at = `/action/view/${member}`;
      expect(
        check("policy.evaluated", { action: { ...EVALUATED, view: { ...VIEW, [member]: undefined } } }),
      ).toBe(`missing-field ${at}`);
      expect(check("policy.evaluated", { action: { ...EVALUATED, view: { ...VIEW, [member]: null } } })).toBe(
        `invalid-field ${at}`,
      );
    }
  });

  it("never repeats a value in its messages", () => {
    for (const [, kind, entry] of refused) {
      const spec = kindSpec(kind);
      if (spec === undefined) throw new Error("no kind");
      const text = JSON.stringify(entry)
        .replaceAll('"x"', '"sekrit"')
        .replaceAll('"maybe"', '"sekrit"')
        .replaceAll('"ok"', '"sekrit"')
        .replaceAll('"admin"', '"sekrit"');
      expect(validateEntrySections(spec, sectionsOf(text))?.message).toMatch(/^(?!.*sekrit).+$/s);
    }
  });
});

describe("a list of hundreds of thousands of wrong elements", () => {
  const field = (kind: string, section: "action" | "outcome", name: string) =>
    kindSpec(kind)?.[section]?.byName.get(name)?.schema;
  const tally = { count: 1, tally: Array.from({ length: 300_000 }, () => 1) };
  it.each([
    ["labels", field("capability.created", "action", "permissions"), tally.tally, [0]],
    ["objects", field("http.response", "outcome", "provider_request_ids"), tally.tally, [0]],
    ["a tally", field("host.run", "action", "calls"), tally, ["tally", 0]],
  ])("is refused for its first one alone: %s", (_what, schema, value, path) => {
    const issues = schema?.safeParse(value).error?.issues;
    expect(issues?.map((issue) => issue.path)).toEqual([path]);
  });

  it("is refused where the wrong one is, and taken where none is", () => {
    const list = Array.from({ length: 1000 }, (_, i) => `label ${i}`);
    const schema = field("capability.created", "action", "permissions");
    expect(schema?.safeParse(list).success).toBe(true);
    list[700] = "x".repeat(513);
    expect(schema?.safeParse(list).error?.issues[0]?.path).toEqual([700]);
  });
});
