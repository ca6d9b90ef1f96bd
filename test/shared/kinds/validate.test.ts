import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { KINDS } from "../../../shared/kinds/catalogue.ts";
import { AUTHORIZATIONS } from "../../../shared/kinds/sections.ts";
import { check, EVALUATED, H, VIEW, VIEW_TEXT } from "./sections-of.ts";

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
    "9999999999999999999",
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
