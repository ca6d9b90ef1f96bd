import { describe, expect, it } from "vitest";
import type { FindingsOptions } from "../../../shared/audit/findings.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { approvalHash } from "../../../shared/recheck/hash.ts";
import {
  CAPABILITY,
  called,
  decided,
  evaluated,
  found,
  H,
  listOf,
  OTHER_H,
  requested,
  SPEC,
  SPEC_HASH,
  specs,
} from "./findings-support.ts";
import { type Parts, ref, TestLog } from "./support.ts";

describe("approvals", () => {
  it("are fine where request, decision and act follow each other", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("require_approval"));
    const request = log.add("approval.requested", requested());
    log.add("approval.granted", decided({ action: { request_entry: ref(request) } }));
    log.add("tool.call.started", called({ action: { spec_hash: SPEC_HASH } }));
    expect(found(log.entries, { context: "log", specs })).toEqual([]);
    expect(found(log.entries)).toEqual([]);
  });

  it("are fine where they are denied and no act follows, and where nobody decided yet", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    log.add("approval.denied", decided());
    log.add("approval.requested", requested({ step: "s2", action: { approval_id: "a2" } }));
    expect(found(log.entries)).toEqual([]);
  });

  it.each(["approval.granted", "approval.denied", "approval.expired"])(
    "%s without a request before it",
    (kind) => {
      const log = new TestLog();
      log.add(kind, decided());
      log.add("approval.requested", requested());
      expect(found(log.entries)).toEqual([["approval_decision_without_request", 1]]);
    },
  );

  it("are requested before the run, and decided in it", () => {
    const log = new TestLog();
    log.add("approval.requested", { ...requested(), run: null });
    log.add("approval.granted", decided());
    expect(found(log.entries)).toEqual([]);
  });

  it("are decided for another entry than the request", () => {
    const log = new TestLog();
    const request = log.add("approval.requested", requested());
    log.add("approval.granted", decided({ action: { request_entry: { seq: request.seq, hash: H } } }));
    expect(found(log.entries)).toEqual([["approval_request_entry_mismatch", 1, 2]]);
  });

  it.each([
    ["the step", { step: "s1" }],
    ["the call", { call: "c1" }],
    [
      "the authorization",
      { step: "s9", authorization: { type: "user_approval", user_id: "u", approval_id: "a1" } },
    ],
  ])("are granted after the act that %s ties to them", (_, tie) => {
    const log = new TestLog();
    const place = "call" in tie ? { call: "c1" } : { step: "s1" };
    log.add("approval.requested", requested(place));
    log.add("tool.call.started", called(tie));
    log.add("approval.granted", decided());
    expect(found(log.entries)).toEqual([["approval_after_act", 1, 2, 3]]);
  });

  it("are tied to an act by the request itself where neither side has a step or a call", () => {
    const log = new TestLog();
    const bare = (parts: Parts): Parts => ({ action: parts.action ?? {} });
    log.add("approval.requested", bare(requested()));
    log.add("tool.call.started", bare(called()));
    log.add("approval.granted", bare(decided()));
    expect(found(log.entries)).toEqual([["approval_after_act", 1, 2, 3]]);
  });

  it("never come, and the act does", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    log.add("tool.call.started", called());
    expect(found(log.entries)).toEqual([["act_without_approval", 1, 2]]);
  });

  it("are asked for by the policy alone, and the act comes", () => {
    const log = new TestLog();
    log.add("policy.evaluated", evaluated("require_approval"));
    log.add("tool.call.started", called());
    expect(found(log.entries)).toEqual([["act_without_approval", 1, 2]]);
  });

  it.each(["approval.denied", "approval.expired"])("end in %s, and the act comes all the same", (kind) => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    log.add(kind, decided());
    log.add("tool.call.started", called());
    expect(found(log.entries)).toEqual([["act_despite_refusal", 2, 3]]);
  });

  it("are named by an act, and nowhere on record", () => {
    const log = new TestLog();
    const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
    log.add("file.write", { action: { path: "/x" }, authorization });
    expect(found(log.entries)).toEqual([["act_without_approval", 1]]);
    const alone = listOf(log.entries, { context: "run" });
    expect(alone.findings).toEqual([]);
    expect(alone.notes.length).toBe(1);
  });

  it("are named by the entry that records them", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    const grant = log.add("approval.granted", decided());
    const authorization = { type: "user_approval", user_id: "u", approval_entry: ref(grant) };
    log.add("file.write", { action: { path: "/x" }, authorization });
    expect(found(log.entries)).toEqual([]);
    log.add("file.write", {
      action: { path: "/x" },
      authorization: { ...authorization, approval_entry: { seq: grant.seq, hash: H } },
    });
    expect(found(log.entries)).toEqual([["act_without_approval", 4]]);
  });

  it("are named by their id and by an entry that is not theirs", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    const grant = log.add("approval.granted", decided());
    const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
    const named = { seq: grant.seq, hash: H };
    log.add("file.write", {
      action: { path: "/x" },
      authorization: { ...authorization, approval_entry: named },
    });
    expect(found(log.entries)).toEqual([["act_without_approval", 3]]);
  });

  it("for one tool do not hold up another one in the same step", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    log.add("tool.call.started", called({ action: { tool: "read" } }));
    expect(found(log.entries)).toEqual([]);
  });

  describe("do not cover an act", () => {
    const outside = (act: Parts, options?: FindingsOptions, request: Parts = requested()) => {
      const log = new TestLog();
      log.add("approval.requested", request);
      log.add("approval.granted", decided());
      log.add("tool.call.started", act);
      return found(log.entries, options);
    };
    const OUTSIDE = [["act_outside_approval", 1, 2, 3]];
    const withSpecs: FindingsOptions = { context: "log", specs };

    it("with other arguments, by the approval hash", () => {
      const act = called({ action: { args: { n: 2 }, spec_hash: SPEC_HASH } });
      const opaque = requested({ action: { capability: { id: 7 } } });
      const hash = approvalHash(pureCrypto, {
        kind: "remote_mutation",
        capability: '{"id":7}',
        presentation: canonicalJson(JSON.stringify(CAPABILITY)),
        runId: "r1",
        stepId: "s1",
        spec: SPEC,
        args: '{"n":1}',
      });
      const bound = { ...opaque, action: { ...opaque.action, hash } };
      expect(outside(act, withSpecs, bound)).toEqual(OUTSIDE);
      expect(outside(called({ action: { spec_hash: SPEC_HASH } }), withSpecs, bound)).toEqual([]);
    });

    it("in another step, by the approval hash", () => {
      const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
      const act = called({ step: "s2", authorization, action: { spec_hash: SPEC_HASH } });
      expect(outside(act, withSpecs)).toEqual(OUTSIDE);
    });

    it("with other arguments or another tool, by the capability, where no spec is stored", () => {
      expect(outside(called({ action: { args: { n: 2 } } }))).toEqual(OUTSIDE);
      const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
      expect(outside(called({ authorization, action: { tool: "wipe" } }))).toEqual(OUTSIDE);
      expect(outside(called())).toEqual([]);
    });

    it("that the policy was not asked about", () => {
      const log = new TestLog();
      log.add("policy.evaluated", evaluated("require_approval"));
      log.add("approval.requested", requested({ action: { capability: {} } }));
      log.add("approval.granted", decided());
      log.add("tool.call.started", called({ action: { args: { n: 2 } } }));
      expect(found(log.entries)).toEqual([["act_outside_approval", 2, 3, 4]]);
    });

    it("of another spec than the policy was shown", () => {
      const log = new TestLog();
      log.add("policy.evaluated", evaluated("require_approval", { action: { spec_hash: H } }));
      log.add("approval.requested", requested());
      log.add("approval.granted", decided());
      log.add("tool.call.started", called({ action: { spec_hash: OTHER_H } }));
      expect(found(log.entries)).toEqual([["act_outside_approval", 2, 3, 4]]);
    });

    it("is not said where nothing binds the two, but noted", () => {
      const log = new TestLog();
      log.add("approval.requested", requested({ action: { capability: {} } }));
      log.add("approval.granted", decided());
      log.add("tool.call.started", called());
      const list = listOf(log.entries);
      expect(list.findings).toEqual([]);
      expect(list.notes.length).toBe(1);
    });

    it("is not said where the decision reaches further than one act", () => {
      const log = new TestLog();
      log.add("approval.requested", requested());
      log.add("approval.granted", decided({ action: { scope: "session" } }));
      const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
      log.add("tool.call.started", called({ authorization, action: { args: { n: 2 } } }));
      expect(found(log.entries)).toEqual([]);
    });
  });

  it("are used again though they allow one act", () => {
    const log = new TestLog();
    log.add("approval.requested", requested());
    log.add("approval.granted", decided({ action: { scope: "once" } }));
    log.add("tool.call.started", called({ call: "c1" }));
    const authorization = { type: "user_approval", user_id: "u", approval_id: "a1" };
    log.add("file.write", { call: "c1", action: { path: "/x" }, authorization });
    expect(found(log.entries)).toEqual([]);
    log.add("tool.call.started", called({ call: "c2", authorization }));
    expect(found(log.entries)).toEqual([["approval_used_again", 2, 3, 5]]);
  });

  it("of two calls in one step go each with its own", () => {
    const log = new TestLog();
    const two = { tool: "publish", args: { n: 2 } };
    log.add("approval.requested", requested());
    log.add("approval.requested", requested({ action: { approval_id: "a2", capability: two } }));
    log.add("approval.granted", decided());
    log.add("approval.granted", decided({ action: { approval_id: "a2" } }));
    log.add("tool.call.started", called({ call: "c1" }));
    log.add("tool.call.started", called({ call: "c2", action: { args: { n: 2 } } }));
    expect(found(log.entries)).toEqual([]);
  });
});
