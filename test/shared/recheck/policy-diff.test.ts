import { describe, expect, it } from "vitest";
import { changeJson, rulesDiff } from "../../../shared/recheck/policy-diff.ts";

const diff = (from: unknown, to: unknown): unknown[] =>
  rulesDiff(JSON.stringify(from), JSON.stringify(to)).map((change) => JSON.parse(changeJson(change)));

describe("the difference of two rules policies", () => {
  it("is by class and by tool, and says what each side has", () => {
    const before = {
      policy_id: "a/v1",
      side_effects: { read_only: "allow", destructive: "deny" },
      tools: { kept: { outcome: "allow" }, gone: { deny: true }, other: { outcome: "allow" } },
    };
    const after = {
      policy_id: "a/v2",
      side_effects: { read_only: "require_approval", destructive: "deny" },
      tools: { kept: { outcome: "allow" }, added: { deny: ["x"] }, other: { outcome: "deny" } },
    };
    expect(diff(before, after)).toEqual([
      { what: "policy_id", from: "a/v1", to: "a/v2" },
      { what: "side_effect", name: "read_only", from: "allow", to: "require_approval" },
      { what: "tool", name: "added", to: { deny: ["x"] } },
      { what: "tool", name: "gone", from: { deny: true } },
      { what: "tool", name: "other", from: { outcome: "allow" }, to: { outcome: "deny" } },
    ]);
    expect(diff(before, before)).toEqual([]);
  });

  it("is by server and tool in a proxy's configuration, in any order of the servers", () => {
    const rules = { read: { side_effect: "read_only" } };
    const before = {
      servers: [
        { name: "a", rules },
        { name: "b", rules },
      ],
    };
    const after = {
      policy: { read_only: "deny" },
      servers: [
        { name: "b", rules: { read: { side_effect: "destructive" } } },
        { name: "a", rules },
      ],
    };
    expect(diff(before, after)).toEqual([
      { what: "side_effect", name: "read_only", to: "deny" },
      {
        what: "tool",
        name: "read",
        server: "b",
        from: { side_effect: "read_only" },
        to: { side_effect: "destructive" },
      },
    ]);
  });

  it("tells numbers apart that are written differently, as the identity does", () => {
    const rule = (n: string) => `{"tools":{"t":{"fixed":{"n":${n}}}}}`;
    expect(rulesDiff(rule("1"), rule("1.0")).map(changeJson)).toEqual([
      '{"what":"tool","name":"t","from":{"fixed":{"n":1}},"to":{"fixed":{"n":1.0}}}',
    ]);
  });
});
