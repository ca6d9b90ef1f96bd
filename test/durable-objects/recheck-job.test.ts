import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PrincipalLog } from "../../durable-objects/principal-log/principal-log.ts";
import { unavailable } from "../../durable-objects/principal-log/types.ts";
import type { JobState } from "../../durable-objects/recheck-job/storage.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { contentHash } from "../../shared/recheck/hash.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import type { Job } from "../workers/rechecks-support.ts";
import {
  drive,
  insideJob,
  jobOf,
  LOOSE,
  putSpecs,
  RECORDED,
  recheckJob,
  runEntries,
  sendRun,
  specHash,
  stubOf,
} from "../workers/rechecks-support.ts";
import type { TestTenant } from "../workers/support.ts";
import { call, newTenant } from "../workers/support.ts";
import { breakGets, breakPuts, breakRunPages } from "./faults.ts";
import { clearIndex } from "./index-copy.ts";

const READ = { tool: "read", outcome: "allow" };
const WIPE = { tool: "wipe", outcome: "deny" };

afterEach(() => vi.restoreAllMocks());

/** A tenant with runs of two principals, each with two evaluations. */
async function withRuns(count: number): Promise<TestTenant> {
  const tenant = await newTenant();
  await putSpecs(tenant);
  for (let i = 0; i < count; i++) await sendRun(tenant, i % 2 === 0 ? "a" : "b", `r${i}`, [READ, WIPE]);
  // The index holds them all.
  await call(tenant.key, "GET", "/v1/entries?limit=1");
  return tenant;
}

const start = async (tenant: TestTenant, body: Record<string, unknown> = {}): Promise<Job> =>
  jobOf(await call(tenant.key, "POST", "/v1/rechecks", { policy: LOOSE, selection: {}, ...body }));
const get = (tenant: TestTenant, id: string, path = "") =>
  call(tenant.key, "GET", `/v1/rechecks/${id}${path}`);

/** Changes the state of a job as a crash could have left it. */
const change = (tenant: TestTenant, id: string, parts: Partial<JobState>) =>
  insideJob(tenant, id, ({ storage }) => {
    const [row] = storage.sql.exec("SELECT state FROM job").toArray();
    const state = { ...(JSON.parse(String(row?.state)) as JobState), ...parts };
    storage.sql.exec("UPDATE job SET state = ?", JSON.stringify(state));
  });

/** What a report says, apart from what differs between two jobs. */
async function findings(tenant: TestTenant, id: string): Promise<unknown> {
  const { body } = await get(tenant, id, "/report");
  const { id: _id, created_at: _created, finished_at: _finished, ...rest } = body as Record<string, unknown>;
  return rest;
}

/** A job that waits with its bounds fixed, and cannot read runs until `mend`. */
async function waiting(
  tenant: TestTenant,
  body: Record<string, unknown> = {},
): Promise<{ job: Job; mend: () => void }> {
  const { mend } = breakRunPages();
  const job = await start(tenant, body);
  expect(job.status).toBe("running");
  return { job, mend };
}

describe("a job that is disturbed", () => {
  it("comes to the same, to the letter, whenever its memory is taken away", async () => {
    const tenant = await withRuns(24);
    const whole = await recheckJob(tenant.key, { policy: LOOSE, selection: {} });
    const { id } = await start(tenant);
    for (let i = 0; i < 12; i++) {
      await scheduler.wait(3 * i);
      await abortAllDurableObjects();
    }
    await drive(tenant, id);
    expect(await findings(tenant, id)).toEqual(await findings(tenant, whole.id));
    expect(whole.progress).toMatchObject({ runs: { done: 24, total: 24 }, evaluations: 48 });
  });

  it("counts nothing twice where a run fails in between, and tries it again", async () => {
    const tenant = await withRuns(8);
    const whole = await recheckJob(tenant.key, { policy: LOOSE, selection: {} });
    const original = RecheckSummary.prototype.add;
    let calls = 0;
    vi.spyOn(RecheckSummary.prototype, "add").mockImplementation(function (this: RecheckSummary, run) {
      // After it was counted, in memory: before it is stored.
      original.call(this, run);
      if (++calls % 3 === 2) throw new Error("Network connection lost.");
    });
    const { id } = await start(tenant);
    await drive(tenant, id);
    expect(calls).toBeGreaterThan(8);
    expect(await findings(tenant, id)).toEqual(await findings(tenant, whole.id));
  });

  it("goes on once somebody asks for it where its alarm was lost", async () => {
    const tenant = await withRuns(4);
    const { job, mend } = await waiting(tenant);
    await insideJob(tenant, job.id, ({ storage }) => storage.deleteAlarm());
    await evictDurableObject(stubOf(tenant, job.id));
    mend();
    const ended = jobOf(await get(tenant, job.id, "?wait=30"));
    expect([ended.status, ended.progress.runs.done]).toEqual(["complete", 4]);
  });

  it("waits for a D1 that is away, and then has everything", async () => {
    const tenant = await withRuns(4);
    const { job, mend } = await waiting(tenant);
    for (let i = 0; i < 3; i++) await runDurableObjectAlarm(stubOf(tenant, job.id));
    const stuck = jobOf(await get(tenant, job.id));
    expect([stuck.status, stuck.progress.runs.done, stuck.report_hash]).toEqual(["running", 0, null]);
    expect((await get(tenant, job.id, "/report")).body.type).toBe("urn:runseal:problem:recheck-unfinished");
    mend();
    expect(await drive(tenant, job.id)).toMatchObject({
      status: "complete",
      summary: { rechecked: 8, complete: true },
    });
  });

  it("ends as failed where D1 never comes back, with a report that passes no gate", async () => {
    const tenant = await withRuns(2);
    const { job, mend } = await waiting(tenant, { policy: RECORDED });
    await change(tenant, job.id, { attempts: 19 });
    await runDurableObjectAlarm(stubOf(tenant, job.id));
    mend();
    const ended = await drive(tenant, job.id);
    expect([ended.status, ended.reason]).toEqual(["failed", "unavailable"]);
    expect((await get(tenant, job.id, "/report?gate=proxy")).status).toBe(409);
  });
});

/** What somebody who writes to D1 makes of the row of version 1 of the policy `gate`. */
async function setPolicy(tenant: TestTenant, columns: Readonly<Record<string, string>>): Promise<void> {
  const names = Object.keys(columns);
  const { meta } = await env.DB.prepare(
    `UPDATE policies SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE tenant = ? AND name = 'gate'`,
  )
    .bind(...Object.values(columns), tenant.id)
    .run();
  expect(meta.changes).toBe(1);
}
const removePolicy = (tenant: TestTenant) =>
  env.DB.prepare("DELETE FROM policies WHERE tenant = ?").bind(tenant.id).run();
const isRebuilding = async (tenant: TestTenant) =>
  (await env.TENANT_DIRECTORY.getByName(tenant.id).indexView()).rebuilding;

/** Denies what `LOOSE` allows, under the same identity. */
const SWAPPED = canonicalJson(JSON.stringify({ rules: { ...RECORDED.rules, policy_id: "loose/v1" } }));
const swapped = (source: string) => ({ source, hash: contentHash(pureCrypto, source) });

describe("a job under a stored policy", () => {
  it.each([
    ["another content with its hash and the same identity", swapped(SWAPPED)],
    ["another content and another identity", { ...swapped(SWAPPED), policy_id: "other/v1" }],
    ["another content under the old hash", { source: SWAPPED }],
    ["another hash", { hash: "ab".repeat(32) }],
    ["no policy", swapped('{"rules":{"side_effects":{"read_only":"maybe"}}}')],
    ["no JSON", { source: "{", hash: contentHash(pureCrypto, "1") }],
    ["a row that is not shown", { stored: "0" }],
    ["no row", null],
  ])("asks the one that it settled on where D1 holds %s", async (_what, columns) => {
    const tenant = await withRuns(2);
    const { body } = await call(tenant.key, "PUT", "/v1/policies/gate", LOOSE);
    const { job, mend } = await waiting(tenant, { policy: { name: "gate" } });
    if (columns === null) await removePolicy(tenant);
    else await setPolicy(tenant, columns);
    mend();
    expect(await drive(tenant, job.id)).toMatchObject({
      status: "complete",
      summary: { totals: { same: 2, different: 2 }, complete: true },
    });
    const { text } = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    expect(text).toContain(`"policy_hash":"${body.hash}"`);
  });

  const copyOf = (tenant: TestTenant) => `t/${tenant.id}/policies/gate/1`;
  const swapCopy = (tenant: TestTenant) =>
    env.MIRROR.put(
      copyOf(tenant),
      JSON.stringify({ created_at: "2026-01-01T00:00:00.000Z", source: SWAPPED }),
    );
  const removeCopy = (tenant: TestTenant) => env.MIRROR.delete(copyOf(tenant));
  const swapPolicy = (tenant: TestTenant) => setPolicy(tenant, swapped(SWAPPED));

  it.each([
    ["holds another and R2 none", "index-conflict", swapPolicy, removeCopy],
    ["holds another and R2 too", "index-conflict", swapPolicy, swapCopy],
    ["lost it and R2 too", "index-rebuilding", removePolicy, removeCopy],
    ["lost it and R2 holds another", "index-rebuilding", removePolicy, swapCopy],
  ] as const)("waits, and fails in the end, where D1 %s", async (_what, code, spoilRow, spoilCopy) => {
    const tenant = await withRuns(2);
    await call(tenant.key, "PUT", "/v1/policies/gate", RECORDED);
    const { job, mend } = await waiting(tenant, { policy: { name: "gate" } });
    await spoilRow(tenant);
    await spoilCopy(tenant);
    mend();
    await runDurableObjectAlarm(stubOf(tenant, job.id));
    expect(jobOf(await get(tenant, job.id)).status).toBe("running");
    await change(tenant, job.id, { attempts: 19 });
    const ended = await drive(tenant, job.id);
    expect([ended.status, ended.reason, ended.progress.runs.done]).toEqual(["failed", code, 0]);
    for (const gate of ["strict", "proxy"]) {
      expect((await get(tenant, job.id, `/report?gate=${gate}`)).status).toBe(409);
    }
  });

  it("waits for R2 where D1 lost it", async () => {
    const tenant = await withRuns(2);
    await call(tenant.key, "PUT", "/v1/policies/gate", RECORDED);
    const { job, mend } = await waiting(tenant, { policy: { name: "gate" } });
    await removePolicy(tenant);
    mend();
    const broken = breakGets((key) => key.includes("/policies/"));
    await runDurableObjectAlarm(stubOf(tenant, job.id));
    expect(jobOf(await get(tenant, job.id)).status).toBe("running");
    expect(broken.count()).toBeGreaterThan(0);
    broken.mend();
    expect((await drive(tenant, job.id)).status).toBe("complete");
  });

  it("comes to the same where all of D1 is lost, and has it filled again", async () => {
    const tenant = await withRuns(6);
    await call(tenant.key, "PUT", "/v1/policies/gate", LOOSE);
    const whole = await recheckJob(tenant.key, { policy: { name: "gate" }, selection: {} });
    const { job, mend } = await waiting(tenant, { policy: { name: "gate" } });
    await clearIndex();
    await env.DB.batch(
      ["policies", "tool_specs", "rechecks"].map((table) => env.DB.prepare(`DELETE FROM ${table}`)),
    );
    mend();
    await drive(tenant, job.id);
    expect(await findings(tenant, job.id)).toEqual(await findings(tenant, whole.id));
    expect(await isRebuilding(tenant)).toBe(true);
    for (let i = 0; i < 10 && (await isRebuilding(tenant)); i++)
      await call(tenant.key, "GET", "/v1/policies");
    expect((await call(tenant.key, "GET", "/v1/policies/gate")).body.policy).toEqual(LOOSE);
  });
});

describe("what a job covers", () => {
  it("is fixed at its start: what is appended later is not in it", async () => {
    const tenant = await withRuns(2);
    const { job, mend } = await waiting(tenant);
    mend();
    await call(tenant.key, "POST", "/v1/principals/a/entries", [
      { ...runEntries("r0", [READ, READ, READ])[3], id: "late" },
      ...runEntries("late", [WIPE]),
    ]);
    await sendRun(tenant, "c", "r9", [READ]);
    const ended = await drive(tenant, job.id);
    expect(ended.progress).toMatchObject({ logs: 2, runs: { done: 2, total: 2 }, evaluations: 4 });
    expect(ended.heads.map(({ principal, size }) => [principal, size])).toEqual([
      ["a", 4],
      ["b", 4],
    ]);
  });

  it("has a run that can't be read as a failed run, and no gate passes without it", async () => {
    const tenant = await withRuns(4);
    await env.DB.prepare("UPDATE entries SET leaf = 'AAAA' WHERE tenant = ? AND run = 'r2' AND seq > 5")
      .bind(tenant.id)
      .run();
    const job = await recheckJob(tenant.key, { policy: RECORDED, selection: {} });
    expect(job).toMatchObject({
      status: "complete",
      progress: { runs: { done: 4, total: 4 } },
      summary: { rechecked: 6, same: true, complete: false, runs: { rechecked: 3, failed: 1 } },
    });
    expect(job.summary.failed_runs.runs).toEqual([{ principal: "a", run: "r2", code: expect.any(String) }]);
    for (const gate of ["strict", "proxy"]) {
      expect((await get(tenant, job.id, `/report?gate=${gate}`)).status).toBe(409);
    }
    expect((await get(tenant, job.id, "/runs")).text).toContain('"failed":true');
  });

  it("has runs as failed whose spec D1 and R2 hold nowhere as it was, and no gate passes", async () => {
    const tenant = await withRuns(2);
    const { job, mend } = await waiting(tenant, { policy: RECORDED });
    await env.DB.prepare("UPDATE tool_specs SET spec = '{}' WHERE tenant = ? AND hash = ?")
      .bind(tenant.id, specHash("wipe"))
      .run();
    await env.MIRROR.delete(`t/${tenant.id}/tools/${specHash("wipe")}`);
    mend();
    const ended = await drive(tenant, job.id);
    expect(ended.summary.failed_runs.runs.map(({ run, code }) => [run, code])).toEqual([
      ["r0", "index-conflict"],
      ["r1", "index-conflict"],
    ]);
    expect((await get(tenant, job.id, "/report?gate=proxy")).status).toBe(409);
  });

  it("has a run that failed five times as a failed run, and goes on after it", async () => {
    const tenant = await withRuns(3);
    const original = RecheckSummary.prototype.add;
    let failures = 0;
    vi.spyOn(RecheckSummary.prototype, "add").mockImplementation(function (this: RecheckSummary, run) {
      if (run.report.runId === "r1") {
        failures++;
        throw new Error("Network connection lost.");
      }
      original.call(this, run);
    });
    const { id } = await start(tenant);
    const ended = await drive(tenant, id);
    expect(ended.summary).toMatchObject({ runs: { rechecked: 2, failed: 1 }, complete: false });
    expect(ended.summary.failed_runs.runs).toEqual([{ principal: "b", run: "r1", code: "unavailable" }]);
    // Five slices that begin with it, and perhaps the one that came to it after another run.
    expect([5, 6]).toContain(failures);
  });

  it("has a run at which the object died again and again as a failed run, without trying it once more", async () => {
    const tenant = await withRuns(3);
    const { job, mend } = await waiting(tenant);
    await change(tenant, job.id, { tries: 5 });
    mend();
    const ended = await drive(tenant, job.id);
    expect(ended.summary.failed_runs.runs).toEqual([{ principal: "a", run: "r0", code: "not-finished" }]);
    expect(ended.summary).toMatchObject({ runs: { rechecked: 2, failed: 1 } });
  });

  it("names a log that is stopped as failed", async () => {
    const tenant = await withRuns(2);
    const original = PrincipalLog.prototype.head;
    vi.spyOn(PrincipalLog.prototype, "head").mockImplementation(async function (
      this: PrincipalLog,
      log,
      epoch,
    ) {
      if (log.name === "a") return unavailable("log-stopped", "stopped", 3600);
      return original.call(this, log, epoch);
    });
    const { id } = await start(tenant);
    const ended = await drive(tenant, id);
    expect(ended.summary.failed_runs.runs).toEqual([{ principal: "a", run: "", code: "log-stopped" }]);
    expect(ended.summary).toMatchObject({ runs: { rechecked: 1, failed: 1 }, complete: false });
  });
});

describe("a budget", () => {
  it.each([
    [{ runs: 2 }, "2 runs", 2],
    [{ evaluations: 3 }, "3 evaluations", 2],
  ])("of %j ends the job as budget-exhausted, never as complete", async (budget, reason, done) => {
    const tenant = await withRuns(4);
    const job = await recheckJob(tenant.key, { policy: RECORDED, selection: {}, budget });
    expect(job).toMatchObject({
      status: "budget-exhausted",
      reason,
      progress: { runs: { done, total: 4 } },
      summary: { same: true, rechecked: 2 * done },
    });
    for (const gate of ["strict", "proxy"]) {
      expect((await get(tenant, job.id, `/report?gate=${gate}`)).status).toBe(409);
    }
    const entries = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    expect(entries.text).toContain('"status":"budget-exhausted"');
  });

  it("of seconds ends it as well, and one that is just enough does not", async () => {
    const tenant = await withRuns(4);
    const { job, mend } = await waiting(tenant, { budget: { seconds: 5 } });
    await change(tenant, job.id, { spentMs: 5000 });
    mend();
    expect(await drive(tenant, job.id)).toMatchObject({ status: "budget-exhausted", reason: "5 seconds" });
    const enough = await recheckJob(tenant.key, {
      policy: RECORDED,
      selection: {},
      budget: { runs: 4, evaluations: 8 },
    });
    expect(enough.status).toBe("complete");
  });
});

describe("a job that is cancelled", () => {
  it("ends where it is, with what it came to as a report; again changes nothing", async () => {
    const tenant = await withRuns(4);
    const { job, mend } = await waiting(tenant);
    const asked = await call(tenant.key, "POST", `/v1/rechecks/${job.id}/cancel`);
    expect(asked.status).toBe(202);
    mend();
    const ended = await drive(tenant, job.id);
    expect(ended).toMatchObject({ status: "cancelled", progress: { runs: { done: 0, total: 4 } } });
    const report = await get(tenant, job.id, "/report");
    expect(report.body).toMatchObject({ status: "cancelled", runs: { done: 0, total: 4 } });
    const again = await call(tenant.key, "POST", `/v1/rechecks/${job.id}/cancel`);
    expect([again.status, again.body.report_hash]).toEqual([200, ended.report_hash]);
    const list = await call(tenant.key, "GET", "/v1/rechecks");
    expect(list.body.rechecks).toEqual([expect.objectContaining({ id: job.id })]);
  });

  it("and was complete stays complete", async () => {
    const tenant = await withRuns(2);
    const job = await recheckJob(tenant.key, { policy: RECORDED, selection: {} });
    const answer = await call(tenant.key, "POST", `/v1/rechecks/${job.id}/cancel`);
    expect([answer.status, answer.body.status]).toEqual([200, "complete"]);
  });
});

describe("a report", () => {
  it.each(["fails", "fails but persisted"] as const)(
    "is not final while R2 %s, and the same afterwards",
    async (fault) => {
      const tenant = await withRuns(2);
      const broken = breakPuts(fault, (key) => key.includes("/recheck/"));
      const { id } = await start(tenant);
      for (let i = 0; i < 8; i++) await runDurableObjectAlarm(stubOf(tenant, id));
      const stuck = jobOf(await get(tenant, id));
      expect([stuck.status, stuck.report_hash, stuck.entry]).toEqual(["finishing", null, null]);
      const before = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
      expect(before.body.entries).toEqual([]);
      expect(broken.count()).toBeGreaterThan(0);
      broken.mend();
      const ended = await drive(tenant, id);
      expect((await get(tenant, id, "/report")).status).toBe(200);
      const { objects } = await env.MIRROR.list({ prefix: `t/${tenant.id}/recheck/` });
      expect(objects.map(({ key }) => key)).toEqual([`t/${tenant.id}/recheck/${ended.report_hash}`]);
    },
  );

  it("is not served before it is on the system log, and is there once", async () => {
    const tenant = await withRuns(2);
    const original = PrincipalLog.prototype.append;
    let appends = 0;
    vi.spyOn(PrincipalLog.prototype, "append").mockImplementation(async function (
      this: PrincipalLog,
      request,
    ) {
      if (request.log.name !== "$system") return original.call(this, request);
      if (++appends <= 2) return unavailable("storage-failed", "no");
      // The third is stored, and its answer gets lost.
      const outcome = await original.call(this, request);
      return appends === 3 ? unavailable("storage-failed", "no") : outcome;
    });
    const { id } = await start(tenant);
    await drive(tenant, id, () => appends >= 2);
    expect((await get(tenant, id, "/report")).body.type).toBe("urn:runseal:problem:recheck-unfinished");
    const ended = await drive(tenant, id);
    expect(appends).toBe(4);
    const log = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=policy.rechecked");
    const entries = log.body.entries as unknown as { action: { report_hash: string } }[];
    expect(entries.map(({ action }) => action.report_hash)).toEqual([ended.report_hash]);
  });

  it("that R2 holds altered is not served", async () => {
    const tenant = await withRuns(2);
    const job = await recheckJob(tenant.key, { policy: RECORDED, selection: {} });
    const key = `t/${tenant.id}/recheck/${job.report_hash}`;
    const text = (await (await env.MIRROR.get(key))?.text()) ?? "";
    await env.MIRROR.put(key, text.replace('"complete":true', '"complete":false'));
    const answer = await get(tenant, job.id, "/report");
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);
  });
});

describe("an id that nobody was given", () => {
  it("leaves nothing behind in the object that it names", async () => {
    const tenant = await newTenant();
    const id = "cd".repeat(16);
    expect((await get(tenant, id)).status).toBe(404);
    expect(
      await insideJob(tenant, id, ({ storage }) =>
        storage.sql.exec("SELECT * FROM sqlite_master WHERE name = 'job'").toArray(),
      ),
    ).toEqual([]);
    expect(await insideJob(tenant, id, ({ storage }) => storage.getAlarm())).toBeNull();
  });
});
