import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { JobReportOut } from "../../shared/api/rechecks.ts";
import type { Job } from "./rechecks-support.ts";
import {
  jobOf,
  LOOSE,
  putSpecs,
  RECORDED,
  recheckJob,
  STRICT,
  sendRun,
  specHash,
} from "./rechecks-support.ts";
import type { TestTenant } from "./support.ts";
import { call, newKey, newTenant } from "./support.ts";

const ALL = { selection: {} };
const READ = { tool: "read", outcome: "allow" };
const WIPE = { tool: "wipe", outcome: "deny" };

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  await putSpecs(tenant);
  await sendRun(tenant, "a", "r1", [READ, WIPE]);
  await sendRun(tenant, "a", "r2", [READ, READ, { ...READ, policyId: "older/v0" }]);
  await sendRun(tenant, "b", "r1", [WIPE, { tool: "send", outcome: "deny" }]);
  await sendRun(tenant, "b", "empty", []);
});

const start = (body: unknown, query = "", headers = {}) =>
  call(tenant.key, "POST", `/v1/rechecks${query}`, body, headers);
const get = (path: string, key = tenant.key) => call(key, "GET", `/v1/rechecks${path}`);

describe("a job over everything", () => {
  it("comes out the same under the policy that was recorded, and passes the strict gate", async () => {
    const job = await recheckJob(tenant.key, { policy: RECORDED, ...ALL });
    expect(job).toMatchObject({
      status: "complete",
      progress: { logs: 2, runs: { done: 4, total: 4 }, evaluations: 7 },
      summary: {
        runs: { rechecked: 3, without_evaluations: 1, failed: 0 },
        totals: { evaluated: 7, same: 7, different: 0 },
        same: true,
        complete: true,
        identity: "changed",
      },
    });
    expect((await get(`/${job.id}/report?gate=strict`)).status).toBe(200);
  });

  it("names every call that a looser policy lets through, and fails both gates with the report", async () => {
    const job = await recheckJob(tenant.key, { policy: LOOSE, ...ALL });
    expect(job.summary.totals).toMatchObject({ evaluated: 7, same: 4, different: 3 });
    expect(job.summary.new_allows).toMatchObject({ total: 3 });
    expect(
      job.summary.new_allows.groups.map(({ principal, tool, count }) => [principal, tool, count]),
    ).toEqual([
      ["a", "wipe", 1],
      ["b", "send", 1],
      ["b", "wipe", 1],
    ]);
    for (const gate of ["strict", "proxy"]) {
      const failed = await get(`/${job.id}/report?gate=${gate}`);
      expect([failed.status, failed.body.type]).toEqual([409, "urn:runseal:problem:gate-failed"]);
      expect(JobReportOut.parse(failed.body.report).summary.totals.different).toBe(3);
    }
    const text = await get(`/${job.id}/report?format=text`);
    expect(text.headers.get("content-type")).toContain("text/plain");
    expect(text.text).toContain(
      `recheck ${job.id} complete: 4 of 4 runs of 2 logs\n3 of 7 re-checked evaluations differ in 3 runs`,
    );
    expect(text.text).toContain("NEW ALLOW deny -> allow b send: 1, the first in run r1 at seq 3\n");
    const forms = [
      ["text", "text/plain", "recheck "],
      ["junit", "application/xml", '<?xml version="1.0"'],
      ["markdown", "text/markdown", "### Recheck "],
    ] as const;
    for (const [form, type, begin] of forms) {
      for (const [gate, status] of [
        ["", 200],
        ["&gate=proxy", 409],
      ] as const) {
        const answer = await get(`/${job.id}/report?format=${form}${gate}`);
        expect([form, answer.status]).toEqual([form, status]);
        expect(answer.headers.get("content-type")).toContain(type);
        expect(answer.text.startsWith(begin)).toBe(true);
        expect(answer.text.includes('<failure type="differs"')).toBe(form === "junit" && gate !== "");
        expect(answer.text.includes("**failed**")).toBe(form === "markdown" && gate !== "");
      }
    }
    expect((await get(`/${job.id}/report?format=xml`)).body.pointer).toBe("?format");
  });

  it("gives the runs line by line: those that differ, or all of them", async () => {
    const job = await recheckJob(tenant.key, { policy: LOOSE, ...ALL });
    const lines = async (query: string) => {
      const answer = await get(`/${job.id}/runs${query}`);
      expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
      return answer.text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    };
    const some = await lines("");
    expect(some.map(({ principal, run, different }) => [principal, run, different])).toEqual([
      ["a", "r1", 1],
      ["b", "r1", 2],
    ]);
    expect(some[0]?.differences).toEqual([
      {
        step_index: 1,
        seq: 3,
        tool: "wipe",
        recorded: "deny",
        rechecked: "allow",
        detail: expect.any(String),
      },
    ]);
    const all = await lines("?all=true");
    expect(all.map(({ principal, run }) => `${principal}/${run}`)).toEqual([
      "a/r1",
      "a/r2",
      "b/empty",
      "b/r1",
    ]);
  });
});

describe("evidence", () => {
  it("is in the system log before the report is served, which has the recorded hash, heads, policy and specs", async () => {
    const job = await recheckJob(tenant.key, { policy: LOOSE, ...ALL });
    const report = await get(`/${job.id}/report`);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(report.text));
    const hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect(job.report_hash).toBe(hash);
    const log = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    const entries = log.body.entries as unknown as { id: string; action: Record<string, unknown> }[];
    const entry = entries.find(({ id }) => id === job.entry?.id);
    expect(entry?.action).toMatchObject({
      job: job.id,
      status: "complete",
      report_hash: hash,
      policy_id: "loose/v1",
      engine: "rules",
      spec_source: "recorded",
      logs: 2,
      evaluated: 7,
      different: 3,
      new_allows: 3,
    });
    const { body: head } = await call(tenant.key, "GET", "/v1/principals/a/head");
    const parsed = report.body as unknown as { heads: Record<string, unknown>[]; policy_source: unknown };
    expect(parsed.heads[0]).toMatchObject({
      principal: "a",
      size: head.size,
      hash: head.hash,
      root: head.root,
      checkpoint: head.checkpoint,
      runs: 2,
    });
    expect(parsed.policy_source).toEqual(LOOSE);
    expect(job.summary.specs.hashes).toEqual(["read", "send", "wipe"].map(specHash).sort());
    expect(entry?.action.heads).toEqual(job.heads.map(({ size, root, log_id }) => ({ log_id, size, root })));
  });

  it("has a hash over the lines of its runs", async () => {
    const job = await recheckJob(tenant.key, { policy: LOOSE, ...ALL });
    const { lines } = (await get(`/${job.id}/report`)).body as unknown as {
      lines: { count: number; hash: string };
    };
    const texts = (await get(`/${job.id}/runs?all=true`)).text.trimEnd().split("\n");
    let hash = "00".repeat(32);
    for (const line of texts) {
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${hash}\n${line}\n`));
      hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    }
    expect(lines).toEqual({ count: texts.length, hash });
  });

  it("keeps the version of a stored policy that held at the start", async () => {
    await call(tenant.key, "PUT", "/v1/policies/gate", RECORDED);
    const first = await recheckJob(tenant.key, { policy: { name: "gate" }, ...ALL });
    await call(tenant.key, "PUT", "/v1/policies/gate", LOOSE);
    const second = await recheckJob(tenant.key, { policy: { name: "gate" }, ...ALL });
    const third = await recheckJob(tenant.key, { policy: { name: "gate", version: 1 }, ...ALL });
    const policy = (job: Job) => (job as unknown as { policy: { version: number } }).policy.version;
    expect([first, second, third].map(policy)).toEqual([1, 2, 1]);
    expect([first, second, third].map(({ summary }) => summary.same)).toEqual([true, false, true]);
    const report = (await get(`/${second.id}/report`)).body as Record<string, unknown>;
    expect(report.policy).toMatchObject({ name: "gate", version: 2, policy_id: "loose/v1" });
    expect(report.policy_source).toBeUndefined();
  });
});

describe("the report of one run that is stored", () => {
  const path = "/v1/principals/a/runs/r1/recheck?store=true";

  it("is evidence like a job's: under its hash, on the system log, by id and in the list", async () => {
    const answer = await call(tenant.key, "POST", `${path}&gate=proxy`, { policy: RECORDED });
    expect(answer.status).toBe(200);
    const { stored, gate } = answer.body as unknown as {
      stored: { id: string; report_hash: string; entry: { id: string } };
      gate: unknown;
    };
    expect(gate).toEqual({ name: "proxy", passed: true });
    const report = await get(`/${stored.id}/report?gate=strict`);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(report.text));
    const hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect(hash).toBe(stored.report_hash);
    expect(report.body).toMatchObject({
      run_id: "r1",
      principal: "a",
      policy_source: RECORDED,
      head: { size: 9 },
    });
    const log = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    const entries = log.body.entries as unknown as { id: string; action: Record<string, unknown> }[];
    expect(entries.find(({ id }) => id === stored.entry.id)?.action).toMatchObject({
      report_hash: hash,
      status: "complete",
      runs: 1,
      evaluated: 2,
    });
    expect(jobOf(await get(`/${stored.id}`))).toMatchObject({
      status: "complete",
      summary: { rechecked: 2 },
    });
    const text = await get(`/${stored.id}/report?format=text`);
    expect([text.status, text.text.startsWith("run r1 ")]).toEqual([200, true]);
    expect((await get(`/${stored.id}/report?format=junit&gate=proxy`)).text).toContain(
      '<testsuite name="a/r1"',
    );
    expect((await get(`/${stored.id}/report?format=markdown`)).text).toContain("Head: size ");
    const list = (await get("?limit=200")).body.rechecks as unknown as { id: string }[];
    expect(list.map(({ id }) => id)).toContain(stored.id);
    const narrow = await newKey(tenant, ["recheck"], ["b"]);
    expect((await get(`/${stored.id}/report`, narrow)).status).toBe(404);
  });

  it("is stored whatever the gate says, and once for an Idempotency-Key", async () => {
    const send = (policy: unknown, query = "") =>
      call(tenant.key, "POST", `${path}${query}`, { policy }, { "idempotency-key": "run-1" });
    const failed = await send(LOOSE, "&gate=strict");
    expect(failed.status).toBe(409);
    const first = (failed.body.report as unknown as { stored: { id: string } }).stored;
    expect((await get(`/${first.id}/report?gate=proxy`)).status).toBe(409);
    const again = await send(LOOSE);
    expect([again.status, again.body.stored]).toEqual([200, first]);
    expect((await send(RECORDED)).status).toBe(422);
  });
});

describe("a selection", () => {
  const evaluated = async (selection: Record<string, unknown>, policy: unknown = LOOSE) => {
    const { summary, without_runs, progress } = await recheckJob(tenant.key, { policy, selection });
    return [summary.totals.evaluated, summary.totals.different, progress.runs.total, without_runs] as const;
  };

  it("is by principal, tool, recorded identity and newest runs", async () => {
    expect(await evaluated({ principals: ["a"] })).toEqual([5, 1, 2, []]);
    expect(await evaluated({ tool: "wipe" })).toEqual([2, 2, 4, []]);
    expect(await evaluated({ policy_id: "older/v0" })).toEqual([1, 0, 4, []]);
    expect(await evaluated({ newest: 2 })).toEqual([2, 2, 2, []]);
    expect(await evaluated({ newest: 1, principals: ["a"] })).toEqual([3, 0, 1, []]);
  });

  it("is by the time of a run's first entry: from since on, before until", async () => {
    const list = await call(tenant.key, "GET", "/v1/principals/a/entries");
    const entries = list.body.entries as unknown as { run: string; recorded_at: string }[];
    const begin = entries.find(({ run }) => run === "r2")?.recorded_at;
    expect(await evaluated({ since: begin, principals: ["a"] })).toEqual([3, 0, 1, []]);
    expect(await evaluated({ until: begin, principals: ["a"] })).toEqual([2, 1, 1, []]);
    expect(await evaluated({ since: "2200-01-01T00:00:00Z", principals: ["a"] })).toEqual([0, 0, 0, ["a"]]);
  });

  it("that is empty passes no gate, and strict wants a run of everybody that it names", async () => {
    const empty = await recheckJob(tenant.key, {
      policy: RECORDED,
      selection: { since: "2200-01-01T00:00:00Z" },
    });
    expect(empty.status).toBe("complete");
    for (const gate of ["strict", "proxy"])
      expect((await get(`/${empty.id}/report?gate=${gate}`)).status).toBe(409);
    await call(tenant.key, "POST", "/v1/principals", { name: "quiet" });
    const named = await recheckJob(tenant.key, {
      policy: RECORDED,
      selection: { principals: ["quiet", "a"] },
    });
    expect(named.without_runs).toEqual(["quiet"]);
    expect((await get(`/${named.id}/report?gate=proxy`)).status).toBe(200);
    expect((await get(`/${named.id}/report?gate=strict`)).status).toBe(409);
  });

  it("counts what can't be re-checked by its reason, and strict does not pass it", async () => {
    const other = await newTenant();
    await sendRun(other, "a", "r1", [READ]);
    const job = await recheckJob(other.key, { policy: RECORDED, ...ALL });
    expect(job.summary).toMatchObject({
      totals: { not_recheckable: { total: 1, by_reason: { "spec-missing": 1 } } },
      complete: false,
    });
    expect((await call(other.key, "GET", `/v1/rechecks/${job.id}/report?gate=proxy`)).status).toBe(409);
  });

  it("is checked against the tools as they are now where it is asked for", async () => {
    const tools = [{ name: "read", side_effect: "destructive", input_schema: { type: "object" } }];
    const job = await recheckJob(tenant.key, {
      policy: RECORDED,
      specs: "current",
      tools,
      selection: { principals: ["a"] },
    });
    expect(job.summary.totals).toMatchObject({ evaluated: 5, same: 0, different: 5 });
    const report = (await get(`/${job.id}/report`)).body as { specs?: unknown };
    expect(report.specs).toMatchObject({ source: "current", tools: [{ name: "read" }] });
  });
});

describe("what is asked for wrongly", () => {
  it.each([
    ["[]", 400, ""],
    ["{", 400, ""],
    [{ policy: RECORDED }, 400, "/selection"],
    [{ ...ALL }, 422, "/policy"],
    [
      { policy: { rules: { side_effects: { read_only: "maybe" } } }, ...ALL },
      422,
      "/policy/rules/side_effects/read_only",
    ],
    [{ policy: RECORDED, selection: { principals: [] } }, 400, "/selection/principals"],
    [{ policy: RECORDED, selection: { newest: 0 } }, 400, "/selection/newest"],
    [{ policy: RECORDED, selection: { since: "yesterday" } }, 400, "/selection/since"],
    [{ policy: RECORDED, selection: { runs: ["r"] } }, 400, "/selection/runs"],
    [{ policy: RECORDED, ...ALL, budget: { runs: 0 } }, 400, "/budget/runs"],
    [{ policy: RECORDED, ...ALL, more: 1 }, 422, "/more"],
    [{ policy: { decisions: [] }, ...ALL }, 422, "/policy/decisions"],
    [{ policy: { name: "nowhere" }, ...ALL }, 404, "/policy"],
    [{ policy: RECORDED, selection: { principals: ["a", "nobody"] } }, 404, "/selection/principals/1"],
  ])("%j is refused with a pointer, and no job is made", async (body, status, pointer) => {
    const before = (await get("?limit=200")).body.rechecks as unknown as unknown[];
    const answer = await start(body);
    expect([answer.status, answer.body.pointer]).toEqual([status, pointer]);
    expect(((await get("?limit=200")).body.rechecks as unknown as unknown[]).length).toBe(before.length);
  });
});

describe("an Idempotency-Key", () => {
  it("gives the same job again, and refuses another request", async () => {
    const headers = { "idempotency-key": "ci-1" };
    const first = await recheckJob(tenant.key, { policy: STRICT, ...ALL }, headers);
    const again = await start({ policy: STRICT, ...ALL }, "", headers);
    expect([again.status, again.body.id]).toEqual([200, first.id]);
    expect((await start({ policy: LOOSE, ...ALL }, "", headers)).status).toBe(422);
    const other = await newKey(tenant, ["recheck"]);
    const theirs = await call(other, "POST", "/v1/rechecks?wait=30", { policy: STRICT, ...ALL }, headers);
    expect(theirs.body.id).not.toBe(first.id);
  });
});

describe("who may see a job", () => {
  it("is nobody of another tenant: a foreign job and none at all look the same", async () => {
    const job = await recheckJob(tenant.key, { policy: RECORDED, ...ALL });
    const stranger = await newTenant();
    const strip = ({ status, text }: { status: number; text: string }) => [
      status,
      text.replace(/"request_id":"[^"]*"/, ""),
    ];
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/report"],
      ["GET", "/runs"],
      ["POST", "/cancel"],
    ] as const) {
      const foreign = await call(stranger.key, method, `/v1/rechecks/${job.id}${path}`);
      const absent = await call(stranger.key, method, `/v1/rechecks/${"ab".repeat(16)}${path}`);
      expect(strip(foreign)).toEqual(strip(absent));
      expect(foreign.status).toBe(404);
    }
    expect((await call(stranger.key, "GET", "/v1/rechecks")).body.rechecks).toEqual([]);
    const named = (principals: string[]) =>
      call(stranger.key, "POST", "/v1/rechecks", { policy: RECORDED, selection: { principals } });
    expect(strip(await named(["a"]))).toEqual(strip(await named(["nobody"])));
  });

  it("is a key that may use every principal of it; a key of one selects that one", async () => {
    const narrow = await newKey(tenant, ["recheck"], ["a"]);
    const whole = await recheckJob(tenant.key, { policy: LOOSE, ...ALL });
    const ofB = await recheckJob(tenant.key, { policy: LOOSE, selection: { principals: ["b"] } });
    expect((await get(`/${whole.id}`, narrow)).status).toBe(404);
    expect((await get(`/${ofB.id}/report`, narrow)).status).toBe(404);
    const mine = await recheckJob(narrow, { policy: LOOSE, ...ALL });
    expect(mine.heads.map(({ principal }) => principal)).toEqual(["a"]);
    expect(mine.summary.totals.evaluated).toBe(5);
    const forbidden = await call(narrow, "POST", "/v1/rechecks", {
      policy: LOOSE,
      selection: { principals: ["b"] },
    });
    expect(forbidden.status).toBe(404);
    const seen = (await get("?limit=200", narrow)).body.rechecks as unknown as { id: string }[];
    expect(seen.map(({ id }) => id)).toContain(mine.id);
    expect(seen.map(({ id }) => id)).not.toContain(whole.id);
    expect((await get(`/${mine.id}`)).status).toBe(200);
  });
});

describe("the list", () => {
  it("is in pages, the newest first, and a cursor is another key's no more than another tenant's", async () => {
    const other = await newTenant();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await recheckJob(other.key, { policy: RECORDED, ...ALL })).id);
    const first = await call(other.key, "GET", "/v1/rechecks?limit=2");
    const rest = await call(other.key, "GET", `/v1/rechecks?limit=2&cursor=${first.body.next_cursor}`);
    const listed = [first, rest].flatMap(
      ({ body }) => body.rechecks as unknown as { id: string; status: string }[],
    );
    expect(listed.map(({ id }) => id)).toEqual(ids);
    expect(rest.body.next_cursor).toBeNull();
    expect((await get(`?cursor=${first.body.next_cursor}`)).status).toBe(400);
  });

  it("is bounded in what is at work at a time", async () => {
    const busy = await newTenant();
    await env.DB.batch(
      Array.from({ length: 20 }, (_, i) =>
        env.DB.prepare(
          "INSERT INTO rechecks (tenant, id, principals, policy, status, created_at) VALUES (?, ?, 'null', '{}', 'running', '')",
        ).bind(busy.id, `j${i}`),
      ),
    );
    const refused = await call(busy.key, "POST", "/v1/rechecks", { policy: RECORDED, ...ALL });
    expect([refused.status, refused.body.type]).toEqual([429, "urn:runseal:problem:too-many-rechecks"]);
    expect(refused.headers.get("retry-after")).toBe("5");
    await env.DB.prepare("UPDATE rechecks SET finished_at = 'now' WHERE tenant = ? AND id = 'j0'")
      .bind(busy.id)
      .run();
    expect(
      jobOf(await call(busy.key, "POST", "/v1/rechecks?wait=30", { policy: RECORDED, ...ALL })).status,
    ).toBe("complete");
  });
});
