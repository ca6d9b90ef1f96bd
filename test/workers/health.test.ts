import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { prometheusText } from "../../workers/routes/metrics.ts";
import { breakIndex, breakPuts, stopClock } from "../durable-objects/faults.ts";
import { TestLog } from "../durable-objects/support.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Health = Record<string, unknown> & { outbox: Record<string, unknown>; logs: Record<string, unknown> };

async function health(log: TestLog): Promise<Health> {
  return (await log.get("/health")).body as unknown as Health;
}

async function sums(of = tenant): Promise<Health> {
  return (await call(of.key, "GET", "/v1/health")).body as unknown as Health;
}

async function metric(name: string): Promise<number> {
  const { text } = await call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/metrics");
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

/** A new tenant whose own log has reported already. */
async function settledTenant(name: string): Promise<TestTenant> {
  const made = await newTenant(name);
  await new TestLog(made, "$system").alarm();
  return made;
}

/** The tenant's sums go up to the service's. */
async function report(of = tenant): Promise<void> {
  await runDurableObjectAlarm(env.TENANT_DIRECTORY.getByName(of.id));
}

describe("a principal's health", () => {
  it("of a log that nothing was sent to is all zeros", async () => {
    await call(tenant.key, "POST", "/v1/principals", { name: "silent" });
    expect(await health(new TestLog(tenant, "silent"))).toMatchObject({
      principal: "silent",
      status: "ok",
      accepted: 0,
      persisted: 0,
      archived: 0,
      mirrored_size: 0,
      lost: 0,
      outbox: { entries: 0, bytes: 0, oldest_age_seconds: null },
      bound: { entries: 1_000_000, bytes: 2 * 1024 ** 3, age_seconds: 86_400 },
      alarms: [],
    });
  });

  it("says what waits for D1 and since when, and that nothing does once D1 is back", async () => {
    const start = Date.now();
    const clock = stopClock(start);
    const log = new TestLog(tenant, "waiting");
    const fault = breakIndex();
    await log.append(entries(300));
    clock.set(start + 30_000);
    await log.append(entries(10));
    await log.alarm();
    clock.set(start + 61_500);
    const behind = await health(log);
    expect(behind).toMatchObject({
      status: "behind",
      accepted: 310,
      persisted: 0,
      archived: 256,
      mirrored_size: 310,
      lost: 0,
    });
    expect(behind.outbox).toEqual({ entries: 310, bytes: expect.any(Number), oldest_age_seconds: 61.5 });
    expect(Number(behind.outbox.bytes)).toBeGreaterThan(310 * 200);
    fault.mend();
    await log.alarm();
    expect(await health(log)).toMatchObject({
      status: "ok",
      accepted: 310,
      persisted: 310,
      outbox: { entries: 0, bytes: 0, oldest_age_seconds: null },
    });
  });

  it("says full at the bound, where appends are refused", async () => {
    const start = Date.now();
    const clock = stopClock(start);
    const log = new TestLog(tenant, "full");
    breakIndex();
    await log.append(entries(1));
    clock.set(start + 24 * 3_600_000);
    expect((await log.append(entries(1))).status).toBe(503);
    expect((await health(log)).status).toBe("full");
  });

  it("is answered by a log that is stopped, which can't tell what it lost", async () => {
    const log = new TestLog(tenant, "stopped");
    await log.append(entries(2));
    await log.inside(({ storage }) => storage.sql.exec("INSERT INTO alarms VALUES ('stopped', 'a test')"));
    await log.evict();
    expect(await health(log)).toMatchObject({
      status: "stopped",
      accepted: 2,
      lost: null,
      alarms: [{ name: "stopped", detail: "a test" }],
    });
  });

  it.each([
    ["the newest", "first_seq = (SELECT max(first_seq) FROM segments)", 3],
    ["the oldest that waits", "first_seq = 1", 2],
    ["all", "1", 9],
  ])("counts as lost what the head counts and nothing holds: %s", async (name, which, lost) => {
    const log = new TestLog(tenant, `holed-${name.replaceAll(" ", "-")}`);
    breakIndex();
    for (const count of [2, 4, 3]) await log.append(entries(count));
    expect((await health(log)).lost).toBe(0);
    await log.inside(({ storage }) => storage.sql.exec(`DELETE FROM segments WHERE ${which}`));
    expect((await health(log)).lost).toBe(lost);
  });

  it("is seen by a key that may read the principal alone", async () => {
    await call(tenant.key, "POST", "/v1/principals/mine/entries", entries(1));
    const narrow = await newKey(tenant, ["read"], ["mine"]);
    expect((await call(narrow, "GET", "/v1/principals/mine/health")).status).toBe(200);
    expect((await call(narrow, "GET", "/v1/principals/waiting/health")).status).toBe(404);
    expect((await call(narrow, "GET", "/v1/health")).status).toBe(403);
  });
});

describe("a tenant's health", () => {
  it("sums its logs as they last reported, each once", async () => {
    const own = await settledTenant("sums");
    const before = await sums(own);
    const logs = ["a", "b"].map((name) => new TestLog(own, name));
    for (const round of [1, 2]) {
      for (const log of logs) {
        await log.append(entries(5 * round));
        await log.alarm();
      }
    }
    const after = await sums(own);
    expect(Number(after.accepted) - Number(before.accepted)).toBe(30);
    expect(Number(after.persisted) - Number(before.persisted)).toBe(30);
    expect(Number(after.mirrored) - Number(before.mirrored)).toBe(30);
    expect(after).toMatchObject({ status: "ok", lost: 0, outbox: { oldest_age_seconds: null } });
    expect(after.stalest_report).toBeNull();
  });

  it("says what waits, since when, and how old the reports are, while D1 is away", async () => {
    const start = Date.now();
    const clock = stopClock(start);
    const own = await settledTenant("away");
    const log = new TestLog(own, "a");
    await log.append(entries(4));
    await log.alarm();
    const fault = breakIndex();
    clock.set(start + 10_000);
    await log.append(entries(3));
    await log.alarm();
    clock.set(start + 80_000);
    const behind = await sums(own);
    expect(behind).toMatchObject({
      status: "behind",
      outbox: { entries: 3, oldest_age_seconds: 70 },
      stalest_report: new Date(start + 10_000).toISOString(),
    });
    expect(behind.logs).toMatchObject({ behind: 1, stopped: 0 });
    fault.mend();
    await log.alarm();
    expect(await sums(own)).toMatchObject({ status: "ok", outbox: { entries: 0, oldest_age_seconds: null } });
    expect((await sums(own)).logs).toMatchObject({ behind: 0 });
  });

  it("is told by a log whose mirror is away, and of one that is stopped", async () => {
    const own = await settledTenant("mirrorless");
    const log = new TestLog(own, "a");
    await log.append(entries(1));
    const fault = breakPuts("fails", (key) => key.endsWith("/checkpoint"));
    await log.alarm();
    expect((await sums(own)).accepted).toBeGreaterThanOrEqual(1);
    fault.mend();
    await log.inside(({ storage }) => storage.sql.exec("INSERT INTO alarms VALUES ('stopped', 'a test')"));
    await log.evict();
    const stub = env.TENANT_DIRECTORY.getByName(own.id);
    const { principal, generation } = await log.identity();
    const counters = (await (await log.stub()).health()).alarms.length;
    expect(counters).toBe(1);
    await stub.report(`${principal}.${generation}`, {
      ...(await stub.totals()),
      logs: 1,
      stopped: 1,
    });
    expect(await sums(own)).toMatchObject({ status: "stopped", logs: { stopped: 1 } });
    // A generation that was sealed still has its entries, and is no longer in anybody's way.
    await stub.moveGeneration("a", 1);
    expect(await sums(own)).toMatchObject({ status: "ok", logs: { stopped: 0 } });
  });

  it("sees nothing of another tenant", async () => {
    const [a, b] = [await settledTenant("one"), await settledTenant("two")];
    const before = await sums(b);
    const log = new TestLog(a, "agent");
    await log.append(entries(7));
    await log.alarm();
    expect((await sums(b)).accepted).toBe(before.accepted);
  });
});

describe("the metrics", () => {
  it("are for the operator alone, and Prometheus reads them", async () => {
    expect((await call(null, "GET", "/metrics")).status).toBe(401);
    expect((await call(tenant.key, "GET", "/metrics")).status).toBe(401);
    const answer = await call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/metrics");
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const lines = answer.text.trimEnd().split("\n");
    for (let i = 0; i < lines.length; i += 3) {
      const name = /^# HELP (runseal_[a-z_]+) \S/.exec(lines[i] ?? "")?.[1];
      expect(lines[i + 1]).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge)$`));
      expect(lines[i + 2]).toMatch(new RegExp(`^${name} \\d+(\\.\\d+)?$`));
    }
    expect(answer.text).not.toContain(tenant.id);
  });

  it("sum over the tenants, some seconds later, each as it is now", async () => {
    const [a, b] = [await settledTenant("m1"), await settledTenant("m2")];
    for (const [of, count] of [
      [a, 3],
      [b, 4],
      [a, 2],
    ] as const) {
      const log = new TestLog(of, "agent");
      await log.append(entries(count));
      await log.alarm();
      await report(of);
    }
    const stub = env.TENANT_DIRECTORY.getByName("service");
    // Tenants of other tests report meanwhile: the sums are compared with the reports in one event.
    await runInDurableObject(stub, async (directory, { storage }) => {
      const rows = storage.sql.exec("SELECT member, accepted FROM counters").toArray();
      const accepted = new Map(rows.map((row) => [String(row.member), Number(row.accepted)]));
      const own = ["registry.0", "apikey.created"].length;
      expect([accepted.get(a.id), accepted.get(b.id)]).toEqual([5 + own, 4 + own]);
      const totals = directory.totals();
      expect(totals.accepted).toBe([...accepted.values()].reduce((sum, one) => sum + one, 0));
      expect(totals.members).toBe(accepted.size);
      const text = prometheusText(totals, Date.now());
      expect(text).toContain(`\nrunseal_entries_accepted_total ${totals.accepted}\n`);
      expect(text).toContain(`\nrunseal_tenants ${totals.members}\n`);
    });
    expect(await metric("runseal_entries_lost_total")).toBe(0);
    expect(await metric("runseal_outbox_bound_entries")).toBe(1_000_000);
  });
});

describe("readiness", () => {
  it("needs D1, R2 and a Durable Object, and liveness none of them", async () => {
    const ready = async () => (await call(null, "GET", "/readyz")).status;
    expect(await ready()).toBe(200);
    const fault = breakIndex();
    expect(await ready()).toBe(503);
    fault.mend();
    const head = vi.spyOn(env.MIRROR, "head").mockRejectedValue(new Error("head: internal error"));
    expect(await ready()).toBe(503);
    head.mockRestore();
    const spy = vi.spyOn(env.TENANT_DIRECTORY, "getByName").mockImplementation(() => {
      throw new Error("Network connection lost.");
    });
    const answer = await call(null, "GET", "/readyz");
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);
    expect((await call(null, "GET", "/healthz")).status).toBe(200);
    spy.mockRestore();
    expect(await ready()).toBe(200);
  });
});
