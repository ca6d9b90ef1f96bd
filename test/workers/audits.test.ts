import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestTenant } from "./support.ts";
import { call, newKey, newTenant } from "./support.ts";

const TOOL = { tool_name: "read", description: "d", parameters: {}, source: "builtin" };

/** A run that passes: it calls `tool` once, with its own number. */
function run(name: string, tool = "read", n: unknown = 1, minute = 0): Record<string, unknown>[] {
  const at = `2026-09-29T10:${String(minute).padStart(2, "0")}:00Z`;
  return [
    {
      kind: "run.created",
      run: name,
      occurred_at: at,
      action: { authorization: { resources: { tools: [{ ...TOOL, tool_name: tool }] } } },
    },
    { kind: "tool.call.started", run: name, call: "c1", action: { tool, args: { n } } },
    {
      kind: "tool.call.completed",
      run: name,
      call: "c1",
      action: { tool },
      outcome: { status: "success", result: { text: `result of ${name}` } },
    },
    { kind: "run.completed", run: name, action: {} },
    { kind: "run.status", run: name, action: { status: "completed" } },
  ];
}

async function send(key: string, principal: string, entries: readonly unknown[]): Promise<void> {
  const { status, text } = await call(key, "POST", `/v1/principals/${principal}/entries`, entries);
  expect([status, text]).toEqual([201, text]);
}

const audit = (key: string, body: unknown): Promise<Answer> => call(key, "POST", "/v1/audits", body);
/** Which run was chosen, and the verdict. */
const chosen = ({ body }: Answer): unknown[] => {
  const { entries, principal, status } = body as unknown as {
    entries: { run: string } | null;
    principal: string | null;
    status: string;
  };
  return [principal, entries?.run ?? null, status];
};

let tenant: TestTenant;

beforeAll(async () => {
  tenant = await newTenant();
  await send(tenant.key, "a", run("a1", "read", 1, 1));
  await send(tenant.key, "b", run("b1", "write", 2, 2));
  await send(tenant.key, "a", run("a2", "read", 3, 3));
  await send(tenant.key, "b", run("b2", "other", 4, 4));
});

describe("GET .../runs/{run}/audit", () => {
  it("answers the report, the entries that it is about, and a signed head that covers them", async () => {
    const { status, body } = await call(tenant.key, "GET", "/v1/principals/a/runs/a2/audit");
    const head = (await call(tenant.key, "GET", "/v1/principals/a/head")).body;
    const entry = (await call(tenant.key, "GET", "/v1/principals/a/entries/6")).body;
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: "pass",
      failures: [],
      findings: [],
      not_checked: [],
      context: "log",
      covered: true,
      principal: "a",
      entries: { run: "a2", first: { seq: 6, hash: entry.hash }, last: { seq: 10 }, count: 5 },
      head: { size: 10, root: head.root, checkpoint: head.checkpoint },
    });
  });

  it("judges the expectations of the query, to the digit", async () => {
    await send(tenant.key, "c", run("big", "read", 1));
    const big = (
      await call(
        tenant.key,
        "POST",
        "/v1/principals/c/entries",
        [
          `{"kind":"tool.call.started","run":"r","call":"c1","action":{"tool":"t","args":{"n":12345678901234567890}}}`,
        ].join(""),
      )
    ).status;
    expect(big).toBe(201);
    const asked = async (query: string): Promise<unknown> =>
      (await call(tenant.key, "GET", `/v1/principals/c/runs/r/audit?${query}`)).body.expected_tool_call;
    expect(await asked('expected_tool_name=t&expected_parameters={"n":12345678901234567890}')).toMatchObject({
      matched_started_count: 1,
      parameters_match_required: true,
    });
    expect(await asked('expected_tool_name=t&expected_parameters={"n":12345678901234567891}')).toMatchObject({
      matched_started_count: 0,
    });
    const text = encodeURIComponent("result of big");
    const { body } = await call(
      tenant.key,
      "GET",
      `/v1/principals/c/runs/big/audit?expected_tool_name=read&expected_result_text=${text}`,
    );
    expect([body.status, body.expected_tool_call]).toMatchObject(["pass", { result_text_match: true }]);
  });

  it("takes the mode, and what is not recorded, as they are asked for", async () => {
    await send(
      tenant.key,
      "d",
      run("d1").map((entry, place) => (place === 0 ? { ...entry, action: {} } : entry)),
    );
    const status = async (query: string): Promise<unknown> =>
      (await call(tenant.key, "GET", `/v1/principals/d/runs/d1/audit${query}`)).body.status;
    expect(await status("")).toBe("env_issue");
    expect(await status("?mode=runner-native")).toBe("pass");
    expect(await status("?unrecorded=accept")).toBe("pass");
  });

  it("answers text", async () => {
    const answer = await call(tenant.key, "GET", "/v1/principals/a/runs/a2/audit?format=text");
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(answer.text).toMatch(/^pass: run a2: Agent run ledger audit passed\.\n/);
    expect(answer.text).toMatch(/head: size 10, root [0-9a-f]{64}, covers them\nlog: a\n$/);
  });

  it("is 404 for a run that is absent, another principal's, or another tenant's", async () => {
    const other = await newTenant();
    await send(other.key, "a", run("theirs"));
    for (const name of ["nope", "b1", "theirs"])
      expect((await call(tenant.key, "GET", `/v1/principals/a/runs/${name}/audit`)).status).toBe(404);
  });

  it.each([
    ["mode=lenient", "?mode"],
    ["expected_tool_name=", "?expected_tool_name"],
    ["expected_tool_name=t&expected_parameters=[1]", "?expected_parameters"],
    ["expected_tool_name=t&expected_parameters={", "?expected_parameters"],
    ["expected_parameters={}", "?expected_tool_name"],
    ["expected_result_text=x", "?expected_tool_name"],
    ["created_after=2026-01-01", "?created_after"],
    ["format=junit", "?format"],
  ])("refuses %s", async (query, pointer) => {
    const { status, body, text } = await call(tenant.key, "GET", `/v1/principals/a/runs/a2/audit?${query}`);
    expect([status, body.pointer]).toEqual([400, pointer]);
    expect(text).not.toContain("lenient");
  });

  it("reads a run of several pages among another one's entries", async () => {
    const names = ["long", "beside"];
    const frame = (name: string): Record<string, unknown>[] => run(name);
    const calls = Array.from({ length: 800 }, (_, n) =>
      names.flatMap((name) => [
        { kind: "tool.call.started", run: name, call: `k${n}`, action: { tool: "read", args: { n } } },
        {
          kind: "tool.call.completed",
          run: name,
          call: `k${n}`,
          action: { tool: "read" },
          outcome: { status: "success", result: {} },
        },
      ]),
    ).flat();
    await send(
      tenant.key,
      "pages",
      names.flatMap((name) => frame(name).slice(0, 1)),
    );
    for (let at = 0; at < calls.length; at += 1000)
      await send(tenant.key, "pages", calls.slice(at, at + 1000));
    await send(
      tenant.key,
      "pages",
      names.flatMap((name) => frame(name).slice(3)),
    );
    const { body } = await call(tenant.key, "GET", "/v1/principals/pages/runs/long/audit");
    expect(body).toMatchObject({
      status: "pass",
      metrics: { tool_call_started: 800, tool_call_completed: 800, tool_call_ids: 800 },
      entries: { count: 1603 },
    });
  });

  it("does not read a row that somebody else wrote over", async () => {
    await send(tenant.key, "altered", run("x"));
    const update = env.DB.prepare(
      "UPDATE entries SET leaf = 'AAAA' WHERE seq = 3 AND log = (SELECT log FROM logs WHERE tenant = ? AND name = 'altered')",
    );
    await call(tenant.key, "GET", "/v1/principals/altered/entries");
    expect((await update.bind(tenant.id).run()).meta.changes).toBe(1);
    const { status, body } = await call(tenant.key, "GET", "/v1/principals/altered/runs/x/audit");
    expect([status, body.type]).toEqual([503, "urn:runseal:problem:index-conflict"]);
  });
});

describe("POST /v1/audits", () => {
  let own: TestTenant;

  beforeAll(async () => {
    own = await newTenant();
    await send(own.key, "a", run("a1", "read", 1, 1));
    await send(own.key, "b", run("b1", "write", 2, 2));
    await send(own.key, "a", run("a2", "read", 3, 3));
    await send(own.key, "b", run("b2", "other", 4, 4));
  });

  it("takes the newest run of the tenant, or of some principals", async () => {
    expect(chosen(await audit(own.key, {}))).toEqual(["b", "b2", "pass"]);
    expect(chosen(await audit(own.key, { principals: ["a"] }))).toEqual(["a", "a2", "pass"]);
    expect(chosen(await audit(own.key, { principals: ["a", "b"] }))).toEqual(["b", "b2", "pass"]);
  });

  it("takes a run by its id, in whichever log it is", async () => {
    expect(chosen(await audit(own.key, { run_id: "b1" }))).toEqual(["b", "b1", "pass"]);
    expect(chosen(await audit(own.key, { run_id: "b1", principals: ["a"] }))).toEqual([
      null,
      null,
      "env_issue",
    ]);
    expect(chosen(await audit(own.key, { run_id: "b" }))).toEqual([null, null, "env_issue"]);
  });

  it("takes the newest run with the expected call", async () => {
    const expected = (tool_name: string, more: object = {}) => ({ expected: { tool_name, ...more } });
    expect(chosen(await audit(own.key, expected("read")))).toEqual(["a", "a2", "pass"]);
    expect(chosen(await audit(own.key, expected("read", { parameters: { n: 1 } })))).toEqual([
      "a",
      "a1",
      "pass",
    ]);
    expect(chosen(await audit(own.key, expected("read", { parameters: '{"n":1.0}' })))).toEqual([
      "a",
      "a1",
      "pass",
    ]);
    const none = await audit(own.key, expected("read", { parameters: { n: 9 } }));
    expect([chosen(none), none.body.failures, none.body.looked_at]).toEqual([
      [null, null, "fail"],
      [{ kind: "expected_tool_call_missing" }],
      4,
    ]);
    const text = await audit(own.key, expected("read", { result_text: "result of a1" }));
    expect([chosen(text), text.body.failures]).toEqual([
      ["a", "a2", "fail"],
      [{ kind: "expected_tool_result_text_missing" }],
    ]);
  });

  it("looks at the newest ones that were created late enough, and no further", async () => {
    const expected = { tool_name: "read", parameters: { n: 1 } };
    expect(chosen(await audit(own.key, { expected, newest: 4 }))).toEqual(["a", "a1", "pass"]);
    expect(chosen(await audit(own.key, { expected, newest: 3 }))).toEqual([null, null, "fail"]);
    const after = (created_after: string) => audit(own.key, { expected, created_after });
    expect(chosen(await after("2026-09-29T12:01:00+02:00"))).toEqual(["a", "a1", "pass"]);
    expect(chosen(await after("2026-09-29T10:01:00.000001"))).toEqual([null, null, "fail"]);
  });

  it("keeps the digits of expected parameters", async () => {
    await call(
      own.key,
      "POST",
      "/v1/principals/n/entries",
      '{"kind":"tool.call.started","run":"n1","call":"c","action":{"tool":"big","args":{"n":12345678901234567890}}}',
    );
    const body = (n: string) => `{"expected":{"tool_name":"big","parameters":{"n":${n}}},"principals":["n"]}`;
    expect(chosen(await audit(own.key, body("12345678901234567890")))[1]).toBe("n1");
    expect(chosen(await audit(own.key, body("12345678901234567891")))[1]).toBe(null);
  });

  it("takes a run that says nothing of itself", async () => {
    const bare = await newTenant();
    await send(bare.key, "a", run("older"));
    await send(bare.key, "a", [{ kind: "message.delta", run: "bare", action: { chunk: "x" } }]);
    expect(chosen(await audit(bare.key, {}))).toEqual(["a", "bare", "fail"]);
    expect(chosen(await audit(bare.key, { expected: { tool_name: "read" }, newest: 1 }))[1]).toBe(null);
    expect(chosen(await audit(bare.key, { expected: { tool_name: "read" }, newest: 2 }))[1]).toBe("older");
  });

  it("says so where it did not look at all the runs", async () => {
    const many = await newTenant();
    const runs = Array.from({ length: 501 }, (_, n) => ({
      kind: "message.delta",
      run: `r${n}`,
      action: { chunk: "x" },
    }));
    await send(many.key, "a", runs);
    // None of them says when it was created, so that none counts among the newest 100.
    const asked = { expected: { tool_name: "read" }, created_after: "2026-01-01" };
    const { body } = await audit(many.key, asked);
    expect([body.status, body.looked_at, body.failures]).toEqual(["env_issue", 500, []]);
    expect(body.reason).toContain("older ones were not looked at");
    expect((await audit(many.key, { expected: asked.expected })).body).toMatchObject({
      status: "fail",
      looked_at: 100,
    });
  });

  it("has nothing to say of a tenant without runs", async () => {
    const empty = await newTenant();
    const answer = await audit(empty.key, {});
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      status: "env_issue",
      reason: "No matching Runner run exists.",
      principal: null,
      looked_at: 0,
    });
  });

  it("sees no other tenant's runs, and none of principals that the key is not for", async () => {
    const other = await newTenant();
    expect(chosen(await audit(other.key, { run_id: "a1" }))).toEqual([null, null, "env_issue"]);
    const narrow = await newKey(own, ["read"], ["a"]);
    expect(chosen(await audit(narrow, {}))).toEqual(["a", "a2", "pass"]);
    expect(chosen(await audit(narrow, { run_id: "b1" }))).toEqual([null, null, "env_issue"]);
    const strip = ({ text }: Answer): string => text.replace(/"request_id":"[^"]*"/, "");
    const hidden = await audit(narrow, { principals: ["b"] });
    const absent = await audit(narrow, { principals: ["nobody"] });
    expect([hidden.status, strip(hidden)]).toEqual([404, strip(absent)]);
    const foreign = await audit(other.key, { principals: ["a"] });
    expect([foreign.status, strip(foreign)]).toEqual([404, strip(absent)]);
  });

  it.each<[unknown, number, string]>([
    ["{", 400, ""],
    [[], 400, ""],
    [{ run: "x" }, 400, "/run"],
    [{ newest: 0 }, 400, "/newest"],
    [{ newest: 101 }, 400, "/newest"],
    [{ principals: [] }, 400, "/principals"],
    [{ mode: "lenient" }, 400, "/mode"],
    [{ created_after: "soon" }, 400, "/created_after"],
    [{ expected: {} }, 400, "/expected/tool_name"],
    [{ expected: { tool_name: "t", parameters: [1] } }, 400, "/expected/parameters"],
    [{ expected: { tool_name: "t", parameters: "[1]" } }, 400, "/expected/parameters"],
    ['{"run_id":"a","run_id":"b"}', 422, "/run_id"],
  ])("refuses %j", async (body, status, pointer) => {
    const answer = await audit(own.key, body);
    expect([answer.status, answer.body.pointer]).toEqual([status, pointer]);
    expect(answer.text).not.toMatch(/soon|lenient/);
  });
});
