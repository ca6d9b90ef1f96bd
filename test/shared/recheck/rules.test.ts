import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { type PolicyAnswer, PolicyRequest } from "../../../shared/recheck/policy.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { specText, toolSpec } from "./support.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

function decide(policy: unknown, tool = "t", sideEffect = "read_only", args = "{}"): PolicyAnswer {
  const text = typeof policy === "string" ? policy : JSON.stringify(policy);
  const spec = toolSpec(specText("t", sideEffect));
  return rulesPolicy(text).decide(new PolicyRequest("r1", "s1", tool, spec, canonicalJson(args)));
}

function outcome(...args: Parameters<typeof decide>): [string, string] {
  const answer = decide(...args);
  if (!answer.ok) throw new Error(answer.error);
  return [answer.decision.outcome, answer.decision.reason];
}

const CLASSES = { read_only: "allow", local_mutation: "abort", destructive: "deny" };

describe("what a rules policy decides", () => {
  it.each([
    ["read_only", ["allow", "side effect read_only is allow by policy"]],
    ["local_mutation", ["abort", "side effect local_mutation is abort by policy"]],
    ["destructive", ["deny", "side effect destructive is deny by policy"]],
    ["remote_mutation", ["deny", 'no policy for side effect "remote_mutation"']],
    ["made_up", ["deny", 'no policy for side effect "made_up"']],
    ["__proto__", ["deny", 'no policy for side effect "__proto__"']],
    ["", ["deny", 'no policy for side effect ""']],
  ])("by class: %s", (sideEffect, expected) => {
    expect(outcome({ side_effects: CLASSES }, "t", sideEffect)).toEqual(expected);
  });

  it.each([
    [
      "an outcome, whatever the class",
      { outcome: "allow" },
      "destructive",
      ["allow", "tool t is allow by the operator's rule"],
    ],
    [
      "a class in place of the spec's",
      { side_effect: "read_only" },
      "destructive",
      ["allow", "side effect read_only is allow by policy"],
    ],
    [
      "deny before an outcome",
      { outcome: "allow", deny: true },
      "read_only",
      ["deny", "tool t is deny by the operator's rule"],
    ],
    [
      "deny false, as none",
      { deny: false },
      "read_only",
      ["allow", "side effect read_only is allow by policy"],
    ],
    [
      "an argument that is denied",
      { outcome: "allow", deny: ["x", "b"] },
      "read_only",
      ["deny", 'argument "b" of tool t is denied by the operator\'s rule'],
    ],
    [
      "arguments that are not there",
      { deny: ["x", "inner"] },
      "read_only",
      ["allow", "side effect read_only is allow by policy"],
    ],
  ])("by tool: %s", (_name, rule, sideEffect, expected) => {
    const policy = { side_effects: CLASSES, tools: { t: rule } };
    expect(outcome(policy, "t", sideEffect, '{"a":{"inner":1},"b":2}')).toEqual(expected);
  });

  it("by the name that a tool was renamed to, and no more by the old one", () => {
    const policy = { tools: { old: { outcome: "allow", rename: "t" } } };
    expect(outcome(policy, "t")).toEqual(["allow", "tool t is allow by the operator's rule"]);
    expect(outcome(policy, "old")).toEqual(["deny", 'no policy for side effect "read_only"']);
  });

  it("asks for an approval of the call, in canonical form, numbers as they are", () => {
    const policy = { side_effects: { remote_mutation: "require_approval" } };
    const subject = '{"args":{"a":1.0,"b":"\\u003c"},"tool":"t\\u0026"}';
    const answer = decide(policy, "t&", "remote_mutation", '{"b":"<","a":1.0}');
    expect(answer).toEqual({
      ok: true,
      decision: {
        outcome: "require_approval",
        reason: "side effect remote_mutation is require_approval by policy",
        kind: "remote_mutation",
        capability: subject,
        presentation: subject,
      },
    });
    expect(canonicalJson(subject)).toBe(subject);
  });

  it("puts fixed values into the approval, and names a kind where no class is known", () => {
    const text =
      '{"tools":{"t":{"outcome":"require_approval","fixed":{"z":1.50,"a":{"b":12345678901234567890}}}}}';
    const subject = '{"args":{},"fixed":{"a":{"b":12345678901234567890},"z":1.50},"tool":"t"}';
    expect(decide(text, "t", "")).toMatchObject({
      decision: { kind: "tool_call", capability: subject, presentation: subject },
    });
    expect(canonicalJson(subject)).toBe(subject);
  });
});

describe("the identity of a rules policy", () => {
  const id = (policy: unknown) =>
    rulesPolicy(typeof policy === "string" ? policy : JSON.stringify(policy)).id;

  it("is the one that it names", () => {
    expect(id({ policy_id: "strict/v1", side_effects: {} })).toBe("strict/v1");
  });

  it("is the hash of what enters a decision", () => {
    const text =
      '{"tools":{"b":{"rename":"c","outcome":"deny"},"a":{"deny":["z","y","z"],"fixed":{"n":1.0}}},"side_effects":{"read_only":"allow"}}';
    const hashed =
      '{"policy":{"read_only":"allow"},"tools":{"a":{"deny":["y","z"],"fixed":{"n":1.0}},"b":{"outcome":"deny","rename":"c"}}}';
    expect(id(text)).toBe(`runseal-rules/sha256:${sha256(hashed)}`);
  });

  it.each([
    [{ side_effects: {}, tools: {} }, { side_effects: {} }, true],
    [{ side_effects: {}, tools: { a: {} } }, { side_effects: {} }, true],
    [{ tools: { a: { deny: false } } }, { tools: { a: { deny: [] } } }, true],
    [{ tools: { a: { deny: ["x", "y"] } } }, { tools: { a: { deny: ["y", "x"] } } }, true],
    [{ tools: { a: { deny: true } } }, { tools: { a: {} } }, false],
    [{ tools: { a: { outcome: "deny" } } }, { tools: { a: { outcome: "abort" } } }, false],
    [{ tools: { a: { fixed: { n: 1 } } } }, { tools: { a: { fixed: { n: 2 } } } }, false],
    [{ tools: { a: { rename: "b" } } }, { tools: { a: { rename: "c" } } }, false],
    [{ tools: { a: { side_effect: "read_only" } } }, { tools: { a: {} } }, false],
    [{ side_effects: { read_only: "allow" } }, { side_effects: { read_only: "deny" } }, false],
  ])("of %j and %j: equal is %s", (a, b, equal) => {
    expect(id(a) === id(b)).toBe(equal);
  });
});

describe("a rules document", () => {
  it.each([
    ["[]", "policy-invalid", ""],
    ["{}", "policy-invalid", ""],
    ['{"policy_id":"x"}', "policy-invalid", ""],
    ['{"side_effects":{},"extra":1}', "policy-invalid", "/extra"],
    ['{"side_effects":{"read_only":"permit"}}', "policy-invalid", "/side_effects/read_only"],
    ['{"side_effects":{"readonly":"allow"}}', "policy-invalid", "/side_effects/readonly"],
    ['{"tools":{"a":{"outcome":"allow","outcom":"deny"}}}', "policy-invalid", "/tools/a/outcom"],
    ['{"tools":{"a":{"fixed":[]}}}', "policy-invalid", "/tools/a/fixed"],
    ['{"tools":{"a":{"deny":"x"}}}', "policy-invalid", "/tools/a/deny"],
    ['{"tools":{"__proto__":{"outcome":"allow"}}}', "policy-invalid", "/tools/__proto__"],
    ['{"tools":{"a/b":{"rename":"c"},"c":{}}}', "policy-invalid", "/tools/c"],
    ['{"side_effects":{},"policy_id":"a\\nb"}', "policy-identity", "/policy_id"],
    ['{"side_effects":{},"side_effects":{}}', "json-duplicate-key", "/side_effects"],
    ['{"side_effects":', "json-syntax", "/side_effects"],
  ])("is refused: %s", (text, code, pointer) => {
    expect(() => rulesPolicy(text)).toThrow(expect.objectContaining({ code, pointer }));
  });

  it("is refused in words that do not repeat it", () => {
    for (const text of [
      '{"side_effects":{"read_only":"s3cret"}}',
      '{"side_effects":{},"s3cret":1}',
      '{"tools":{"a":{"deny":"s3cret"}}}',
    ]) {
      let message = "";
      try {
        rulesPolicy(text);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).not.toBe("");
      expect(message).not.toContain("s3cret");
    }
  });
});
