/**
 * Every kind of finding, from entries that were sent over HTTP, and the entries that each names.
 */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCrypto } from "../../native/crypto.ts";
import { FINDING_KINDS } from "../../shared/audit/finding.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { approvalHash, contentHash } from "../../shared/recheck/hash.ts";
import type { TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

const H = "cd".repeat(32);
const OTHER = "ef".repeat(32);
const SPEC = canonicalJson(
  '{"name":"publish","input_schema":{"type":"object"},"side_effect":"remote_mutation"}',
);
const SPEC_HASH = contentHash(nativeCrypto, SPEC);
const ARGS = { n: 1 };
const CAPABILITY = { tool: "publish", args: ARGS };

interface Sent {
  readonly kind: string;
  readonly [member: string]: unknown;
}

const of = (kind: string, action: object, more: object = {}): Sent => ({
  kind,
  run: "r1",
  step: "s1",
  action,
  ...more,
});
const NOWHERE = { run: null, step: null };

const request = (sequence: number): Sent =>
  of("http.request", {
    sequence,
    method: "POST",
    host: "api.example.com",
    port: 443,
    path_hash: H,
    headers_hash: H,
    body_hash: H,
    body_len: 12,
    redirect_hop: 0,
  });
const response = (sequence: number, request_entry?: object): Sent =>
  of(
    "http.response",
    { sequence, ...(request_entry === undefined ? {} : { request_entry }) },
    { outcome: { status: "success", http_status: 200, body_len: 3, complete: true } },
  );
const asked = (hash = H): Sent =>
  of("approval.requested", {
    approval_id: "a1",
    kind: "remote_mutation",
    capability: CAPABILITY,
    presentation: CAPABILITY,
    hash,
  });
const decided = (kind = "granted", more: object = {}): Sent =>
  of(`approval.${kind}`, { approval_id: "a1", by: "op", ...more });
const act = (more: object = {}): Sent => of("tool.call.started", { tool: "publish", args: ARGS, ...more });
const evaluated = (outcome: string): Sent =>
  of("policy.evaluated", { tool: "publish", args: ARGS, decision: { outcome } });
const granted = of(
  "capability.created",
  { token_id: "t1", resource: "x", permissions: ["read"], scope: "session" },
  NOWHERE,
);
const revoked = of("capability.revoked", { token_id: "t1" }, NOWHERE);
const use = of("file.read", { path: "/x" }, { authorization: { type: "capability", token_id: "t1" } });
const installed = of("code.installed", { code_id: "c", version: "1", code_hash: H }, NOWHERE);
const loaded = (code_hash: string): Sent => of("code.loaded", { code_id: "c", version: "1", code_hash });
const at = (second: number): Sent =>
  of("message.delta", { chunk: "x" }, { occurred_at: `2026-11-20T09:14:0${second}Z` });

/** Two reads in one entry, said to be so many. */
const folded = (count: number) => ({
  count,
  first_at: "2026-11-20T09:14:01Z",
  last_at: "2026-11-20T09:14:02Z",
  fold: H,
  tally: [{ class: "file.read", outcome: "ok", count: 2 }],
});

/** By kind: what is sent, and the places, from 1, of the entries that the finding names. */
const CASES: readonly [keyof typeof FINDING_KINDS, readonly Sent[], readonly number[]][] = [
  ["http_request_without_response", [request(1), request(2), response(2)], [1]],
  ["http_response_without_request", [response(1)], [1]],
  ["http_response_repeated", [request(1), response(1), response(1)], [3]],
  ["http_request_entry_mismatch", [request(1), response(1, { seq: 1, hash: OTHER })], [1, 2]],
  ["http_sequence_repeated", [request(1), response(1), request(1)], [3]],
  ["http_sequence_gap", [request(1), response(1), request(3), response(3)], [1, 3]],
  ["approval_decision_without_request", [decided(), asked()], [1]],
  [
    "approval_request_entry_mismatch",
    [asked(), decided("granted", { request_entry: { seq: 1, hash: OTHER } })],
    [1, 2],
  ],
  ["approval_after_act", [asked(), act(), decided()], [1, 2, 3]],
  ["act_without_approval", [evaluated("require_approval"), act()], [1, 2]],
  ["act_despite_refusal", [asked(), decided("denied"), act()], [2, 3]],
  // The approval is bound to a hash that these arguments do not give; only the stored spec tells.
  ["act_outside_approval", [asked(OTHER), decided(), act({ spec_hash: SPEC_HASH })], [1, 2, 3]],
  ["approval_used_again", [asked(), decided("granted", { scope: "once" }), act(), act()], [2, 3, 4]],
  ["call_despite_policy", [evaluated("deny"), act()], [1, 2]],
  ["capability_not_granted", [use], [1]],
  ["capability_used_before_grant", [use, granted], [1, 2]],
  ["capability_used_after_revocation", [granted, revoked, use], [2, 3]],
  ["code_hash_differs", [installed, loaded(OTHER)], [1, 2]],
  ["code_not_installed", [loaded(H)], [1]],
  ["occurred_clock_regression", [at(5), at(3)], [1, 2]],
  [
    "host_run_contradicts_itself",
    [at(1), of("host.run", { calls: folded(3) }), of("host.run", { calls: folded(2) })],
    [2],
  ],
  ["declared_loss", [at(1), of("host.loss", { calls: { count: 3 }, reason: "queue_full" })], [2]],
  ["declared_gap", [at(1), of("host.gap", { epoch: "e", reason: "unclean_shutdown" }, NOWHERE), at(2)], [2]],
];

interface Found {
  readonly kind: string;
  readonly severity: string;
  readonly entries: readonly { seq: number; hash: string }[];
  readonly missing?: { from: number; to: number };
}

let tenant: TestTenant;

beforeAll(async () => {
  tenant = await newTenant();
  expect((await call(tenant.key, "PUT", `/v1/tools/${SPEC_HASH}`, SPEC)).status).toBe(200);
});

/** Sends the entries to a log of their own; answers their hashes by place. */
async function send(principal: string, entries: readonly Sent[]): Promise<string[]> {
  const { status, body, text } = await call(
    tenant.key,
    "POST",
    `/v1/principals/${principal}/entries`,
    entries,
  );
  expect([status, text]).toEqual([201, text]);
  return (body.results as unknown as { hash: string }[]).map(({ hash }) => hash);
}

async function findingsOf(principal: string): Promise<readonly Found[]> {
  const { status, body } = await call(tenant.key, "GET", `/v1/principals/${principal}/runs/r1/audit`);
  expect(status).toBe(200);
  return body.findings as unknown as Found[];
}

describe("the findings of a run that was sent over HTTP", () => {
  it.each(CASES)("%s", async (kind, entries, places) => {
    const hashes = await send(kind, entries);
    const named = places.map((seq) => ({ seq, hash: hashes[seq - 1] }));
    const findings = await findingsOf(kind);
    expect(findings.map(({ kind: found }) => found)).toEqual([kind]);
    expect(findings[0]).toMatchObject({ severity: FINDING_KINDS[kind].severity, entries: named });
    // Each named entry is the one that the log proves.
    for (const { seq, hash } of named) {
      const entry = await call(tenant.key, "GET", `/v1/principals/${kind}/entries/${seq}?proof=true`);
      expect([entry.body.hash, String(entry.body.proof).includes("tlog-proof")]).toEqual([hash, true]);
    }
  });

  it("are every kind but one: the log's own clock never goes back over HTTP", () => {
    const shown = new Set<string>([...CASES.map(([kind]) => kind), "recorded_clock_regression"]);
    expect(shown).toEqual(new Set(Object.keys(FINDING_KINDS)));
  });

  it("name the numbers that a gap lacks", async () => {
    const [gap] = await findingsOf("http_sequence_gap");
    expect(gap?.missing).toEqual({ from: 2, to: 2 });
  });

  it("are none where the approval's hash is the one of the act", async () => {
    const hash = approvalHash(nativeCrypto, {
      kind: "remote_mutation",
      capability: canonicalJson(JSON.stringify(CAPABILITY)),
      presentation: canonicalJson(JSON.stringify(CAPABILITY)),
      runId: "r1",
      stepId: "s1",
      spec: SPEC,
      args: canonicalJson(JSON.stringify(ARGS)),
    });
    await send("bound", [asked(hash), decided(), act({ spec_hash: SPEC_HASH })]);
    expect(await findingsOf("bound")).toEqual([]);
  });

  it.each([
    ["altered", "UPDATE tool_specs SET spec = ?1 WHERE hash = ?2"],
    ["lost", "DELETE FROM tool_specs WHERE ?1 <> '' AND hash = ?2"],
  ])(
    "show an act under another spec than the approved one, also where D1 has %s that spec",
    async (what, sql) => {
      const capability = canonicalJson(JSON.stringify(CAPABILITY));
      const subject = {
        kind: "remote_mutation",
        capability,
        presentation: capability,
        runId: "r1",
        stepId: "s1",
      };
      const hash = approvalHash(nativeCrypto, {
        ...subject,
        spec: SPEC,
        args: canonicalJson(JSON.stringify(ARGS)),
      });
      const other = `{"name":"publish","side_effect":"destructive","was":"${what}"}`;
      const otherHash = contentHash(nativeCrypto, other);
      expect((await call(tenant.key, "PUT", `/v1/tools/${otherHash}`, other)).status).toBe(200);
      await send(what, [asked(hash), decided(), act({ spec_hash: otherHash })]);
      const { meta } = await env.DB.prepare(sql).bind(SPEC, otherHash).run();
      expect(meta.changes).toBe(1);
      expect((await findingsOf(what)).map(({ kind }) => kind)).toEqual(["act_outside_approval"]);
    },
  );

  it("read what bears on the run from the whole log, before it and after it", async () => {
    await send("context", [granted, of("run.created", {}, { run: "other" })]);
    await send("context", [use, loaded(H)]);
    await send("context", [installed, revoked]);
    expect((await findingsOf("context")).map(({ kind }) => kind)).toEqual(["code_not_installed"]);
  });
});
