import { describe, expect, it } from "vitest";
import { RunFold } from "../../../shared/recheck/fold.ts";
import { MAX_APPROVALS } from "../../../shared/recheck/limits.ts";
import { allow, LONG, OneCall, whole } from "./one-call.ts";
import { defaultPolicy, EPOCH, fixtureRun, gone, Log, policyOf, recheck, viewOf } from "./support.ts";

describe("the run's status", () => {
  const status = (kinds: readonly (string | readonly [string, string])[]) => {
    const log = new Log();
    for (const kind of kinds) {
      if (typeof kind === "string") log.add(kind);
      else log.add(kind[0], { action: { status: kind[1] } });
    }
    return log.fold().status;
  };

  it.each([
    [["run.created"], "RUNNING"],
    [["policy.evaluated"], "UNKNOWN"],
    [["run.created", "run.completed"], "COMPLETED"],
    [["run.created", "run.failed"], "FAILED"],
    [["run.created", "run.cancelled"], "CANCELLED"],
    [["run.created", "run.timeout"], "TIMEOUT"],
    [["run.created", "approval.requested"], "WAITING_FOR_APPROVAL"],
    [["run.created", "approval.requested", "approval.granted"], "WAITING_FOR_APPROVAL"],
    [["run.created", "approval.requested", "run.resumed"], "RUNNING"],
    [["run.created", "approval.requested", "tool.call.started"], "RUNNING"],
    [["run.created", "approval.requested", "step.started"], "RUNNING"],
    [["run.completed", "step.started"], "COMPLETED"],
    [["run.completed", "tool.call.started", "approval.requested"], "COMPLETED"],
    [["run.completed", "run.failed"], "FAILED"],
    [["run.completed", "run.started"], "RUNNING"],
    [["run.completed", ["run.status", "failed"]], "FAILED"],
    [[["run.status", "Queued"]], "QUEUED"],
    [["run.created", ["run.status", ""]], "RUNNING"],
  ] as const)("after %j it is %s", (kinds, expected) => {
    expect(status(kinds)).toBe(expected);
  });

  it("is named by a note while the run goes on, and not once it is over", () => {
    for (const [kind, notes] of [
      ["run.timeout", 0],
      ["run.resumed", 1],
    ] as const) {
      const run = whole().evaluated();
      run.log.add(kind);
      expect(recheck(run, allow).notes).toHaveLength(notes);
    }
  });
});

describe("order", () => {
  it("refuses entries of another run and entries out of order", () => {
    const log = new Log("a");
    log.add("run.created");
    const [entry] = log.entries;
    const fold = new RunFold("a");
    fold.add(entry!);
    expect(() => fold.add(entry!)).toThrow(expect.objectContaining({ code: "fold-order" }));
    expect(() => new RunFold("b").add(entry!)).toThrow(expect.objectContaining({ code: "fold-run" }));
  });

  it("says which entries it read, gaps of other runs and all", () => {
    const log = new Log();
    log.skip();
    log.add("run.created");
    log.skip();
    log.add("run.completed");
    expect(log.fold().range).toEqual({ from: 2, to: 4, entries: 2 });
    expect(new Log().fold().range).toBeNull();
  });
});

describe("steps", () => {
  it("are those of step entries where there are any, with their own index", () => {
    const run = whole().evaluated();
    run.log.add("step.started", { step: "s7", action: { index: 7 } });
    run.log.add("tool.call.started", { step: "other", action: { tool: "x", args: {} } });
    const { steps, stepsRecorded } = run.log.fold();
    expect(stepsRecorded).toBe(true);
    expect(steps.map(({ id, index, decisionKind }) => [id, index, decisionKind])).toEqual([
      ["s1", 0, "tool_call"],
      ["s7", 7, null],
    ]);
  });

  it("take their place as index where none is given", () => {
    const log = new Log();
    log.add("step.decided", { step: "a", action: { kind: "complete" } });
    log.add("step.started", { step: "b", action: { index: null } });
    log.add("step.decided", { step: "c", action: { kind: "complete", index: 9 } });
    expect(log.fold().steps.map(({ index }) => index)).toEqual([0, 1, 9]);
  });

  it("are inferred from evaluations and calls where a run has none, and parallel calls share one", () => {
    const run = new OneCall().created();
    run
      .evaluated({}, "m1")
      .evaluated({ args: { n: 2 } }, "m1")
      .evaluated({}, null);
    run.log.add("tool.call.started", { step: "m2", action: { tool: "write", args: { n: 3 } } });
    run.evaluated({ view: viewOf({ steps: 2 }) }, "m3");
    const folded = run.log.fold();
    expect(folded.stepsRecorded).toBe(false);
    expect(folded.steps.map(({ id, tool, args }) => [id, tool, args])).toEqual([
      ["m1", "read", '{"n":1}'],
      ["m2", "write", '{"n":3}'],
      ["m3", "read", '{"n":1}'],
    ]);
    const report = recheck(run, allow);
    expect(report.evaluations.map(({ stepIndex }) => stepIndex)).toEqual([0, 0, -1, 2]);
    expect(report).toMatchObject({ same: true, rechecked: 4, complete: true });
  });

  it("are not inferred from a result alone", () => {
    const log = new Log();
    log.add("tool.call.completed", { step: "m1", action: { tool: "t" }, outcome: { status: "success" } });
    log.add("step.failed", { step: "m2" });
    expect(log.fold().steps).toEqual([]);
  });

  it("have the status and the observation that their entries give them", () => {
    const log = new Log();
    const step = (id: string, ...entries: [string, object?][]) => {
      log.add("step.started", { step: id });
      log.add("step.decided", { step: id, action: { kind: "tool_call", tool: "t", args: {} } });
      for (const [kind, parts] of entries) log.add(kind, { step: id, ...parts });
    };
    const evaluated = (outcome: string) => ({ action: { tool: "t", args: {}, decision: { outcome } } });
    step("deciding");
    step("waiting", ["policy.evaluated", evaluated("require_approval")], ["approval.requested"]);
    step(
      "executing",
      ["policy.evaluated", evaluated("allow")],
      ["tool.call.started", { action: { tool: "t", args: {} } }],
    );
    step("done", ["tool.call.completed", { outcome: { status: "success", result: { a: 1 } } }]);
    step(
      "error",
      ["tool.call.completed", { outcome: { status: "failure", error: "no" } }],
      ["step.failed", { action: { detail: "x" } }],
    );
    step("cut", ["tool.call.completed", { outcome: { status: "unknown" } }]);
    step(
      "denied",
      ["policy.evaluated", evaluated("deny")],
      ["step.failed", { action: { kind: "policy_denied", detail: "no" } }],
    );
    step("abort", ["policy.evaluated", evaluated("abort")]);
    step("interrupted", ["step.interrupted"]);
    step("invalid", ["step.failed", { action: { kind: "invalid_decision", detail: "bad" } }]);
    expect(
      log
        .fold()
        .steps.map(({ id, status, observation }) => [id, status, observation?.kind, observation?.content]),
    ).toEqual([
      ["deciding", "deciding", undefined, undefined],
      ["waiting", "awaiting_approval", undefined, undefined],
      ["executing", "executing", undefined, undefined],
      ["done", "done", "tool_result", '{"a":1}'],
      ["error", "failed", "tool_error", '"no"'],
      ["cut", "interrupted", "tool_error", null],
      ["denied", "failed", "policy_denied", '"no"'],
      ["abort", "failed", "policy_denied", null],
      ["interrupted", "interrupted", "interrupted", null],
      ["invalid", "failed", "invalid_decision", '"bad"'],
    ]);
  });
});

describe("approvals", () => {
  /** A run with one approval, and an evaluation after each of the entries given. */
  function approvalRun(...kinds: string[]): OneCall {
    const run = whole();
    run.log.add("approval.requested", {
      step: "s1",
      action: { approval_id: "a1", kind: "k", capability: {}, presentation: {} },
    });
    run.evaluated({ view: viewOf({ approvals: 1 }) });
    for (const [index, kind] of kinds.entries()) {
      // Times run backwards, and one is not known: only the order of the entries counts.
      const at = index === 1 ? null : EPOCH - BigInt(index);
      run.log.add(kind, { action: { approval_id: "a1", by: `op${index}`, note: `n${index}` }, at });
      run.evaluated({ view: viewOf({ approvals: 1 }) });
    }
    return run;
  }

  function seen(run: OneCall): (readonly [string, string, string, bigint | null])[] {
    const out: (readonly [string, string, string, bigint | null])[] = [];
    recheck(
      run,
      policyOf((_request, view) => {
        const approval = view.approvals![0]!;
        out.push([approval.status, approval.decidedBy, approval.note, approval.decidedAt]);
        return { ok: false, error: "" };
      }),
    );
    return out;
  }

  it("stand at each evaluation as the entries before it say, whatever the times", () => {
    expect(seen(approvalRun("approval.granted", "approval.expired", "approval.denied"))).toEqual([
      ["pending", "", "", null],
      ["approved", "op0", "n0", EPOCH],
      ["expired", "op1", "n1", null],
      ["rejected", "op2", "n2", EPOCH - 2n],
    ]);
  });

  it("are decided by id, and a decision without a request changes nothing", () => {
    const run = approvalRun();
    run.log.add("approval.granted", { action: { approval_id: "other" } });
    run.evaluated({ view: viewOf({ approvals: 1 }) });
    expect(seen(run).map(([status]) => status)).toEqual(["pending", "pending"]);
  });

  it("are the first ones that the view counted", () => {
    const run = approvalRun();
    run.log.add("approval.requested", { action: { approval_id: "a2" } });
    run.evaluated({ view: viewOf({ approvals: 2 }) });
    const ids: (string[] | null)[] = [];
    recheck(
      run,
      policyOf((_request, view) => {
        ids.push(view.approvals?.map(({ id }) => id) ?? null);
        return { ok: false, error: "" };
      }),
    );
    expect(ids).toEqual([["a1"], ["a1", "a2"]]);
  });

  it("beyond 1,024 are counted and not read", () => {
    const run = whole();
    for (let n = 0; n <= MAX_APPROVALS; n++)
      run.log.add("approval.requested", { action: { approval_id: `a${n}` } });
    for (const approvals of [MAX_APPROVALS, MAX_APPROVALS + 1, MAX_APPROVALS + 2]) {
      run.evaluated({ view: viewOf({ approvals }) });
    }
    const folded = run.log.fold();
    expect([folded.approvals.length, folded.approvalCount]).toEqual([1024, 1025]);
    expect(recheck(run, allow).evaluations.map(({ detail }) => detail)).toEqual([
      "",
      "not re-checkable: the view counted 1025 approvals, more than the 1024 Recheck reads whole",
      "not re-checkable: the view counted 0 steps and 1026 approvals; the run has 1 and 1025",
    ]);
  });

  it("are read whole however long they are", () => {
    const run = whole();
    run.log.add("approval.requested", { action: { approval_id: "a1", capability: LONG } });
    run.evaluated({ view: viewOf({ approvals: 1 }) });
    let length = 0;
    const policy = policyOf((_request, view) => {
      length = view.approvals![0]!.capability!.length;
      return { ok: false, error: "" };
    });
    recheck(run, policy);
    expect(length).toBe(LONG.length + 2);
  });
});

describe("run.created", () => {
  it("is the first one, and gives goal, limits and the time that the log knows", () => {
    const log = new Log();
    log.add("run.created", { action: { goal: "first", limits: { b: 1, a: 1.5 } }, at: null });
    log.add("run.created", { action: { goal: "second" } });
    expect(log.fold().created).toEqual({
      at: null,
      goal: "first",
      limits: '{"a":1.5,"b":1}',
      toolsRecorded: false,
      problem: null,
    });
  });
});

describe("the fold as a whole", () => {
  it("rebuilds what the policy was handed: request, steps and approvals", () => {
    const run = fixtureRun(defaultPolicy());
    const seen: unknown[] = [];
    recheck(
      run,
      policyOf((request, view) => {
        seen.push([
          request.stepId,
          request.args,
          view.steps?.map(({ id }) => id) ?? null,
          view.approvals?.map((a) => a.status) ?? null,
          view.run.recorded.status,
        ]);
        return { ok: false, error: "" };
      }),
    );
    expect(seen).toEqual([
      ["id-02", '{"n":1}', null, null, "RUNNING"],
      ["id-03", '{"n":2}', ["id-02"], null, "RUNNING"],
      ["id-04", '{"n":3}', ["id-02", "id-03"], null, "RUNNING"],
      ["id-04", '{"n":3}', ["id-02", "id-03"], ["approved"], "WAITING_FOR_APPROVAL"],
      ["id-06", '{"n":4}', ["id-02", "id-03", "id-04"], ["approved"], "RUNNING"],
    ]);
  });

  it("reads arguments that are not there as none, and null as null", () => {
    const run = whole().evaluated({ args: undefined }).evaluated({ args: null });
    expect(run.log.fold().evaluations.map(({ args }) => args)).toEqual(["{}", "null"]);
  });

  it("lists spec hashes once", () => {
    const run = fixtureRun();
    expect(run.log.fold().specHashes).toHaveLength(4);
    expect(
      whole()
        .evaluated({ spec_hash: gone("erased") })
        .log.fold().specHashes,
    ).toEqual([]);
  });
});
