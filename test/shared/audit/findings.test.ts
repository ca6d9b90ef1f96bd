import { describe, expect, it } from "vitest";
import type { Finding, FindingKind } from "../../../shared/audit/finding.ts";
import { type FindingsOptions, RunFindings } from "../../../shared/audit/findings.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { approvalHash, contentHash } from "../../../shared/recheck/hash.ts";
import { type Parts, ref, SECOND, TestLog, without } from "./support.ts";

const H = "cd".repeat(32);
const OTHER_H = "ef".repeat(32);

function listOf(entries: readonly EntryView[], options: FindingsOptions = { context: "log" }) {
  const findings = new RunFindings("r1", options);
  for (const entry of entries) findings.add(entry);
  return findings.finish();
}

/** Kind and seqs of each finding. */
function found(entries: readonly EntryView[], options?: FindingsOptions): [FindingKind, ...number[]][] {
  return listOf(entries, options).findings.map(({ kind, entries: named }) => [
    kind,
    ...named.map(({ seq }) => seq),
  ]);
}

describe("HTTP exchanges", () => {
  const request = (sequence: number): Parts => ({
    action: {
      sequence,
      method: "POST",
      host: "api.example.com",
      port: 443,
      path_hash: H,
      headers_hash: H,
      body_hash: H,
      body_len: 12,
      redirect_hop: 0,
    },
  });
  const response = (sequence: number, request_entry?: { seq: number; hash: string }): Parts => ({
    action: { sequence, ...(request_entry === undefined ? {} : { request_entry }) },
    outcome: { status: "success", http_status: 200, body_len: 3, complete: true },
  });

  it("are fine in pairs, also where they overlap and the response names its request", () => {
    const log = new TestLog();
    const first = log.add("http.request", request(1));
    log.add("http.request", request(2));
    log.add("http.response", response(2));
    log.add("http.response", response(1, ref(first)));
    expect(found(log.entries)).toEqual([]);
  });

  it("lack a response", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.request", request(2));
    log.add("http.response", response(2));
    expect(found(log.entries)).toEqual([["http_request_without_response", 1]]);
  });

  it("lack a request, and with it a number", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.response", response(2));
    log.add("http.request", request(3));
    log.add("http.response", response(3));
    expect(found(log.entries)).toEqual([
      ["http_response_without_request", 3],
      ["http_sequence_gap", 1, 4],
    ]);
  });

  it("come in the wrong order", () => {
    const log = new TestLog();
    log.add("http.response", response(1));
    log.add("http.request", request(1));
    expect(found(log.entries)).toEqual([["http_response_without_request", 1]]);
  });

  it("have two responses", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.response", response(1));
    expect(found(log.entries)).toEqual([["http_response_repeated", 3]]);
  });

  it("have two requests of one number", () => {
    const log = new TestLog();
    log.add("http.request", request(1));
    log.add("http.response", response(1));
    log.add("http.request", request(1));
    expect(found(log.entries)).toEqual([["http_sequence_repeated", 3]]);
  });

  it.each([
    ["another entry", (first: EntryView) => ({ seq: first.seq + 1, hash: first.hash })],
    ["another hash", (first: EntryView) => ({ seq: first.seq, hash: OTHER_H })],
  ])("name %s as the request", (_, named) => {
    const log = new TestLog();
    const first = log.add("http.request", request(1));
    log.add("http.response", response(1, named(first)));
    expect(found(log.entries)).toEqual([["http_request_entry_mismatch", 1, 2]]);
  });

  it("have gaps at the start and between, each with its numbers and the entries beside it", () => {
    const log = new TestLog();
    for (const sequence of [3, 4, 8]) {
      log.add("http.request", request(sequence));
      log.add("http.response", response(sequence));
    }
    const gaps = listOf(log.entries).findings;
    expect(gaps.map(({ missing }) => missing)).toEqual([
      { from: 1, to: 2 },
      { from: 5, to: 7 },
    ]);
    expect(gaps.map(({ entries }) => entries.map(({ seq }) => seq))).toEqual([[1], [3, 5]]);
  });

  it("may be committed out of the order of their numbers", () => {
    const log = new TestLog();
    for (const sequence of [2, 1, 4, 3]) log.add("http.request", request(sequence));
    for (const sequence of [1, 2, 3, 4]) log.add("http.response", response(sequence));
    expect(found(log.entries)).toEqual([]);
  });

  it("of another run are not this run's", () => {
    const log = new TestLog();
    log.add("http.request", { ...request(7), run: "r2" });
    expect(found(log.entries)).toEqual([]);
  });

  it("whose number is erased are not checked, and that is said", () => {
    const log = new TestLog();
    const only = log.add("http.request", request(1));
    const list = listOf([without(only, "sequence")]);
    expect(list.findings).toEqual([]);
    expect(list.notCheckedList).toEqual([{ entry: ref(only), what: "action.sequence", why: "erased" }]);
  });
});

/** A tool spec, and what an approval of a call of it is. */
const SPEC = canonicalJson(
  '{"name":"publish","description":"d","input_schema":{"type":"object"},"side_effect":"remote_mutation","timeout":1}',
);
const SPEC_HASH = contentHash(pureCrypto, SPEC);
const specs = (hash: string): string | undefined => (hash === SPEC_HASH ? SPEC : undefined);
const ARGS = { n: 1 };
const CAPABILITY = { tool: "publish", args: ARGS };
const HASH = approvalHash(pureCrypto, {
  kind: "remote_mutation",
  capability: canonicalJson(JSON.stringify(CAPABILITY)),
  presentation: canonicalJson(JSON.stringify(CAPABILITY)),
  runId: "r1",
  stepId: "s1",
  spec: SPEC,
  args: canonicalJson(JSON.stringify(ARGS)),
});

const requested = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: {
    approval_id: "a1",
    kind: "remote_mutation",
    capability: CAPABILITY,
    presentation: CAPABILITY,
    hash: HASH,
    ...more.action,
  },
});
const decided = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { approval_id: "a1", by: "op", ...more.action },
});
const called = (more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { tool: "publish", args: ARGS, ...more.action },
});
const evaluated = (outcome: string, more: Partial<Parts> = {}): Parts => ({
  step: "s1",
  ...more,
  action: { tool: "publish", args: ARGS, decision: { outcome }, ...more.action },
});

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

describe("capabilities", () => {
  const created = (token_id = "t1"): Parts => ({
    run: null,
    action: { token_id, resource: "x", permissions: ["read"], scope: "session" },
  });
  const revoked = (token_id = "t1"): Parts => ({ run: null, action: { token_id } });
  const use = (token_id = "t1", more: Parts = {}): Parts => ({
    action: { path: "/x" },
    authorization: { type: "capability", token_id },
    ...more,
  });

  it("are used between grant and revocation, and after a new grant", () => {
    const log = new TestLog();
    log.add("capability.created", created());
    log.add("file.read", use());
    log.add("capability.revoked", revoked());
    log.add("capability.created", created());
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([]);
  });

  it("are used before they are granted", () => {
    const log = new TestLog();
    log.add("file.read", use());
    log.add("file.read", use());
    log.add("capability.created", created());
    for (const context of ["log", "run"] as const)
      expect(found(log.entries, { context })).toEqual([
        ["capability_used_before_grant", 1, 3],
        ["capability_used_before_grant", 2, 3],
      ]);
  });

  it("are used and never granted, which only the whole log tells", () => {
    const log = new TestLog();
    log.add("capability.created", created("t2"));
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_not_granted", 2]]);
    const alone = listOf(log.entries, { context: "run" });
    expect(alone.findings).toEqual([]);
    expect(alone.notes.length).toBe(1);
  });

  it("are used after they are revoked", () => {
    const log = new TestLog();
    log.add("capability.created", created());
    log.add("capability.revoked", revoked());
    log.add("tool.call.started", { ...use(), action: { tool: "t", args: {} } });
    expect(found(log.entries)).toEqual([["capability_used_after_revocation", 2, 3]]);
  });

  it("are granted and revoked by a change, too", () => {
    const log = new TestLog();
    const change = (field: string): Parts => ({
      run: null,
      action: { target_principal: "p", kind: "capability", via: "admin", [field]: ["t1"] },
    });
    log.add("capability.changed", change("granted"));
    log.add("file.read", use());
    log.add("capability.changed", change("revoked"));
    expect(found(log.entries)).toEqual([]);
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_used_after_revocation", 3, 4]]);
  });

  it("are not used by an act that was denied, nor again by an act's completion", () => {
    const log = new TestLog();
    log.add("file.read", use("t9", { action: { path: "/x" }, outcome: { status: "denied" } }));
    log.add("capability.created", created());
    log.add("tool.call.started", use("t1", { action: { tool: "t", args: {} } }));
    log.add("capability.revoked", revoked());
    log.add("tool.call.completed", use("t1", { action: { tool: "t" }, outcome: { status: "success" } }));
    expect(found(log.entries)).toEqual([]);
  });

  it("that could not be made are not there", () => {
    const log = new TestLog();
    log.add("capability.created", { ...created(), outcome: { status: "failure" } });
    log.add("file.read", use());
    expect(found(log.entries)).toEqual([["capability_not_granted", 2]]);
  });

  it("of another run's uses are not this run's", () => {
    const log = new TestLog();
    log.add("file.read", use("t1", { run: "r2", action: { path: "/x" } }));
    expect(found(log.entries)).toEqual([]);
  });
});

describe("code", () => {
  const code = (code_hash: string | undefined, more: Record<string, unknown> = {}): Parts => ({
    action: { code_id: "capsule", ...(code_hash === undefined ? {} : { code_hash }), ...more },
  });

  it("is loaded as it was installed", () => {
    const log = new TestLog();
    log.add("code.installed", { ...code(H), run: null });
    log.add("code.loaded", code(H));
    log.add("code.loaded", code(undefined));
    expect(found(log.entries)).toEqual([]);
  });

  it.each(["code_hash", "manifest_hash"])("is loaded with another %s", (field) => {
    const log = new TestLog();
    log.add("code.installed", { ...code(undefined, { [field]: H }), run: null });
    log.add("code.loaded", code(undefined, { [field]: OTHER_H }));
    expect(found(log.entries)).toEqual([["code_hash_differs", 1, 2]]);
  });

  it("is compared with the installation of its version, else with the last one", () => {
    const log = new TestLog();
    log.add("code.installed", code(H, { version: "1" }));
    log.add("code.installed", code(OTHER_H, { version: "2" }));
    log.add("code.loaded", code(H, { version: "1" }));
    log.add("code.loaded", code(OTHER_H));
    expect(found(log.entries)).toEqual([]);
    log.add("code.loaded", code(H));
    log.add("code.loaded", code(H, { version: "2" }));
    expect(found(log.entries)).toEqual([
      ["code_hash_differs", 2, 5],
      ["code_hash_differs", 2, 6],
    ]);
  });

  it("is loaded and was never installed: a warning, which only the whole log gives", () => {
    const log = new TestLog();
    log.add("code.loaded", code(H));
    expect(listOf(log.entries).findings.map(({ kind, severity }) => [kind, severity])).toEqual([
      ["code_not_installed", "warning"],
    ]);
    expect(found(log.entries, { context: "run" })).toEqual([]);
  });
});

describe("clocks", () => {
  const at = (seconds: number): Parts => ({
    occurred_at: new Date(1_790_845_200_000 + seconds * 1000).toISOString(),
    action: { chunk: "x" },
  });

  it("go on, or stand still", () => {
    const log = new TestLog();
    for (const seconds of [1, 1, 2]) log.add("message.delta", at(seconds));
    expect(found(log.entries)).toEqual([]);
  });

  it("of the sender go back: a warning for each time", () => {
    const log = new TestLog();
    for (const seconds of [5, 3, 4, 2]) log.add("message.delta", at(seconds));
    const { findings } = listOf(log.entries);
    expect(findings.map(({ entries }) => entries.map(({ seq }) => seq))).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(new Set(findings.map(({ kind, severity }) => `${kind} ${severity}`))).toEqual(
      new Set(["occurred_clock_regression warning"]),
    );
  });

  it("of the sender are compared within the run", () => {
    const log = new TestLog();
    log.add("host.gap", { ...at(9), run: null, action: { epoch: "e", reason: "unclean_shutdown" } });
    log.add("message.delta", at(1));
    expect(found(log.entries)).toEqual([]);
  });

  it("of the log go back: a failure", () => {
    const log = new TestLog();
    const first = log.add("message.delta", at(1));
    const second = log.add("message.delta", at(2));
    const back = { ...second, recorded_at: first.recorded_at - SECOND };
    expect(listOf([first, back]).findings.map(({ kind, severity }) => [kind, severity])).toEqual([
      ["recorded_clock_regression", "failure"],
    ]);
  });
});

describe("declared losses", () => {
  const loss: Parts = { action: { calls: { count: 3 }, reason: "queue_full" } };
  const gap: Parts = { action: { epoch: "e1", reason: "unclean_shutdown" } };

  it("are found in the run, and between its entries in no run", () => {
    const log = new TestLog();
    log.add("run.created");
    log.add("host.loss", loss);
    log.add("host.gap", { ...gap, run: null });
    log.add("run.completed");
    expect(found(log.entries)).toEqual([
      ["declared_loss", 2],
      ["declared_gap", 3],
    ]);
  });

  it("before the run, after its end and of other runs are not its own", () => {
    const log = new TestLog();
    log.add("host.gap", { ...gap, run: null });
    log.add("run.created");
    log.add("host.loss", { ...loss, run: "r2" });
    log.add("run.completed");
    log.add("host.gap", { ...gap, run: null });
    expect(found(log.entries)).toEqual([]);
  });

  it("after a run that has no end are", () => {
    const log = new TestLog();
    log.add("run.created");
    log.add("host.gap", { ...gap, run: null });
    expect(found(log.entries)).toEqual([["declared_gap", 2]]);
  });
});

describe("the list of findings", () => {
  it("names each entry by seq and hash, with a message that is the kind's", () => {
    const log = new TestLog();
    const only = log.add("host.loss", { action: { calls: { count: 3 }, reason: "queue_full" } });
    const expected: Finding = {
      kind: "declared_loss",
      severity: "failure",
      message: "the host declares calls that it did not record one by one",
      entries: [{ seq: only.seq, hash: only.hash }],
    };
    expect(listOf(log.entries).findings).toEqual([expected]);
  });

  it("is bounded, and counts what it does not hold", () => {
    const log = new TestLog();
    const one = log.add("host.loss", { action: { calls: { count: 3 }, reason: "queue_full" } });
    const many = Array.from({ length: 1500 }, (_, index) => ({ ...one, seq: index + 1 }));
    const list = listOf(many);
    expect(list.findings.length).toBe(1000);
    expect(list.counts).toEqual({ declared_loss: 1500 });
    expect(list.failures).toBe(1500);
  });

  it("refuses entries out of order", () => {
    const log = new TestLog();
    const first = log.add("run.created");
    const second = log.add("run.completed");
    expect(() => listOf([second, first])).toThrow(/order/);
    expect(() => listOf([first, first])).toThrow(/order/);
  });
});
