import { describe, expect, it } from "vitest";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { recheckRun } from "../../../shared/recheck/compare.ts";
import { reportJson } from "../../../shared/recheck/report.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { allow, OneCall, whole } from "./one-call.ts";
import {
  answerOf,
  defaultPolicy,
  fixtureRun,
  gone,
  lines,
  policyOf,
  raw,
  recheck,
  specText,
  strictPolicy,
  TOOLS,
} from "./support.ts";

describe("row 6: current specs", () => {
  const current = (...texts: string[]) => ({ specSource: "current" as const, currentTools: texts });

  it("says which specs the requests carried", () => {
    const report = recheck(fixtureRun(), defaultPolicy(), current(...TOOLS.values()));
    expect(report).toMatchObject({ same: true, complete: true, specSource: "current" });
    expect(report.evaluations.map(({ specSource }) => specSource)).toEqual(Array(5).fill("current"));
  });

  it("finds another approval where the spec was reworded", () => {
    const reworded = specText("publish", "remote_mutation", undefined, "publish, reworded");
    const tools = [...TOOLS.values()].filter((text) => text !== TOOLS.get("publish"));
    const report = recheck(fixtureRun(), defaultPolicy(), current(...tools, reworded));
    expect(lines(report).filter((line) => line.includes("different"))).toEqual([
      "2 publish different require_approval->require_approval",
      "2 publish different require_approval->require_approval resume",
    ]);
    const evaluation = report.evaluations[2]!;
    expect(evaluation.detail).toBe(
      "asks for another approval: its capability, presentation, or tool spec changed",
    );
    expect(evaluation.recordedHash).not.toBe(evaluation.recheckedHash);
  });

  it("takes the class from the current spec", () => {
    const run = whole().evaluated();
    const only = run.only(strictPolicy(), current(specText("read", "destructive")));
    expect(only).toMatchObject({
      result: "different",
      rechecked: { reason: "side effect destructive is deny by policy" },
    });
  });

  it("refuses before the policy a tool that is gone and arguments that fail", () => {
    const never = policyOf(() => {
      throw new Error("asked");
    });
    const gone = whole().evaluated().only(never, current());
    expect(gone.detail).toBe(
      'tool "read" is not among the current tools: the request would be refused before the policy',
    );
    const schema = '{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}';
    const failed = whole()
      .evaluated()
      .only(never, current(specText("read", "read_only", schema)));
    expect(failed.detail).toBe("the arguments fail the current tool's schema: /n: type is not string");
    for (const each of [gone, failed]) {
      expect(each).toMatchObject({ result: "different", rechecked: null, specSource: "current" });
    }
  });

  it("asks the policy where a schema can't be checked, and notes it once", () => {
    const schema = '{"type":"object","patternProperties":{"^n$":{"type":"integer"}}}';
    const run = whole().evaluated().evaluated();
    const report = recheck(run, allow, current(specText("read", "read_only", schema)));
    expect(report).toMatchObject({ same: true, rechecked: 2 });
    expect(report.notes.filter((note) => note.includes("schema"))).toEqual([
      'the arguments of read were not checked against its current schema: "patternProperties" is not supported',
    ]);
  });

  it("needs the recorded spec all the same, and usable current tools", () => {
    const run = whole().evaluated({ spec_hash: "ab".repeat(32) });
    expect(run.only(allow, current(...TOOLS.values())).result).toBe("not_recheckable");
    expect(() => run.only(allow, current("{"))).toThrow(
      expect.objectContaining({ code: "current-tool", pointer: "/0" }),
    );
    const twice = current(TOOLS.get("read")!, TOOLS.get("read")!);
    expect(() => run.only(allow, twice)).toThrow(
      expect.objectContaining({ code: "current-tool", pointer: "/1" }),
    );
  });
});

describe("rows 7 to 11: the answer", () => {
  const asked = { outcome: "require_approval", kind: "k", capability: { a: 1 }, presentation: { p: 1 } };

  it("is different where the policy fails", () => {
    const only = whole()
      .evaluated()
      .only(policyOf(() => ({ ok: false, error: "rules unavailable" })));
    expect(only).toMatchObject({
      result: "different",
      detail: "policy failed: rules unavailable",
      rechecked: null,
    });
  });

  it("is different with no detail where the outcome is another one", () => {
    const only = whole()
      .evaluated()
      .only(policyOf(() => answerOf("deny")));
    expect(only).toMatchObject({ result: "different", detail: "", rechecked: { outcome: "deny" } });
  });

  it("never compares reasons", () => {
    const only = whole()
      .evaluated()
      .only(policyOf(() => answerOf("allow", { reason: "another reason" })));
    expect(only).toMatchObject({ result: "same", detail: "", rechecked: { reason: "another reason" } });
  });

  it.each([
    ["the same approval", { capability: '{ "a" : 1 }', presentation: '{"p":1}' }, null],
    [
      "another kind",
      { kind: "b", capability: '{"a":1}', presentation: '{"p":1}' },
      'asks for approval kind "b", not "k"',
    ],
    ["another capability", { capability: '{"a":1.0}', presentation: '{"p":1}' }, "another approval"],
    ["another presentation", { capability: '{"a":1}' }, "another approval"],
  ])("compares approvals: %s", (_name, answer, detail) => {
    const only = whole()
      .evaluated({ decision: asked })
      .only(policyOf(() => answerOf("require_approval", { kind: "k", ...answer })));
    expect(only.result).toBe(detail === null ? "same" : "different");
    expect(only.detail).toContain(detail ?? "");
    expect(only.recordedHash).toMatch(/^[0-9a-f]{64}$/);
    expect(only.recordedHash === only.recheckedHash).toBe(detail === null);
  });

  it("reads a presentation in canonical form also beside a capability that is as recorded", () => {
    const answer = { kind: "k", capability: '{"a":1}', presentation: '{ "p" : 1 }' };
    const only = whole()
      .evaluated({ decision: asked })
      .only(policyOf(() => answerOf("require_approval", answer)));
    expect(only).toMatchObject({ result: "same", rechecked: { presentation: '{"p":1}' } });
  });

  it("takes an absent capability for an empty one", () => {
    const decision = { outcome: "require_approval", kind: "k" };
    const policy = policyOf(() =>
      answerOf("require_approval", { kind: "k", capability: "{}", presentation: " " }),
    );
    const only = whole().evaluated({ decision }).only(policy);
    expect(only.result).toBe("same");
    expect(only.recordedHash).toBe(only.recheckedHash);
  });

  it("hashes only the side that asks for an approval", () => {
    const recorded = whole().evaluated({ decision: asked }).only();
    expect([recorded.recordedHash !== "", recorded.recheckedHash]).toEqual([true, ""]);
    const now = whole()
      .evaluated()
      .only(policyOf(() => answerOf("require_approval")));
    expect([now.recordedHash, now.recheckedHash !== ""]).toEqual(["", true]);
  });

  const WHY = 'capability is not usable JSON: duplicate key "a"';
  const invalid = (kind = "k") =>
    policyOf(() => answerOf("require_approval", { kind, capability: '{"a":1,"a":2}' }));
  const refused = (why = WHY, between?: string) => {
    const run = whole().evaluated({ decision: { outcome: "require_approval", kind: "k" } });
    if (between !== undefined) run.log.add(between, { step: "s1" });
    run.log.add("step.failed", { step: "s1", action: { detail: `policy error: ${why}` } });
    return run;
  };

  it("is the same where an invalid decision is refused as it was", () => {
    expect(refused().only(invalid())).toMatchObject({
      result: "same",
      detail: `an invalid decision, refused as recorded: ${WHY}`,
      recordedHash: "",
    });
  });

  it.each([
    ["another text", refused("capability is not usable JSON: something else"), invalid()],
    ["another kind", refused(), invalid("other")],
    [
      "a decision that was valid",
      whole().evaluated({ decision: { outcome: "require_approval", kind: "k" } }),
      invalid(),
    ],
  ])("is different where an invalid decision meets %s", (_name, run, policy) => {
    expect(run.only(policy)).toMatchObject({
      result: "different",
      detail: `policy returned an invalid decision: ${WHY}`,
      rechecked: { capability: JSON.stringify('{"a":1,"a":2}') },
    });
  });

  it("is different where the recorded decision was refused and the new one is valid", () => {
    const only = refused().only(policyOf(() => answerOf("require_approval", { kind: "k" })));
    const detail = `the recorded decision was refused as invalid (${WHY}); the policy now returns a valid one`;
    expect(only).toMatchObject({ result: "different", detail, recordedHash: "" });
  });

  it("looks at the presentation after the capability, and names half a surrogate pair", () => {
    const policy = policyOf(() => answerOf("allow", { capability: "{}", presentation: '"\\uD800"' }));
    const detail =
      "policy returned an invalid decision: presentation is not usable JSON: unpaired surrogate \\ud800";
    expect(whole().evaluated().only(policy).detail).toBe(detail);
  });

  it("knows a refusal by the runtime's own entries before it, whatever other writers put between", () => {
    expect(refused(WHY, "http.request").only(invalid()).result).toBe("same");
    const separated = recheck(refused(WHY, "model.dispatched"), invalid()).evaluations;
    expect(separated.map(({ detail }) => detail)).toEqual([
      `policy returned an invalid decision: ${WHY}`,
      `policy failed; no evaluation recorded: ${WHY}`,
    ]);
  });
});

describe("identity", () => {
  const recorded = (...ids: (string | undefined)[]) => {
    const run = whole();
    for (const policy_id of ids) run.evaluated({ policy_id });
    return run;
  };

  it.each([
    ["unchanged", ["a", "a"], "a"],
    ["changed", ["a", "b"], "a"],
    ["changed", ["b"], "a"],
    ["unknown", ["a", undefined], "a"],
    ["unknown", ["b", undefined], "a"],
    ["unknown", ["a"], ""],
    ["unknown", [], "a"],
  ] as const)("is %s for %j under %j", (identity, ids, given) => {
    expect(
      recheck(
        recorded(...ids),
        policyOf(() => answerOf("allow"), given),
      ).identity,
    ).toBe(identity);
  });

  it("looks only at evaluations that were re-checked", () => {
    const run = recorded("a");
    run.evaluated({ policy_id: "b", spec_hash: undefined });
    expect(
      recheck(
        run,
        policyOf(() => answerOf("deny"), "a"),
      ).identity,
    ).toBe("unchanged");
  });

  it.each(["bad\nid", "\u0085", "x".repeat(257), "é".repeat(129), "\ud800"])("refuses %j", (id) => {
    expect(() =>
      recheck(
        whole(),
        policyOf(() => answerOf("allow"), id),
      ),
    ).toThrow(expect.objectContaining({ code: "policy-identity" }));
  });
});

describe("notes", () => {
  it("come in order, and only where they are true", () => {
    const run = new OneCall().created({ tools: undefined, limits: { max_elapsed_time: 1 } }).step();
    run.evaluated({ args: raw('{"n":9007199254740993}') }).evaluated({ tool: "write" });
    run.log.add("approval.requested", { action: { approval_id: "a" } });
    run.log.add("approval.requested", { action: { approval_id: "a" } });
    expect(recheck(run, allow).notes).toEqual([
      "the run is WAITING_FOR_APPROVAL: re-checked up to its current state",
      "recorded before v0.5.0: its decisions recorded then cannot be re-checked",
      "1 evaluation(s) hold a number that a double can't hold: the policy is handed its text",
      "2 evaluation(s) name another call than their step decided",
      "1 evaluation(s) were recorded with the spec of another tool",
      "1 approval request(s) repeat an approval id and were not counted",
    ]);
    expect(recheck(fixtureRun(), defaultPolicy()).notes).toEqual([]);
  });

  it("compares a call with the decision of its own step only", () => {
    const run = whole().evaluated({ tool: "write", args: { n: 7 } }, "s2");
    expect(recheck(run, allow).notes.join()).not.toContain("another call");
    expect(recheck(whole().evaluated({ args: { n: 7 } }), allow).notes.join()).toContain(
      "1 evaluation(s) name another call",
    );
    expect(recheck(whole().evaluated({ tool: "write" }), allow).notes.join()).toContain(
      "1 evaluation(s) name another call",
    );
  });

  it("counts tools that are erased as recorded, and null as not", () => {
    const notes = (tools: unknown) =>
      recheck(new OneCall().created({ tools }).step().evaluated(), allow).notes;
    expect(notes(gone("erased"))).toHaveLength(1);
    expect(notes(null)).toHaveLength(2);
  });

  it("finds the number in limits and in the spec too", () => {
    const limits = new OneCall()
      .created({ limits: raw('{"max_elapsed_time":9007199254740993}') })
      .step()
      .evaluated();
    expect(recheck(limits, allow).notes.join()).toContain("1 evaluation(s) hold a number");
    const run = whole();
    const big = run.specs.put(specText("read", "read_only", '{"maximum":9007199254740993}'));
    expect(recheck(run.evaluated({ spec_hash: big }), allow).notes.join()).toContain(
      "1 evaluation(s) hold a number",
    );
  });
});

describe("policies that answer later, and views", () => {
  it("waits for the answer, one evaluation after the other", async () => {
    const order: number[] = [];
    let running = 0;
    const policy = policyOf(async (request) => {
      expect(++running).toBe(1);
      await Promise.resolve();
      running--;
      order.push(Number(/\d+/.exec(request.args)?.[0]));
      return answerOf("allow");
    });
    const run = fixtureRun();
    const report = await recheckRun(run.log.fold(), policy, { specs: run.specs.lookup });
    expect(order).toEqual([1, 2, 3, 3, 4]);
    expect(report.rechecked).toBe(5);
    expect(() => recheck(run, policy)).toThrow(expect.objectContaining({ code: "policy-async" }));
  });

  it("gives what the synchronous one gives", async () => {
    const run = fixtureRun();
    const options = { specs: run.specs.lookup, crypto: pureCrypto };
    const later = await recheckRun(run.log.fold(), strictPolicy(), options);
    expect(lines(later)).toEqual(lines(recheck(run, strictPolicy())));
  });

  it("gives one report with and without the texts of views, and refuses a policy that would read them", () => {
    const run = fixtureRun();
    const rules = rulesPolicy('{"side_effects":{"read_only":"allow"}}');
    const kept = reportJson(recheck(run, rules));
    expect(reportJson(recheck(run, rules, { fold: { keepViews: false } }))).toBe(kept);
    expect(() => recheck(run, allow, { fold: { keepViews: false } })).toThrow(
      expect.objectContaining({ code: "views-not-kept" }),
    );
  });

  it("lets what a policy throws end the re-check", async () => {
    const policy = policyOf(() => {
      throw new Error("bug");
    });
    expect(() => recheck(fixtureRun(), policy)).toThrow("bug");
    const run = fixtureRun();
    await expect(recheckRun(run.log.fold(), policy, { specs: run.specs.lookup })).rejects.toThrow("bug");
  });
});
