import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import type { Decision } from "../../../shared/recheck/model.ts";
import { PolicyRequest } from "../../../shared/recheck/policy.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { OneCall } from "./one-call.ts";
import { defaultPolicy, LoopRun, recheck, type SpecStore, specText, toolSpec, viewOf } from "./support.ts";

const RULES = {
  pay: { side_effect: "remote_mutation", fixed: { currency: "EUR" }, timeout: "5s", deny: ["memo"] },
  balance: { side_effect: "read_only", rename: "saldo" },
  refund: { side_effect: "destructive" },
  close: { side_effect: "read_only", outcome: "deny" },
};
const config = (more: object = {}) =>
  JSON.stringify({
    database: "x.db",
    session: "s",
    servers: [{ name: "bank", command: ["bank"], manifest: "m", rules: RULES }],
    ...more,
  });

function decide(tool: string, policy = config(), args = '{"amount":5.0}') {
  const spec = toolSpec(specText(tool, "read_only"));
  const answer = rulesPolicy(policy).decide(new PolicyRequest("r1", "s1", tool, spec, canonicalJson(args)));
  if (!answer.ok) throw new Error(answer.error);
  return answer.decision;
}

describe("a policy in the form of a proxy's configuration", () => {
  it.each([
    ["saldo", "allow", "side effect read_only is allow by policy"],
    ["bank_refund", "deny", "side effect destructive is deny by policy"],
    ["bank_close", "deny", "tool bank_close is deny by the operator's rule"],
    ["bank_balance", "deny", 'tool "bank_balance" is not offered'],
    ["pay", "deny", 'tool "pay" is not offered'],
  ])("decides %s as the proxy does", (tool, outcome, reason) => {
    expect(decide(tool)).toEqual({ outcome, reason, kind: "", capability: null, presentation: null });
  });

  it("asks with the proxy's capability and presentation", () => {
    const decision = decide("bank_pay");
    const capability = {
      server: "bank",
      tool: "pay",
      name: "bank_pay",
      side_effect: "remote_mutation",
      fixed: { currency: "EUR" },
    };
    expect(JSON.parse(decision.capability!)).toEqual({ ...capability, args: { amount: 5 } });
    expect(JSON.parse(decision.presentation!)).toMatchObject({ ...capability, reason: decision.reason });
    expect(decision).toMatchObject({ outcome: "require_approval", kind: "remote_mutation" });
    for (const text of [decision.capability!, decision.presentation!]) {
      expect(canonicalJson(text)).toBe(text);
      expect(text).toContain('"amount":5.0');
    }
  });

  it("lies over the proxy's defaults, and ignores the parameters that the schema loses", () => {
    const policy = config({ policy: { remote_mutation: "allow" } });
    expect(decide("bank_pay", policy, '{"memo":"x"}').outcome).toBe("allow");
    expect(decide("bank_refund", policy).outcome).toBe("deny");
  });

  it("has the proxy's identity: of the policy over the defaults and the rules, and nothing else", () => {
    const hashed = canonicalJson(
      '{"policy":{"read_only":"allow","local_mutation":"allow","remote_mutation":"require_approval","destructive":"deny"},' +
        '"servers":[{"name":"a","rules":{}},{"name":"bank","rules":{"pay":{"side_effect":"remote_mutation","fixed":{"n":1.0}},' +
        '"x":{"side_effect":"read_only","outcome":"deny","rename":"y"}}}]}',
    );
    const text =
      '{"servers":[{"name":"bank","endpoint":"https://x","manifest":"m","rules":{"pay":{"side_effect":"remote_mutation","fixed":{"n":1.0},' +
      '"timeout":"9s","deny":["z"],"description":"d"},"x":{"side_effect":"read_only","outcome":"deny","rename":"y"}}},{"name":"a","rules":{}}],"hold":"1s"}';
    expect(rulesPolicy(text).id).toBe(
      `agentrt-proxy/sha256:${createHash("sha256").update(hashed).digest("hex")}`,
    );
  });

  it.each([
    [config({ policy: { read_only: "abort" } }), "/policy/read_only"],
    [config({ unknown: 1 }), "/unknown"],
    ['{"servers":[]}', "/servers"],
    ['{"servers":[{"name":"a","rules":{"x":{}}}]}', "/servers/0/rules/x/side_effect"],
    ['{"servers":[{"name":"a","rules":{}},{"name":"a","rules":{}}]}', "/servers/1/name"],
    ['{"servers":[{"name":"a","rules":{}}],"side_effects":{}}', "/side_effects"],
  ])("is refused where it is none: %#", (text, pointer) => {
    expect(() => rulesPolicy(text)).toThrow(expect.objectContaining({ code: "policy-invalid", pointer }));
  });
});

describe("a run that a proxy recorded", () => {
  const spec = specText("bank_pay", "remote_mutation");

  /** A run of one call, recorded with the decision. */
  function recorded(decision: Decision): { run: OneCall; specs: SpecStore } {
    const run = new OneCall().created().step({ kind: "tool_call", tool: "bank_pay", args: { amount: 5 } });
    const spec_hash = run.specs.put(spec);
    const json = (text: string | null) => (text === null ? undefined : JSON.parse(text));
    const fields = {
      ...decision,
      capability: json(decision.capability),
      presentation: json(decision.presentation),
    };
    run.evaluated({ tool: "bank_pay", args: { amount: 5 }, spec_hash, decision: fields, view: viewOf() });
    return { run, specs: run.specs };
  }

  it("compares as the same whatever words its proxy asked with", () => {
    const decision = decide("bank_pay", config(), '{"amount":5}');
    const presentation = JSON.stringify({ ...JSON.parse(decision.presentation!), question: "Pay?" });
    const only = recorded({ ...decision, presentation }).run.only(rulesPolicy(config()));
    expect(only).toMatchObject({ result: "same", rechecked: { presentation: canonicalJson(presentation) } });
  });

  it("differs where a fixed value changed", () => {
    const decision = decide("bank_pay", config(), '{"amount":5}');
    const other = config().replace("EUR", "USD");
    expect(recorded(decision).run.only(rulesPolicy(other)).detail).toContain("another approval");
  });

  it("asks again for the re-run of an unknown attempt, unless the call is denied now", () => {
    const asked = decide("bank_pay", config(), '{"amount":5}');
    const interrupted = {
      run_id: "r0",
      step_id: "s0",
      started_at: "2026-10-01T09:00:00Z",
      ended: "timed_out",
    };
    const capability = { ...JSON.parse(asked.capability!), interrupted };
    const presentation = { ...capability, question: "Again?", reason: "unknown", notice: "It may have." };
    const decision: Decision = {
      outcome: "require_approval",
      reason: "unknown",
      kind: "interrupted_side_effect",
      capability: JSON.stringify(capability),
      presentation: JSON.stringify(presentation),
    };
    const allowing = config({ policy: { remote_mutation: "allow" } });
    expect(recorded(decision).run.only(rulesPolicy(allowing)).result).toBe("same");
    const denying = config({ policy: { remote_mutation: "deny" } });
    expect(recorded(decision).run.only(rulesPolicy(denying))).toMatchObject({
      result: "different",
      rechecked: { outcome: "deny" },
    });
  });

  it("is unchanged in identity under its configuration", () => {
    const policy = rulesPolicy(config({ policy: { remote_mutation: "allow" } }));
    const run = new LoopRun(policy, { tools: new Map([["bank_pay", spec]]) });
    run.call({ tool: "bank_pay", args: '{"amount":5}' });
    expect(recheck(run, policy)).toMatchObject({ identity: "unchanged", same: true, rechecked: 1 });
    expect(recheck(run, defaultPolicy()).identity).toBe("changed");
  });
});
