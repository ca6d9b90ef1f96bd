import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import {
  KINDS,
  kindSpec,
  type SectionContent,
  validateEntrySections,
} from "../../../shared/kinds/catalogue.ts";
import { AUTHORIZATIONS } from "../../../shared/kinds/sections.ts";
import type { SectionName } from "../../../shared/kinds/validate.ts";

const H = "ab".repeat(32);
const VIEW = {
  status: "RUNNING",
  step_count: 3,
  model_calls: 4,
  input_tokens: 1200,
  output_tokens: 55,
  cached_input_tokens: 0,
  estimated_cost_micros: 311,
  active_ms: 1234,
  steps: 3,
  approvals: 0,
};
const VIEW_TEXT = JSON.stringify(VIEW);
const EVALUATED = { tool: "t", args: { a: 1 }, decision: { outcome: "allow" } };

/** Sections of an entry from its JSON text, as the entry parser makes them; `{"$commitment": ...}` becomes one. */
function sectionsOf(text: string): Map<SectionName, SectionContent> {
  const out = new Map<SectionName, SectionContent>();
  const entry = parseJsonValue(text);
  if (!(entry instanceof Map)) throw new Error("an object is expected");
  for (const [name, section] of entry) {
    if (!(section instanceof Map)) throw new Error("a section is an object");
    const texts = new Map<string, string>();
    const commitments = new Map<string, unknown>();
    let tag: string | null = null;
    for (const [field, value] of section) {
      if ((name === "outcome" && field === "status") || (name === "authorization" && field === "type"))
        tag = value as string;
      else if (value instanceof Map && value.has("$commitment")) commitments.set(field, true);
      else texts.set(field, jsonText(value));
    }
    out.set(name as SectionName, { tag, texts, commitments });
  }
  return out;
}

/** "code pointer" of the first problem, or "valid". */
function check(kind: string, entry: unknown): string {
  const spec = kindSpec(kind);
  if (spec === undefined) throw new Error(`no kind ${kind}`);
  const problem = validateEntrySections(
    spec,
    sectionsOf(typeof entry === "string" ? entry : JSON.stringify(entry)),
  );
  return problem === null ? "valid" : `${problem.code} ${problem.pointer}`;
}

describe("validateEntrySections", () => {
  it("accepts entries as the design describes them", () => {
    const accepted: [string, unknown][] = [
      ["run.created", { action: {} }],
      [
        "run.created",
        {
          action: {
            goal: "g",
            limits: { max_steps: 50, max_active_time: 30000000000 },
            tools: [H],
            authorization: [1],
          },
        },
      ],
      [
        "run.created",
        { action: { tools: { read: H } }, authorization: { type: "user", user_id: "u", message_id: "m" } },
      ],
      ["tool.call.started", { action: { tool: "t", args: null, spec_hash: H, tool_call_id: "" } }],
      ["tool.call.completed", { action: { tool: "" }, outcome: { status: "unknown" } }],
      [
        "tool.call.completed",
        { action: { tool: "t" }, outcome: { status: "success", result: [], details: 1, error: null } },
      ],
      ["policy.evaluated", { action: { ...EVALUATED, view: VIEW } }],
      [
        "policy.evaluated",
        {
          action: {
            ...EVALUATED,
            decision: {
              outcome: "require_approval",
              reason: null,
              kind: "k",
              capability: 1,
              presentation: {},
            },
          },
        },
      ],
      [
        "approval.requested",
        {
          action: {
            approval_id: "a",
            kind: "k",
            capability: {},
            presentation: null,
            hash: H,
            expires_at: "2026-01-01T00:00:00Z",
          },
        },
      ],
      [
        "approval.granted",
        { action: { approval_id: "a", request_entry: { seq: 3, hash: H }, scope: "once" } },
      ],
      [
        "http.request",
        {
          action: {
            sequence: 1,
            method: "GET",
            host: "h",
            port: 443,
            path_hash: H,
            headers_hash: H,
            body_hash: H,
            body_len: 0,
            redirect_hop: 0,
            injected_secrets: ["k"],
          },
        },
      ],
      [
        "http.response",
        {
          action: { sequence: 1 },
          outcome: {
            status: "failure",
            body_len: 0,
            complete: false,
            provider_request_ids: [{ header: "x-request-id", value: "v" }],
          },
        },
      ],
      [
        "host.loss",
        { action: { calls: { count: 12 }, reason: "queue_full" }, outcome: { status: "failure" } },
      ],
      [
        "config.reloaded",
        { action: {}, authorization: { type: "system", reason: "r" }, outcome: { status: "success" } },
      ],
      ["ext.acme.thing", { action: { anything: { a: [1] } }, outcome: { status: "denied", more: 1 } }],
    ];
    for (const [kind, entry] of accepted) expect([kind, check(kind, entry)]).toEqual([kind, "valid"]);
  });

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

  it("refuses an own __proto__ that is not what it should be", () => {
    expect(check("run.created", `{"action":{"tools":{"__proto__":"x"}}}`)).toBe(
      "invalid-field /action/tools",
    );
    expect(check("run.created", `{"action":{"limits":{"__proto__":1}}}`)).toBe(
      "unknown-field /action/limits/__proto__",
    );
    expect(check("run.created", `{"action":{"__proto__":1}}`)).toBe("unknown-field /action/__proto__");
    expect(check("run.created", `{"action":{"tools":{"__proto__":"${H}"}}}`)).toBe("valid");
  });

  it("takes a commitment in place of any value, and null in place of an optional one", () => {
    const commitment = { $commitment: H };
    expect(
      check("tool.call.started", { action: { tool: commitment, args: commitment, spec_hash: commitment } }),
    ).toBe("valid");
    expect(
      check("policy.evaluated", { action: { ...EVALUATED, view: null, spec_hash: null, extra: null } }),
    ).toBe("valid");
    expect(
      check("http.response", {
        action: { sequence: commitment },
        outcome: { status: "success", body_len: commitment, complete: commitment },
      }),
    ).toBe("valid");
  });

  it("takes integers in any writing, to 2^63 - 1", () => {
    const steps = (literal: string): string =>
      check(
        "policy.evaluated",
        `{"action":{"tool":"t","args":1,"decision":{"outcome":"deny"},"view":${VIEW_TEXT.replace('"steps":3', `"steps":${literal}`)}}}`,
      );
    const plain = (literal: string): string => check("run.completed", `{"action":{"steps":${literal}}}`);
    for (const literal of [
      "0",
      "5.0",
      "1e3",
      "9007199254740993",
      "999999999999999999",
      "9223372036854775807",
    ]) {
      expect([literal, steps(literal), plain(literal)]).toEqual([literal, "valid", "valid"]);
    }
    for (const literal of ["-1", "0.5", "1e19", '"5"', "[]", "true"]) {
      expect([literal, steps(literal)]).toEqual([literal, "invalid-field /action/view/steps"]);
      expect([literal, plain(literal)]).toEqual([literal, "invalid-field /action/steps"]);
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

describe("the quick checks", () => {
  const texts = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "1.0",
    "1e0",
    "1.5",
    "65535",
    "65536",
    "999999999999999",
    "1000000000000000",
    "999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "1e19",
    '""',
    '"x"',
    `"${H}"`,
    `"${"AB".repeat(32)}"`,
    `"${H}0"`,
    '"2026-01-01T00:00:00Z"',
    '"2026-01-01T00:00:00"',
    '"2026-01-01T00:00:00\\u003e"',
    `"${"x".repeat(512)}"`,
    `"${"x".repeat(513)}"`,
    `"${"\\n".repeat(512)}"`,
    '"\\u003c"',
    '"once"',
    '"tool_call"',
    '"allow"',
    "[]",
    '["x"]',
    "[1]",
    "{}",
    '{"a":1}',
    `[${"1,".repeat(9)}1]`,
  ];

  it("never accept what the schema refuses", () => {
    let quick = 0;
    for (const spec of [
      ...KINDS,
      ...Object.values(AUTHORIZATIONS).map((action) => ({
        kind: "authorization",
        action,
        outcome: undefined,
      })),
    ]) {
      for (const field of [...spec.action.fields, ...(spec.outcome?.fields ?? [])]) {
        for (const text of texts) {
          expect(canonicalJson(text)).toBe(text);
          if (field.schema === null || !field.quick(text)) continue;
          quick++;
          const { success } = field.schema.safeParse(JSON.parse(text));
          expect([spec.kind, field.name, text, success]).toEqual([spec.kind, field.name, text, true]);
        }
      }
    }
    expect(quick).toBeGreaterThan(1000);
  });
});
