import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { breakGets } from "../durable-objects/faults.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, newTenant } from "./support.ts";

let tenant: TestTenant;
const RUN = "/v1/principals/agent/runs/r1";

const SPECS = {
  read: '{"name":"read","side_effect":"read_only"}',
  send: '{"name":"send","side_effect":"remote_mutation"}',
};

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const view = (step: number) => ({
  status: "RUNNING",
  step_count: step + 1,
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_input_tokens: 0,
  estimated_cost_micros: 0,
  active_ms: 0,
  steps: step,
  approvals: 0,
});

/** Entries of a run: a read that was allowed, a send that was denied, and a read whose spec nobody stored. */
async function entriesOf(run: string): Promise<string[]> {
  const calls = [
    { tool: "read", args: '{"path":"a","n":12345678901234567890}', spec: SPECS.read, outcome: "allow" },
    { tool: "send", args: '{"to":"b"}', spec: SPECS.send, outcome: "deny" },
    { tool: "read", args: "{}", spec: '{"name":"read","gone":1}', outcome: "allow" },
  ];
  const lines = [
    `{"id":"${run}-c","kind":"run.created","run":"${run}","action":{"goal":"g","limits":{},"tools":[]}}`,
  ];
  for (const [index, { tool, args, spec, outcome }] of calls.entries()) {
    const common = `"run":"${run}","step":"s${index}"`;
    lines.push(
      `{"id":"${run}-s${index}","kind":"step.started",${common},"action":{"index":${index}}}`,
      `{"id":"${run}-d${index}","kind":"step.decided",${common},"action":{"kind":"tool_call","tool":"${tool}","args":${args}}}`,
      `{"id":"${run}-p${index}","kind":"policy.evaluated",${common},"action":{"tool":"${tool}","args":${args},` +
        `"spec_hash":"${await sha256(spec)}","policy_id":"recorded/v1","decision":{"outcome":"${outcome}","reason":"r"},` +
        `"view":${JSON.stringify(view(index))}}}`,
    );
  }
  lines.push(`{"id":"${run}-e","kind":"run.completed","run":"${run}","action":{}}`);
  return lines;
}

const recheck = (policy: unknown, query = "", key = tenant.key): Promise<Answer> =>
  call(key, "POST", `${RUN}/recheck${query}`, { policy });

interface Line {
  readonly seq: number;
  readonly hash: string;
  readonly tool: string;
  readonly request?: { readonly args: Record<string, unknown>; readonly spec: Record<string, unknown> };
  readonly recorded: { readonly outcome: string };
  readonly detail?: string;
}

async function evaluations(query = ""): Promise<{ answer: Answer; lines: Line[] }> {
  const answer = await call(tenant.key, "GET", `${RUN}/evaluations${query}`);
  const lines = answer.text.split("\n").filter((line) => line !== "");
  return { answer, lines: lines.map((line) => JSON.parse(line) as Line) };
}

function results(answer: Answer): unknown[] {
  const { evaluations } = answer.body as unknown as { evaluations: { result: string; detail?: string }[] };
  return evaluations.map(({ result, detail }) => (detail === undefined ? result : [result, detail]));
}

beforeAll(async () => {
  tenant = await newTenant();
  for (const spec of Object.values(SPECS)) {
    const { status } = await call(tenant.key, "PUT", `/v1/tools/${await sha256(spec)}`, spec);
    expect(status).toBe(200);
  }
  const answer = await call(
    tenant.key,
    "POST",
    "/v1/principals/agent/entries",
    (await entriesOf("r1")).join("\n"),
    { "content-type": "application/x-ndjson" },
  );
  expect([answer.status, answer.text.slice(0, 300)]).toEqual([201, expect.any(String)]);
});

const GONE = [
  "not_recheckable",
  expect.stringMatching(/^not re-checkable: spec [0-9a-f]{64} is not stored$/),
];

describe("a recheck under a stored policy", () => {
  const strict = { rules: { policy_id: "strict/v1", side_effects: {} } };
  const recorded = {
    rules: { policy_id: "recorded/v1", side_effects: { read_only: "allow", remote_mutation: "deny" } },
  };

  it("says which version it used, the latest unless told", async () => {
    const one = await call(tenant.key, "PUT", "/v1/policies/team", recorded);
    await call(tenant.key, "PUT", "/v1/policies/team", strict);
    const latest = await recheck({ name: "team" });
    expect(latest.body).toMatchObject({
      policy_id: "strict/v1",
      identity: "changed",
      policy: { engine: "rules", name: "team", version: 2 },
    });
    expect(results(latest)).toEqual(["different", "same", GONE]);
    const first = await recheck({ name: "team", version: 1 });
    expect(first.body).toMatchObject({
      identity: "unchanged",
      same: true,
      policy: { engine: "rules", name: "team", version: 1, hash: one.body.hash },
    });
  });

  it("names the hash of what it asked, whatever else D1 holds of the version", async () => {
    await call(tenant.key, "PUT", "/v1/policies/swapped", recorded);
    const hold = async (source: string) =>
      env.DB.prepare(
        "UPDATE policies SET source = ?, hash = ?, engine = 'cedar' WHERE tenant = ? AND name = ?",
      )
        .bind(source, await sha256(source), tenant.id, "swapped")
        .run();
    const other = canonicalJson(JSON.stringify({ rules: { ...recorded.rules, side_effects: {} } }));
    await hold(other);
    const { body } = await recheck({ name: "swapped" }, "?store=true");
    const used = { engine: "rules", hash: await sha256(other) };
    expect(body).toMatchObject({ policy_id: "recorded/v1", differences: 1, policy: used });
    const { text } = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    expect(text).toContain(`"policy_hash":"${used.hash}"`);
    for (const none of ["{", '{"name":"team"}', "7"]) {
      await hold(none);
      const answer = await recheck({ name: "swapped" });
      expect([answer.status, answer.body.type]).toEqual([503, "urn:runseal:problem:index-conflict"]);
    }
  });

  it("that the tenant does not have is not found, be it another's or nobody's", async () => {
    const other = await newTenant("other");
    await call(other.key, "PUT", "/v1/policies/theirs", strict);
    for (const policy of [{ name: "theirs" }, { name: "nobodys" }, { name: "team", version: 99 }]) {
      const answer = await recheck(policy);
      expect([answer.status, answer.body.type]).toEqual([404, "urn:runseal:problem:not-found"]);
    }
  });
});

describe("a recheck while D1 is filled again", () => {
  const recorded = {
    rules: { policy_id: "recorded/v1", side_effects: { read_only: "allow", remote_mutation: "deny" } },
  };

  it("has the specs that D1 lacks from R2, and so has a report that is stored then", async () => {
    const before = await recheck(recorded);
    await env.TENANT_DIRECTORY.getByName(tenant.id).startRebuild();
    await env.DB.prepare("DELETE FROM tool_specs WHERE tenant = ?").bind(tenant.id).run();
    const after = await recheck(recorded, "?store=true");
    expect(results(after)).toEqual(["same", "same", GONE]);
    expect(results(after)).toEqual(results(before));
  });

  it("is a 503 where R2 is away, and no report of specs that are not stored", async () => {
    await env.DB.prepare("DELETE FROM tool_specs WHERE tenant = ?").bind(tenant.id).run();
    const broken = breakGets((key) => key.includes("/tools/"));
    const stored = () => env.MIRROR.list({ prefix: `t/${tenant.id}/recheck/` });
    const before = (await stored()).objects.length;
    const answer = await recheck(recorded, "?store=true");
    broken.mend();
    expect([answer.status, answer.body.type]).toEqual([503, "urn:runseal:problem:mirror-unavailable"]);
    expect((await stored()).objects).toHaveLength(before);
    expect(results(await recheck(recorded))).toEqual(["same", "same", GONE]);
  });
});

describe("a recheck under Cedar", () => {
  const text = (more: string) =>
    `permit(principal == Agent::"agent", action == Action::"read", resource) when { context.args.path == "a" }; ${more}`;

  it("decides as the policies say, and is a failure where they can't be evaluated", async () => {
    const answer = await recheck({ cedar: text(""), policy_id: "recorded/v1" });
    expect(results(answer)).toEqual(["same", "same", GONE]);
    expect(answer.body).toMatchObject({ identity: "unchanged", policy: { engine: "cedar" } });
    expect(answer.body.notes).toEqual([
      "1 evaluation(s) hold a number that a double can't hold: the policy is handed its text",
      "1 evaluation(s) hold numbers that Cedar has no value for: docs/policies.md says what it was handed",
    ]);
    const failing = await recheck({
      cedar: text("forbid(principal, action, resource) when { context.args.to == 1 && context.args.x };"),
    });
    const [first, second] = results(failing);
    expect(first).toEqual([
      "different",
      expect.stringMatching(/^policy failed: policy policy1 has an error: /),
    ]);
    expect(second).toEqual("same");
  });

  it("passes a gate only where all is the same and complete", async () => {
    expect((await recheck({ cedar: text("") }, "?gate=proxy")).status).toBe(200);
    const strict = await recheck({ cedar: text("") }, "?gate=strict");
    expect([strict.status, strict.body.type]).toEqual([409, "urn:runseal:problem:gate-failed"]);
  });

  it("is refused with the place in the request", async () => {
    const answer = await recheck({ cedar: { policies: "permit(principal)" } });
    expect([answer.status, answer.body.pointer]).toEqual([422, "/policy/cedar/policies"]);
  });
});

describe("a run's evaluations", () => {
  it("come as a policy saw them, each number as it was recorded", async () => {
    const { answer, lines } = await evaluations();
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(answer.headers.get("runseal-evaluations")).toBe("3");
    expect(answer.text).toContain('"args":{"n":12345678901234567890,"path":"a"}');
    expect(lines.map(({ tool, recorded: { outcome } }) => [tool, outcome])).toEqual([
      ["read", "allow"],
      ["send", "deny"],
      ["read", "allow"],
    ]);
    expect(lines[1]).toMatchObject({
      step_index: 1,
      step_id: "s1",
      policy_id: "recorded/v1",
      request: {
        run_id: "r1",
        step_id: "s1",
        spec: { name: "send", side_effect: "remote_mutation", terminal: false },
        args: { to: "b" },
      },
      run: { id: "r1", goal: "g", status: "RUNNING", step_count: 2 },
      steps: [{ id: "s0", index: 0, decision: { kind: "tool_call", tool: "read" } }],
      approvals: null,
    });
    expect(lines[0]).toMatchObject({ steps: null, approvals: null });
    expect(lines[2]).toMatchObject({ result: "not_recheckable", reason: "spec-missing" });
    expect(lines[2]?.request).toBeUndefined();
    const entry = await call(tenant.key, "GET", `/v1/principals/agent/entries/${lines[1]?.seq}`);
    expect(entry.body).toMatchObject({ kind: "policy.evaluated", hash: lines[1]?.hash });
    const lean = await evaluations("?views=false");
    expect(lean.lines[1]).not.toHaveProperty("steps");
  });

  it("are not found for a run that is not there", async () => {
    expect((await call(tenant.key, "GET", "/v1/principals/agent/runs/none/evaluations")).status).toBe(404);
  });
});

describe("decisions that were made elsewhere", () => {
  const decided = async (outcomeOf: (line: Line) => string) => {
    const { lines } = await evaluations();
    return lines
      .filter(({ request }) => request !== undefined)
      .map((line) => ({ seq: line.seq, hash: line.hash, decision: { outcome: outcomeOf(line) } }));
  };

  it("are compared as a policy's own answers are", async () => {
    const same = await recheck({
      decisions: await decided(({ recorded }) => recorded.outcome),
      policy_id: "recorded/v1",
    });
    expect(results(same)).toEqual(["same", "same", GONE]);
    expect(same.body).toMatchObject({ identity: "unchanged", policy: { engine: "decisions" } });
    const denied = await recheck({ decisions: await decided(() => "deny") });
    expect(results(denied)).toEqual(["different", "same", GONE]);
    expect(denied.body).toMatchObject({ identity: "unknown", differences: 1 });
  });

  it("that are missing leave an evaluation not re-checked, and never the same", async () => {
    const [first] = await decided(({ recorded }) => recorded.outcome);
    const answer = await recheck(
      { decisions: [{ hash: first?.hash, decision: first?.decision }] },
      "?gate=proxy",
    );
    expect(results(answer)).toEqual([
      "same",
      ["not_recheckable", "not re-checkable: no decision was given for it"],
      GONE,
    ]);
    const strict = await recheck({ decisions: [first] }, "?gate=strict");
    expect(strict.status).toBe(409);
  });

  it("that say that the policy failed are differences", async () => {
    const [first] = await decided(() => "allow");
    const answer = await recheck({ decisions: [{ seq: first?.seq, error: "no memory" }] });
    expect(results(answer)[0]).toEqual(["different", "policy failed: no memory"]);
  });

  it.each([
    [
      "for an evaluation that the run does not have",
      (seq: number) => [{ seq: seq + 1, error: "e" }],
      "/policy/decisions/0",
    ],
    [
      "for an evaluation with another hash",
      (seq: number) => [{ seq, hash: "ab".repeat(32), error: "e" }],
      "/policy/decisions/0",
    ],
    ["for an unknown hash", () => [{ hash: "ab".repeat(32), error: "e" }], "/policy/decisions/0"],
  ])("are refused: %s", async (_what, decisions, pointer) => {
    const [first] = await decided(() => "allow");
    const answer = await recheck({ decisions: decisions(first?.seq ?? 0) });
    expect([answer.status, answer.body.type, answer.body.pointer]).toEqual([
      422,
      "urn:runseal:problem:invalid-policy",
      pointer,
    ]);
  });

  it("are refused where two are for one evaluation, by whatever name", async () => {
    const [first] = await decided(() => "allow");
    const { seq, hash, decision } = first ?? {};
    const answer = await recheck({
      decisions: [
        { seq, decision },
        { hash, decision },
      ],
    });
    expect([answer.status, answer.body.pointer]).toEqual([422, "/policy/decisions/1"]);
  });
});

it("canonical specs are what the tests store", () => {
  for (const spec of Object.values(SPECS)) expect(canonicalJson(spec)).toBe(spec);
});
