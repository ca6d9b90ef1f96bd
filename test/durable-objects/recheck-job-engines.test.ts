/**
 * Re-check jobs under policies that are no rules: the engine is opened again after each restart.
 */
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { contentHash } from "../../shared/recheck/hash.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import type { Job } from "../workers/rechecks-support.ts";
import { drive, jobOf, putSpecs, recheckJob, sendRun, stubOf } from "../workers/rechecks-support.ts";
import type { TestTenant } from "../workers/support.ts";
import { call, newTenant } from "../workers/support.ts";
import { breakRunPages } from "./faults.ts";

const RUNS = 16;
const READ = { tool: "read", outcome: "allow" };
const WIPE = { tool: "wipe", outcome: "deny" };

/** Reads are allowed as they were; what was denied is allowed to the even runs, which are those of the principal `a`. */
const CEDAR = `
  permit(principal, action == Action::"read", resource);
  permit(principal == Agent::"a", action == Action::"wipe", resource) when { context.args.n == 1 };`;
const MODULE = `export function decide(request) {
  const isEven = Number(request.run_id.slice(1)) % 2 === 0;
  const isAllowed = request.spec.name === "read" || (isEven && request.args.n === 1);
  return { outcome: isAllowed ? "allow" : "deny" };
}`;
const ALL = 'export const decide = () => ({ outcome: "allow" });';
const ENGINES = [
  ["cedar", CEDAR, /^runseal-cedar\/sha256:[0-9a-f]{64}$/],
  ["module", MODULE, /^runseal-module\/sha256:[0-9a-f]{64}$/],
] as const;

let tenant: TestTenant;

beforeAll(async () => {
  tenant = await newTenant();
  await putSpecs(tenant);
  for (let i = 0; i < RUNS; i++) await sendRun(tenant, i % 2 === 0 ? "a" : "b", `r${i}`, [READ, WIPE]);
  // The index holds them all.
  await call(tenant.key, "GET", "/v1/entries?limit=1");
});
afterEach(() => vi.restoreAllMocks());

const start = async (policy: unknown): Promise<Job> =>
  jobOf(await call(tenant.key, "POST", "/v1/rechecks", { policy, selection: {} }));
const report = async (id: string, query = "") =>
  (await call(tenant.key, "GET", `/v1/rechecks/${id}/report${query}`)).body as Record<string, unknown>;

/** What a report says, apart from what differs between two jobs. */
async function findings(id: string): Promise<unknown> {
  const { id: _id, created_at: _created, finished_at: _finished, ...rest } = await report(id);
  return rest;
}

/** What the two policies above have to come to. */
const EXPECTED = {
  status: "complete",
  progress: { logs: 2, runs: { done: RUNS, total: RUNS }, evaluations: 2 * RUNS },
  summary: {
    runs: { rechecked: RUNS, without_evaluations: 0, failed: 0 },
    totals: { evaluated: 2 * RUNS, same: 1.5 * RUNS, different: RUNS / 2, not_recheckable: { total: 0 } },
    new_allows: {
      total: RUNS / 2,
      groups: [{ recorded: "deny", principal: "a", tool: "wipe", count: RUNS / 2 }],
    },
    complete: true,
  },
};

describe.each(ENGINES)("a job under a policy of the engine %s", (engine, source, identity) => {
  it("asks it about every run, and names it in the report, source and all", async () => {
    const job = await recheckJob(tenant.key, { policy: { [engine]: source }, selection: {} });
    expect(job).toMatchObject(EXPECTED);
    const { policy, policy_source: kept } = await report(job.id);
    expect(policy).toMatchObject({
      engine,
      policy_id: expect.stringMatching(identity),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(kept).toMatchObject({ [engine]: source });
  });

  it("comes to the same, to the letter, whenever its memory is taken away", async () => {
    const whole = await recheckJob(tenant.key, { policy: { [engine]: source }, selection: {} });
    const { id } = await start({ [engine]: source });
    for (let i = 0; i < 10; i++) {
      await scheduler.wait(2 * i);
      await abortAllDurableObjects();
    }
    expect(await drive(tenant, id)).toMatchObject(EXPECTED);
    expect(await findings(id)).toEqual(await findings(whole.id));
  });

  it("opens it again for each slice that failed in between, and counts nothing twice", async () => {
    const whole = await recheckJob(tenant.key, { policy: { [engine]: source }, selection: {} });
    const original = RecheckSummary.prototype.add;
    let calls = 0;
    vi.spyOn(RecheckSummary.prototype, "add").mockImplementation(function (this: RecheckSummary, run) {
      original.call(this, run);
      if (++calls % 3 === 2) throw new Error("Network connection lost.");
    });
    const { id } = await start({ [engine]: source });
    await drive(tenant, id);
    expect(calls).toBeGreaterThan(RUNS);
    expect(await findings(id)).toEqual(await findings(whole.id));
  });

  it("goes on under the version that it began with, whatever is stored under the name meanwhile", async () => {
    const path = `/v1/policies/${engine}-gate`;
    expect((await call(tenant.key, "PUT", path, { [engine]: source })).status).toBe(201);
    const original = RecheckSummary.prototype.add;
    let calls = 0;
    const spy = vi.spyOn(RecheckSummary.prototype, "add").mockImplementation(function (
      this: RecheckSummary,
      run,
    ) {
      if (++calls > 2) throw new Error("Network connection lost.");
      original.call(this, run);
    });
    const { id } = await start({ name: `${engine}-gate` });
    await runDurableObjectAlarm(stubOf(tenant, id));
    const none =
      engine === "cedar" ? "forbid(principal, action, resource);" : "export const decide = () => null;";
    expect((await call(tenant.key, "PUT", path, { [engine]: none })).status).toBe(201);
    spy.mockRestore();
    await evictDurableObject(stubOf(tenant, id));
    expect(await drive(tenant, id)).toMatchObject(EXPECTED);
    expect((await report(id)).policy).toMatchObject({ engine, name: `${engine}-gate`, version: 1 });
  });

  it("goes on under the version that it began with where D1 holds another in its place", async () => {
    const path = `/v1/policies/${engine}-swapped`;
    const put = await call(tenant.key, "PUT", path, { [engine]: source });
    const { mend } = breakRunPages();
    const { id } = await start({ name: `${engine}-swapped` });
    // With the same identity, so that nothing but the hash tells.
    const none = engine === "cedar" ? "permit(principal, action, resource);" : ALL;
    const other = canonicalJson(JSON.stringify({ [engine]: none, policy_id: put.body.policy_id }));
    await env.DB.prepare("UPDATE policies SET source = ?, hash = ? WHERE tenant = ? AND name = ?")
      .bind(other, contentHash(pureCrypto, other), tenant.id, `${engine}-swapped`)
      .run();
    mend();
    expect(await drive(tenant, id)).toMatchObject(EXPECTED);
    expect((await report(id)).policy).toMatchObject({ engine, hash: put.body.hash });
  });
});

describe.each([
  ["cedar", `permit(principal, action, resource) when { context.args.n == 0 || context.args.missing == 1 };`],
  [
    "module",
    `export function decide(request) { if (request.args.n === 1) throw new Error("no"); return { outcome: "allow" }; }`,
  ],
])("a job under a policy of the engine %s that fails for some calls", (engine, source) => {
  it("has them as differences without a decision: neither denials nor failed runs, and no gate passes", async () => {
    const job = await recheckJob(tenant.key, { policy: { [engine]: source }, selection: {} });
    expect(job).toMatchObject({
      status: "complete",
      summary: {
        runs: { rechecked: RUNS, failed: 0 },
        totals: { same: RUNS, different: RUNS },
        transitions: expect.arrayContaining([
          expect.objectContaining({ recorded: "deny", rechecked: "none", different: RUNS }),
        ]),
      },
    });
    const gated = await call(tenant.key, "GET", `/v1/rechecks/${job.id}/report?gate=proxy`);
    expect(gated.status).toBe(409);
  });
});

it("a module that does not load for once, though it did before, does not end its job", async () => {
  const { mend } = breakRunPages();
  const { id } = await start({ module: MODULE });
  mend();
  const check = () => Promise.reject(new Error("Network connection lost."));
  const loads = vi
    .spyOn(env.MODULES as WorkerLoader, "get")
    .mockImplementationOnce(() => ({ getEntrypoint: () => ({ check }) }) as never);
  expect(await drive(tenant, id)).toMatchObject(EXPECTED);
  expect(loads).toHaveBeenCalledTimes(2);
});

it.each([
  ["cedar", "permit(principal"],
  ["module", "export const nothing = 1;"],
])("a policy of the engine %s that can't be used starts no job", async (engine, source) => {
  const jobs = async () => (await call(tenant.key, "GET", "/v1/rechecks?limit=200")).text;
  const before = await jobs();
  const answer = await call(tenant.key, "POST", "/v1/rechecks", {
    policy: { [engine]: source },
    selection: {},
  });
  expect([answer.status, answer.body.pointer]).toEqual([422, `/policy/${engine}`]);
  expect(await jobs()).toBe(before);
});
