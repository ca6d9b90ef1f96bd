import { describe, expect, it } from "vitest";
import { called, evaluated, found, listOf } from "./findings-support.ts";
import { type Parts, ref, TestLog, without } from "./support.ts";

describe("policy decisions", () => {
  it.each(["deny", "abort"])("%s, and the call follows", (outcome) => {
    for (const place of [{ call: "c1" }, { step: "s1" }, { step: "s1", call: "c1" }]) {
      const log = new TestLog();
      log.add("policy.evaluated", { ...evaluated(outcome), ...place });
      log.add("tool.call.started", { ...called(), ...place });
      expect(found(log.entries)).toEqual([["call_despite_policy", 1, 2]]);
    }
  });

  it("deny, and the same request follows where neither has a step or a call", () => {
    const log = new TestLog();
    const bare = (parts: Parts): Parts => ({ action: parts.action ?? {} });
    log.add("policy.evaluated", bare(evaluated("deny")));
    log.add("tool.call.started", bare(called({ action: { args: { n: 2 } } })));
    expect(found(log.entries)).toEqual([]);
    log.add("tool.call.started", bare(called()));
    expect(found(log.entries)).toEqual([["call_despite_policy", 1, 3]]);
  });

  it("deny, and the call comes with other arguments in the same step", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("deny"));
    log.add("tool.call.started", called({ action: { args: { n: 2 } } }));
    expect(found(log.entries)).toEqual([["call_despite_policy", 1, 2]]);
  });

  it("allow, or deny a call that does not come", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("allow"));
    log.add("tool.call.started", called());
    log.add("policy.evaluated", evaluated("deny", { step: "s2" }));
    log.add("tool.call.started", called({ step: "s3" }));
    expect(found(log.entries)).toEqual([]);
  });

  it("are taken back by a later one of the same call", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("deny"));
    log.add("policy.evaluated", evaluated("allow"));
    log.add("tool.call.started", called());
    expect(found(log.entries)).toEqual([]);
    log.add("policy.evaluated", evaluated("deny"));
    log.add("tool.call.started", called());
    expect(found(log.entries)).toEqual([["call_despite_policy", 4, 5]]);
  });

  it("of two calls in one step concern each its own", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("allow", { call: "c1" }));
    log.add("policy.evaluated", evaluated("deny", { call: "c2" }));
    log.add("tool.call.started", called({ call: "c1" }));
    log.add("tool.call.started", called({ call: "c3" }));
    expect(found(log.entries)).toEqual([]);
  });

  it("that were made at import were neither obeyed nor disobeyed: a warning", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("deny", { action: { extra: { decided: "at import" } } }));
    log.add("tool.call.started", called());
    expect(listOf(log.entries).findings.map(({ kind, severity }) => [kind, severity])).toEqual([
      ["call_despite_policy", "warning"],
    ]);
    expect(listOf(log.entries).failures).toBe(0);
  });

  it("that are erased are not checked, and that is said", () => {
    const log = new TestLog();
    const evaluation = log.add("policy.evaluated", evaluated("deny"));
    const list = listOf([without(evaluation, "decision")]);
    expect(list.notCheckedList).toEqual([{ entry: ref(evaluation), what: "action.decision", why: "erased" }]);
  });
});
