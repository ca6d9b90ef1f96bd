import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { AppendRequest } from "../../durable-objects/principal-log/types.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import type { Fault, Injected } from "./faults.ts";
import { strike } from "./faults.ts";
import { entries, entry, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 20;
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Sends until it is acknowledged, as a client does that must not lose anything. */
async function insist(log: TestLog, sent: unknown, query = ""): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    let answer: Answer;
    try {
      answer = await log.append(sent, query);
    } catch (error) {
      // The answer got lost on the way.
      if (error instanceof Error && error.message.startsWith("lost")) continue;
      throw error;
    }
    if (answer.status < 300) return;
    if (answer.status !== 503 || answer.headers.get("retry-after") === null) throw new Error(answer.text);
  }
  throw new Error("never acknowledged");
}

/** Eight clients at once, some of whose batches fill tiles; one of them waits for the mirror. */
async function load(log: TestLog, alarms = true): Promise<void> {
  const clients = Array.from({ length: 8 }, async (_, i) => {
    for (let round = 0; round < 5; round++) {
      await insist(log, i < 4 ? entries(30) : entry(), i === 7 && round === 2 ? "?wait=mirrored" : "");
      if (alarms && i === 0 && round === 2) await log.alarm();
    }
  });
  await Promise.all(clients);
}

const SENT = 4 * 5 * 30 + 4 * 5;

const kinds: (Fault | "slow")[] = ["fails", "fails but persisted", "slow"];
const places: [string, (fault: Fault | "slow") => Injected][] = [
  ["D1", (fault) => strike(env.DB, "batch", fault)],
  [
    "the mirrored head",
    (fault) => strike(env.MIRROR, "put", fault, (key) => String(key).endsWith("/checkpoint")),
  ],
  [
    "the mirrored tiles",
    (fault) => strike(env.MIRROR, "put", fault, (key) => String(key).includes("/tile/")),
  ],
  ["reading the mirror", (fault) => strike(env.MIRROR, "get", fault)],
];

describe("under load, while every third call fails, loses its answer, or is slow", () => {
  for (const [place, inject] of places) {
    it.each(kinds)(`${place} %s: nothing is lost, doubled or out of order`, async (fault) => {
      const log = new TestLog(tenant, `${place} ${fault}`.replaceAll(" ", "-"));
      await log.append(entry());
      const injected = inject(fault);
      await load(log);
      await log.evict();
      await insist(log, entry());
      await log.alarm();
      expect(injected.count()).toBeGreaterThan(0);
      injected.mend();
      expect((await log.check()).size).toBe(SENT + 2);
      await insist(log, entry(), "?wait=mirrored");
      expect(await log.progress()).toMatchObject({ mirrored: SENT + 3, archived: 512 });
    });
  }
});

describe("under load, while every second call from the Worker to the log", () => {
  it.each(kinds)("%s: nothing is lost, doubled or out of order", async (fault) => {
    const log = new TestLog(tenant, `rpc-${fault.replaceAll(" ", "-")}`);
    await log.append(entry());
    const original = env.PRINCIPAL_LOG.getByName.bind(env.PRINCIPAL_LOG);
    let struck = 0;
    vi.spyOn(env.PRINCIPAL_LOG, "getByName").mockImplementation(((name: string) => {
      const stub = original(name);
      return new Proxy(stub, {
        get: (target, property) => {
          if (property !== "append") return Reflect.get(target, property, target);
          return async (request: AppendRequest) => {
            if (struck++ % 2 === 1) return target.append(request);
            if (fault === "slow") await new Promise((resolve) => setTimeout(resolve, 100));
            if (fault === "fails") throw new Error("Network connection lost.");
            const outcome = await target.append(request);
            if (fault === "slow") return outcome;
            throw new Error("Network connection lost.");
          };
        },
      });
    }) as never);
    await load(log, false);
    expect(struck).toBeGreaterThan(10);
    vi.restoreAllMocks();
    expect((await log.check()).size).toBe(SENT + 1);
  });
});

describe("the log's own steps", () => {
  it("fail in their transactions, every so often: nothing is lost, doubled or out of order", async () => {
    const log = new TestLog(tenant, "transactions");
    await log.append(entry());
    await log.inside((state) => {
      state.storage.sql.exec(
        "CREATE TRIGGER broken BEFORE UPDATE ON head WHEN NEW.size % 3 = 0 BEGIN SELECT RAISE(ABORT, 'broken'); END",
      );
    });
    let refused = 0;
    const clients = Array.from({ length: 8 }, async () => {
      for (let round = 0; round < 6; round++) {
        const answer = await log.append(entry());
        if (answer.status === 503 && problemOf(answer) === "storage-failed") refused += 1;
        else expect(answer.status).toBe(201);
      }
    });
    await Promise.all(clients);
    expect(refused).toBeGreaterThan(0);
    await log.inside((state) => void state.storage.sql.exec("DROP TRIGGER broken"));
    expect((await log.check()).size).toBe(1 + 48 - refused);
  });

  it("are an alarm that goes off several times at once, and one that is lost", async () => {
    const log = new TestLog(tenant, "alarms");
    await log.append(entry());
    for (let round = 0; round < 5; round++) {
      await Promise.all([log.append(entries(60)), log.alarm(), log.alarm(), log.alarm()]);
      if (round === 3) await log.inside((state) => state.storage.deleteAlarm());
    }
    await log.evict();
    expect(await log.alarmAt()).not.toBeNull();
    await log.alarm();
    expect(await log.progress()).toMatchObject({ size: 301, flushed: 301, mirrored: 301 });
    const { results } = await env.DB.prepare(
      "SELECT count(*) AS n FROM entries e JOIN logs l ON l.log = e.log WHERE l.name = ? AND l.tenant = ?",
    )
      .bind(log.name, tenant.id)
      .all<{ n: number }>();
    expect(results).toEqual([{ n: 301 }]);
    expect((await log.check()).size).toBe(301);
  });

  it("end with their object, after D1 took a chunk and before the log knew: D1 gets each entry once", async () => {
    const log = new TestLog(tenant, "aborted");
    await log.append(entries(20));
    const original = env.DB.batch.bind(env.DB) as typeof env.DB.batch;
    const spy = vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
      const results = await original(statements);
      await new Promise<void>((resolve) => setTimeout(resolve, 60_000));
      return results;
    });
    const query = log.get("/entries");
    while (spy.mock.calls.length === 0) await log.append(entry());
    await abortAllDurableObjects();
    expect((await query).status).toBeGreaterThanOrEqual(500);
    spy.mockRestore();
    await log.append(entry());
    expect((await log.check()).size).toBe(log.told.receipts.size);
  });
});

describe("a tenant whose registry can't be read", () => {
  it("is answered 503 by a log that starts, and the log goes on when it can be", async () => {
    const other = await newTenant();
    const log = new TestLog(other, "registry");
    const original = env.KEY_REGISTRY.getByName.bind(env.KEY_REGISTRY);
    const spy = vi.spyOn(env.KEY_REGISTRY, "getByName").mockImplementation(((name: string) => {
      const stub = original(name);
      return new Proxy(stub, {
        get: (target, property) =>
          property === "managedKey"
            ? async () => {
                throw new Error("Network connection lost.");
              }
            : Reflect.get(target, property, target),
      });
    }) as never);
    const answer = await log.append(entry());
    expect([answer.status, problemOf(answer)]).toEqual([503, "registry-unavailable"]);
    spy.mockRestore();
    expect((await log.append(entry())).status).toBe(201);
    expect((await log.check()).size).toBe(1);
    expect((await call(other.key, "GET", `${log.path}/head`)).status).toBe(200);
  });
});
