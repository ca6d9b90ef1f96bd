import { describe, expect, it } from "vitest";
import { MAX_PAGE_TEXT } from "../../../shared/recheck/limits.ts";
import type { RecheckedEvaluation } from "../../../shared/recheck/report.ts";
import { allow, LONG, OneCall, whole } from "./one-call.ts";
import { answerOf, defaultPolicy, gone, LoopRun, policyOf, raw, recheck, TOOLS, viewOf } from "./support.ts";

function expectSkipped(evaluation: RecheckedEvaluation, detail: string, result = "not_recheckable"): void {
  expect({ detail: evaluation.detail, result: evaluation.result }).toEqual({ detail, result });
  expect(evaluation.rechecked).toBeNull();
  expect(evaluation.recordedHash + evaluation.recheckedHash).toBe("");
  expect(evaluation.specSource).toBe("");
}

describe("rows 1 to 5: what is not re-checked", () => {
  it("re-checks the run that the other cases damage", () => {
    expect(whole().evaluated().only()).toMatchObject({
      result: "same",
      stepIndex: 0,
      stepId: "s1",
      specSource: "recorded",
    });
  });

  it("lists a policy that failed, with its step's tool and identity", () => {
    const run = whole();
    run.log.add("step.failed", { step: "s1", action: { detail: "policy error: rules unavailable" } });
    const only = run.only();
    expectSkipped(only, "policy failed; no evaluation recorded: rules unavailable");
    expect(only).toMatchObject({
      reason: "policy-failed",
      tool: "read",
      seq: 4,
      onResume: false,
      policyId: "",
    });
  });

  it("knows the identity of a policy that failed where the entry gives it", () => {
    const run = whole();
    run.log.add("step.failed", { step: "s1", action: { detail: "policy error: x", policy_id: "flaky/v1" } });
    expect(run.only().policyId).toBe("flaky/v1");
  });

  it("lists a policy that failed on resume after the step's evaluation", () => {
    const run = whole().evaluated();
    run.log.add("run.resumed");
    run.log.add("step.failed", { step: "s1", action: { detail: "policy error: rules gone" } });
    const [first, second] = recheck(run, allow).evaluations;
    expect(first).toMatchObject({ result: "same", onResume: false });
    expectSkipped(second!, "policy failed; no evaluation recorded: rules gone");
    expect(second).toMatchObject({ onResume: true, policyId: "allow/v1" });
  });

  it.each([
    ["a decision that is no object", { decision: 7 }, "decision is not an object"],
    ["no decision", { decision: undefined }, "decision is missing"],
    ["an outcome that is no string", { decision: { outcome: 1 } }, "decision.outcome is not a string"],
    ["a view that is no object", { view: [] }, "view is not an object"],
    [
      "a count that is no integer",
      { view: raw(JSON.stringify(viewOf()).replace('"steps":0', '"steps":1.0')) },
      "view.steps is not an integer",
    ],
    ["a status that is no string", { view: viewOf({ status: 1 }) }, "view.status is not a string"],
    ["a spec hash that is no string", { spec_hash: 1 }, "spec_hash is not a string"],
    ["an identity that is no string", { policy_id: {} }, "policy_id is not a string"],
  ])("does not decode %s", (_name, fields, why) => {
    expectSkipped(
      whole().evaluated(fields).only(),
      `not re-checkable: its step.policy does not decode: ${why}`,
    );
  });

  it("does not read a step.policy that is longer than a page", () => {
    const decision = { outcome: "require_approval", kind: "k", capability: LONG };
    const only = whole().evaluated({ decision }).only();
    expectSkipped(only, "not re-checkable: its step.policy is longer than MaxPageText");
    expect(only.recorded.outcome).toBe("");
    const under = { outcome: "allow", reason: LONG.slice(500) };
    expect(whole().evaluated({ decision: under }).only().result).toBe("same");
  });

  it("counts page text in code points", () => {
    const decision = { outcome: "allow", reason: "😀".repeat(MAX_PAGE_TEXT - 500) };
    expect(whole().evaluated({ decision }).only().result).toBe("same");
  });

  it.each(["erased", "withheld", "commitment-only"] as const)("names a field that is %s", (why) => {
    for (const name of ["tool", "spec_hash", "decision", "view", "args"]) {
      const only = whole()
        .evaluated({ [name]: gone(why) })
        .only();
      expectSkipped(only, `not re-checkable: ${why}: ${name} of its policy.evaluated`);
      expect(only.reason).toBe(why);
    }
  });

  it("re-checks an evaluation whose policy identity is erased, and knows no identity then", () => {
    const report = recheck(whole().evaluated({ policy_id: gone("erased") }), allow);
    expect(report).toMatchObject({ rechecked: 1, complete: true, identity: "unknown" });
  });

  it("does not re-check what was recorded before v0.5.0", () => {
    const only = whole().evaluated({ view: undefined, spec_hash: undefined }).only();
    expectSkipped(only, "not re-checkable: recorded before v0.5.0");
  });

  it("knows the pauses that no policy made", () => {
    const pause = (kind: string) =>
      whole().evaluated({ view: null, decision: { outcome: "require_approval", kind } });
    const result = "not_a_policy_evaluation";
    const interrupted = pause("interrupted_side_effect").only();
    expectSkipped(interrupted, "not a policy evaluation: an interrupted side effect's pause", result);
    expectSkipped(pause("other").only(), "not a policy evaluation: a reconciliation's pause", result);
    expect(recheck(pause("other"), allow)).toMatchObject({ complete: true, rechecked: 0 });
  });

  it.each([
    ["no spec", whole().evaluated({ spec_hash: undefined }), "no spec is recorded"],
    ["no step", whole().evaluated({}, "s9"), "its step is not recorded"],
    ["no step id", whole().evaluated({}, null), "its step is not recorded"],
    [
      "a long decision",
      new OneCall().created().step({ kind: "tool_call", tool: "read", args: LONG }).evaluated(),
      "step 0: its decision is longer than MaxPageText",
    ],
    [
      "another decision",
      new OneCall().created().step({ kind: "complete" }).evaluated(),
      "step 0 recorded no tool call",
    ],
    ["no decision", new OneCall().created().step(null).evaluated(), "step 0 recorded no tool call"],
    ["long arguments", whole().evaluated({ args: LONG }), "its arguments are longer than MaxPageText"],
    [
      "no run.created",
      new OneCall().step().evaluated(),
      "its run.created is missing or longer than MaxPageText",
    ],
    [
      "a long run.created",
      new OneCall().created({ goal: LONG }).step().evaluated(),
      "its run.created is missing or longer than MaxPageText",
    ],
    [
      "an erased goal",
      new OneCall()
        .created({ goal: gone("erased") })
        .step()
        .evaluated(),
      "erased: goal of its run.created",
    ],
    [
      "more steps than there are",
      whole().evaluated({ view: viewOf({ steps: 2, approvals: 0 }) }),
      "the view counted 2 steps and 0 approvals; the run has 1 and 0",
    ],
    [
      "more approvals than there are",
      whole().evaluated({ view: viewOf({ steps: 0, approvals: 1 }) }),
      "the view counted 0 steps and 1 approvals; the run has 1 and 0",
    ],
    [
      "negative counts",
      whole().evaluated({ view: viewOf({ steps: -1 }) }),
      "the view counted -1 steps and 0 approvals; the run has 1 and 0",
    ],
    [
      "a count that a double can't hold",
      whole().evaluated({
        view: raw(JSON.stringify(viewOf({ steps: 7 })).replace('"steps":7', '"steps":9007199254740993')),
      }),
      "the view counted 9007199254740993 steps and 0 approvals; the run has 1 and 0",
    ],
    [
      "a spec that is not stored",
      whole().evaluated({ spec_hash: "ab".repeat(32) }),
      `spec ${"ab".repeat(32)} is not stored`,
    ],
  ])("needs what it says: %s", (_name, run, words) => {
    expectSkipped(run.only(), `not re-checkable: ${words}`);
  });

  it.each([
    ["{", /^not re-checkable: spec 00 does not decode: ./],
    ["[]", /^not re-checkable: spec 00 does not decode: it is not an object$/],
    ['{"side_effect":"read_only"}', /^not re-checkable: spec 00 does not decode: it has no name$/],
    [
      '{"name":"read","side_effect":7}',
      /^not re-checkable: spec 00 does not decode: side_effect is not a string$/,
    ],
    [TOOLS.get("read")!, /^not re-checkable: spec 00 does not match its hash$/],
  ])("does not trust a stored spec: %s", (text, detail) => {
    const run = whole();
    run.specs.put(text, "00");
    const only = run.evaluated({ spec_hash: "00" }).only();
    expect(only.detail).toMatch(detail);
    expect(only.result).toBe("not_recheckable");
  });

  it("does not re-check after a viewed step that can't be read, and does before it", () => {
    const run = new LoopRun(defaultPolicy());
    run.call({ tool: "read", args: '{"n":1}' });
    run.call({ tool: "read", args: `{"n":1,"x":"${LONG}"}` });
    run.call({ tool: "read", args: '{"n":3}' });
    const [first, second, third] = recheck(
      run,
      policyOf(() => answerOf("allow")),
    ).evaluations;
    expect(first?.result).toBe("same");
    expect(second?.detail).toBe("not re-checkable: step 1: its decision is longer than MaxPageText");
    expect(third?.detail).toBe("not re-checkable: step 1: its decision is longer than MaxPageText");
  });

  it("minds the observation of a viewed step, and not that of the evaluated one", () => {
    const run = whole().evaluated();
    run.log.add("tool.call.completed", {
      step: "s1",
      action: { tool: "read" },
      outcome: { status: "success", result: LONG },
    });
    run
      .step({ kind: "tool_call", tool: "read", args: { n: 1 } }, "s2")
      .evaluated({ view: viewOf({ steps: 1 }) }, "s2");
    const [own, next] = recheck(
      run,
      policyOf(() => answerOf("allow")),
    ).evaluations;
    expect(own?.result).toBe("same");
    expect(next?.detail).toBe("not re-checkable: step 0: its observation is longer than MaxPageText");
  });

  it("does not miss what only a view would show where the policy reads none", () => {
    const run = new OneCall()
      .created({ goal: gone("erased") })
      .step()
      .evaluated();
    run.log.add("tool.call.completed", {
      step: "s1",
      action: { tool: "read" },
      outcome: { status: "success", result: gone("erased") },
    });
    run.log.add("approval.requested", {
      step: "s1",
      action: { approval_id: "a1", capability: gone("withheld") },
    });
    run.step({ kind: "tool_call", tool: "read", args: { n: 1 } }, "s2");
    run.evaluated({ view: viewOf({ steps: 1, approvals: 1 }) }, "s2");
    const details = (readsView: boolean) =>
      recheck(run, { ...allow, readsView }).evaluations.map(({ detail }) => detail);
    expect(details(false)).toEqual(["", ""]);
    expect(details(true)).toEqual(Array(2).fill("not re-checkable: erased: goal of its run.created"));
  });

  it.each([
    ["a result", "step 0: erased: result of its tool.call.completed", { result: gone("erased") }, {}],
    [
      "a capability",
      "approval a1: withheld: capability of its approval.requested",
      {},
      { capability: gone("withheld") },
    ],
  ])("names the erased value of %s in a view", (_name, words, outcome, approval) => {
    const run = whole().evaluated();
    run.log.add("tool.call.completed", {
      step: "s1",
      action: { tool: "read" },
      outcome: { status: "success", ...outcome },
    });
    run.log.add("approval.requested", { step: "s1", action: { approval_id: "a1", ...approval } });
    run.step({ kind: "tool_call", tool: "read", args: { n: 1 } }, "s2");
    run.evaluated({ view: viewOf({ steps: 1, approvals: 1 }) }, "s2");
    expect(recheck(run, allow).evaluations[1]?.detail).toBe(`not re-checkable: ${words}`);
  });

  it("does not miss the call of a step's decision: the evaluation has its own", () => {
    const decided = { kind: "tool_call", tool: gone("erased"), args: gone("erased") };
    expect(new OneCall().created().step(decided).evaluated().only().result).toBe("same");
  });

  it("takes a failure of another step for one of its own", () => {
    const run = whole().evaluated().step(undefined, "s2");
    run.log.entries.splice(-2);
    run.log.add("step.failed", { step: "s2", action: { detail: "policy error: down" } });
    expect(recheck(run, allow).evaluations.map(({ detail }) => detail)).toEqual([
      "",
      "policy failed; no evaluation recorded: down",
    ]);
  });

  it("sees no policy failure in an erased detail where no call was decided", () => {
    const run = new OneCall().created().step({ kind: "complete" });
    run.log.add("step.failed", { step: "s1", action: { detail: gone("erased") } });
    expect(recheck(run, allow).evaluations).toEqual([]);
  });

  it("does not show an inferred step whose arguments are too long", () => {
    const run = new OneCall().created().evaluated({ args: LONG });
    run.evaluated({ view: viewOf({ steps: 1 }) }, "s2");
    expect(recheck(run, allow).evaluations.map(({ detail }) => detail)).toEqual([
      "not re-checkable: its arguments are longer than MaxPageText",
      "not re-checkable: step 0: its arguments are longer than MaxPageText",
    ]);
  });

  it("may be a policy failure where the detail is erased", () => {
    const run = whole();
    run.log.add("step.failed", { step: "s1", action: { detail: gone("erased") } });
    expectSkipped(run.only(), "not re-checkable: erased: detail of its step.failed");
    const evaluated = whole().evaluated();
    evaluated.log.add("step.failed", { step: "s1", action: { detail: gone("erased") } });
    expect(evaluated.only().result).toBe("same");
  });
});
