import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { INDEXED_HEAD } from "../../durable-objects/principal-log/indexed-head.ts";
import { FLUSH_PACE } from "../../durable-objects/principal-log/outbox.ts";
import { REFILL_LIMITS } from "../../durable-objects/principal-log/refill.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import { forgetRegistry } from "../../workers/logs/registry.ts";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakGets, breakIndex, breakPuts } from "./faults.ts";
import { copyLog } from "./log-copy.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
const limits = { ...REFILL_LIMITS };
const { waitMs } = INDEXED_HEAD;
const flushPace = { ...FLUSH_PACE };
beforeEach(async () => {
  MIRROR_PACE.minPutInterval = 20;
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(REFILL_LIMITS, limits);
  INDEXED_HEAD.waitMs = waitMs;
  Object.assign(FLUSH_PACE, flushPace);
});

const isCheckpoint = (key: string) => key.endsWith("/checkpoint");

/**
 * A log of 10 entries under a mirrored head and 20 after it, which a reader has had flushed to D1 while R2 took no head; and
 * what sets its storage back to the 10.
 */
async function setBackBehindD1(name: string): Promise<{ log: TestLog; setBack: () => Promise<void> }> {
  const log = new TestLog(tenant, name);
  await log.append(entries(10), "?wait=mirrored");
  const restore = await copyLog(log);
  const broken = breakPuts("fails", isCheckpoint);
  await log.append(entries(20));
  expect((await log.get("/entries?limit=1")).status).toBe(200);
  const setBack = async () => {
    await restore();
    broken.mend();
  };
  return { log, setBack };
}

/** The same with 320 after it, whose refill was begun and is not through when the object stops. */
async function begunRefill(name: string): Promise<TestLog> {
  const { log, setBack } = await setBackBehindD1(name);
  REFILL_LIMITS.perCall = 1;
  await log.append(entries(300));
  await log.get("/entries?limit=1");
  await setBack();
  expect(problemOf(await log.get("/head"))).toBe("log-refilling");
  await log.evict();
  return log;
}

const changeRow = (log: TestLog, set: string, ...values: unknown[]) =>
  env.DB.prepare(`UPDATE logs SET ${set} WHERE name = ? AND tenant = ?`)
    .bind(...values, log.name, tenant.id)
    .run();

async function isStopped(log: TestLog, kind: string): Promise<void> {
  const answer = await log.append(entry());
  expect([answer.status, problemOf(answer)]).toEqual([503, "log-stopped"]);
  const standing = await (await log.stub()).standing(await log.identity(), 0);
  expect(standing).toMatchObject({
    state: "stopped",
    stop: { kind, detail: expect.stringMatching(/^D1, or .* holds a head/) },
  });
}

describe("a log that was set back behind the signed head that D1 holds", () => {
  it("takes back what it acknowledged, where the mirror is no further than it", async () => {
    const { log, setBack } = await setBackBehindD1("behind");
    const sent = entry({ id: "sent-before" });
    const first = await log.append(sent);
    await log.get("/entries?limit=1");
    await setBack();
    const again = await log.append(sent);
    expect([again.status, resultsOf(again)]).toEqual([200, [{ ...resultsOf(first)[0], status: "seen" }]]);
    expect(await log.check()).toMatchObject({ size: 31 });
  });

  it("goes on with that, and with nothing else, where D1 goes away in between", async () => {
    const log = await begunRefill("steps");
    const away = breakIndex();
    expect((await log.append(entry())).status).toBe(503);
    away.mend();
    await vi.waitFor(async () => {
      await log.alarm();
      expect((await log.progress()).size).toBe(330);
    }, 10_000);
    expect(await log.check()).toMatchObject({ size: 330 });
  });

  it("keeps to the head that it began with, though it is gone from D1 since: what it can't take back stops it", async () => {
    const log = await begunRefill("vanished");
    for (const table of ["entries", "runs", "logs"]) await env.DB.prepare(`DELETE FROM ${table}`).run();
    await vi.waitFor(async () => {
      await log.alarm();
      await isStopped(log, "ahead");
    }, 10_000);
  });

  it.each(["D1's", "the mirrored"])(
    "judges %s head by no registry that may be set back as well",
    async (holder) => {
      const log = new TestLog(tenant, "judged");
      await log.append(entries(10), "?wait=mirrored");
      const restore = await copyLog(log);
      const registry = env.KEY_REGISTRY.getByName(tenant.id);
      expect((await call(tenant.key, "POST", "/v1/registry/rotations", { role: "audit" })).status).toBe(201);
      const change = (...statements: string[]) =>
        runInDurableObject(registry, (_instance, { storage }) => {
          for (const statement of statements) storage.sql.exec(statement);
        });
      await change("UPDATE records SET effective_at = 1 WHERE epoch = 1");
      forgetRegistry(tenant.id);
      const puts = holder === "D1's" ? breakPuts("fails", isCheckpoint) : null;
      // The first head after the rotation has both signatures.
      await log.append(entries(10));
      await log.append(entries(10));
      await log.get("/entries?limit=1");
      if (puts === null) await log.append(entry(), "?wait=mirrored");
      puts?.mend();
      await change("DELETE FROM records WHERE epoch = 1", "DELETE FROM managed_keys WHERE epoch = 1");
      await evictDurableObject(registry);
      await restore();
      forgetRegistry(tenant.id);
      const away = breakGets((key) => key.includes("/registry/"));
      const refused = await log.append(entry());
      expect([refused.status, problemOf(refused)]).toEqual([503, "mirror-unavailable"]);
      away.mend();
      forgetRegistry(tenant.id);
      // The key of its head was lost with the registry: nothing is signed, and nothing is stopped.
      const keyless = await log.append(entry());
      expect([keyless.status, problemOf(keyless)]).toEqual([503, "registry-unavailable"]);
      expect((await log.progress()).size).toBe(10);
      expect(await log.inside(({ storage }) => storage.sql.exec("SELECT * FROM alarms").toArray())).toEqual(
        [],
      );
    },
  );

  it("stops where D1 has the head and not its entries", async () => {
    const { log, setBack } = await setBackBehindD1("gone");
    await env.DB.prepare("DELETE FROM entries WHERE tenant = ? AND seq > 20").bind(tenant.id).run();
    await setBack();
    await isStopped(log, "ahead");
  });

  it.each([1, 40])(
    "stops at its next start where it has gone on by %i since, while D1 was away",
    async (count) => {
      const { log, setBack } = await setBackBehindD1(`went-on-${count}`);
      await setBack();
      const away = breakIndex();
      expect((await log.append(entries(count))).status).toBe(201);
      away.mend();
      await log.evict();
      await isStopped(log, count === 1 ? "ahead" : "fork");
    },
  );
});

describe("what D1 says of a log's head", () => {
  it.each([
    ["no checkpoint", "anything"],
    ["a head that nobody signed", null],
  ])("without the log's signature changes nothing: %s", async (_name, text) => {
    const log = new TestLog(tenant, "forged");
    await log.append(entries(10), "?wait=mirrored");
    const { checkpoint } = (await log.get("/head")).body as unknown as { checkpoint: string };
    await changeRow(log, "checkpoint = ?", text ?? checkpoint.replace("\n10\n", "\n99\n"));
    await log.evict();
    expect((await log.append(entry())).status).toBe(201);
    expect(await log.check()).toMatchObject({ size: 11 });
  });

  it("is not waited for where D1 does not answer", async () => {
    const log = new TestLog(tenant, "silent");
    await log.append(entries(3), "?wait=mirrored");
    await log.evict();
    INDEXED_HEAD.waitMs = 20;
    const prepare = env.DB.prepare.bind(env.DB);
    const silent = vi.spyOn(env.DB, "prepare").mockImplementation((sql) => {
      const statement = prepare(sql);
      const bind = statement.bind.bind(statement);
      if (!sql.startsWith("SELECT checkpoint FROM logs")) return statement;
      statement.bind = (...values) => Object.assign(bind(...values), { first: () => new Promise(() => {}) });
      return statement;
    });
    expect((await log.append(entry())).status).toBe(201);
    expect(silent).toHaveBeenCalled();
  });

  it("covers no more entries than D1 holds", async () => {
    const log = new TestLog(tenant, "chunks");
    await log.append(entries(1000));
    await log.append(entries(500));
    FLUSH_PACE.ms = -1;
    const held = async () => {
      const row = await env.DB.prepare("SELECT last_seq, checkpoint FROM logs WHERE name = ? AND tenant = ?")
        .bind(log.name, tenant.id)
        .first<{ last_seq: number; checkpoint: string | null }>();
      return [row?.last_seq, row?.checkpoint?.split("\n")[1]];
    };
    expect((await log.get("/entries?limit=1")).status).toBe(503);
    expect(await held()).toEqual([1000, undefined]);
    expect((await log.get("/entries?limit=1")).status).toBe(200);
    expect(await held()).toEqual([1500, "1500"]);
  });

  it("is waited for with `wait=mirrored`, however many flushes that takes", async () => {
    const log = new TestLog(tenant, "waits");
    for (let i = 0; i < 3; i++) await log.append(entries(1000));
    FLUSH_PACE.ms = -1;
    expect((await log.append(entries(10), "?wait=mirrored")).status).toBe(201);
    expect(await log.progress()).toMatchObject({ flushed: 3010, mirrored: 3010 });
  });

  it("is gone with the log's rows where these are taken out of D1", async () => {
    const { log, setBack } = await setBackBehindD1("emptied");
    await (await log.stub()).emptyIndex(await log.identity(), 0);
    await setBack();
    expect((await log.get("/head")).body.size).toBe(10);
  });
});
