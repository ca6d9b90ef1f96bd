import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { REBUILD_STEP } from "../../workers/logs/rebuild.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { readIndex, restoreIndex } from "./index-copy.ts";
import { entries, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
const { logs: stepLogs } = REBUILD_STEP;
afterEach(() => {
  vi.restoreAllMocks();
  REBUILD_STEP.logs = stepLogs;
});

/** Sets D1 back to an older copy, in which it holds two of the log's six entries. */
async function setBack(name: string): Promise<void> {
  const row = await env.DB.prepare(
    "SELECT e.log, e.hash FROM logs l JOIN entries e ON e.log = l.log AND e.seq = 2 WHERE l.name = ? AND l.tenant = ?",
  )
    .bind(name, tenant.id)
    .first<{ log: number; hash: string }>();
  await env.DB.batch([
    env.DB.prepare("DELETE FROM entries WHERE log = ? AND seq > 2").bind(row?.log),
    env.DB.prepare("UPDATE logs SET last_seq = 2, last_hash = ? WHERE log = ?").bind(row?.hash, row?.log),
    env.DB.prepare("UPDATE arrivals SET next = next - 4 WHERE tenant = ?").bind(tenant.id),
  ]);
}

/** A log of six entries of which D1, set back to an older copy, holds two. */
async function rewound(name: string): Promise<TestLog> {
  const log = new TestLog(tenant, name);
  await log.append(entries(6));
  expect((await log.get("/entries")).status).toBe(200);
  await setBack(name);
  return log;
}

describe("D1 that went backwards under a log at rest", () => {
  it.each(["/entries", "/entries/5", "/runs", "/runs/run-1"])(
    "is noticed by %s, and filled again",
    async (path) => {
      const log = await rewound(`noticed${path.replaceAll("/", "-")}`);
      const answer = await log.get(path);
      expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
      expect((await log.get(path)).status).toBe(200);
      expect((await log.check()).size).toBe(6);
    },
  );

  it("is filled again by the next append's flush", async () => {
    const log = await rewound("next-append");
    await log.append(entries(2));
    expect((await log.check()).size).toBe(8);
  });

  it.each(["/verify", "/export", "/verify?from=2&to=3"])(
    "is noticed by %s, which never calls it a break of the log",
    async (path) => {
      const log = await rewound(`evidence${path.replaceAll(/[^a-z0-9]/g, "-")}`);
      const answer = await log.get(path);
      expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
      expect((await log.get(path)).status).toBe(200);
      expect((await log.check()).size).toBe(6);
    },
  );

  it("is noticed by /export where it happens while the bundle is being written", async () => {
    const log = await rewound("midway");
    expect((await log.get("/entries")).status).toBe(503);
    const original = env.DB.withSession.bind(env.DB);
    let back = false;
    vi.spyOn(env.DB, "withSession").mockImplementation(((constraint: string) => {
      const session = original(constraint);
      let page = false;
      return {
        ...session,
        prepare: (sql: string) => {
          page ||= sql.includes("JOIN entries");
          return session.prepare(sql);
        },
        // The first page is read from a D1 that has just been set back.
        batch: async (statements: D1PreparedStatement[]) => {
          if (page && !back) {
            back = true;
            await setBack(log.name);
          }
          return session.batch(statements);
        },
      };
    }) as never);
    const bundle = await log.get("/export").catch(() => null);
    vi.restoreAllMocks();
    expect(back).toBe(true);
    expect(bundle?.text ?? "").not.toContain('"t":"checkpoint"');
    expect((await log.check()).size).toBe(6);
  });
});

describe("D1 that went backwards, to a reader of the whole tenant", () => {
  const page = (): Promise<Answer> => call(tenant.key, "GET", "/v1/entries?limit=1000");
  const idsOf = (answer: Answer): string[] =>
    (answer.body.entries as unknown as { id: string }[]).map(({ id }) => id);

  /** Until none of the logs is listed as one that D1 may be behind. */
  async function rest(...logs: TestLog[]): Promise<void> {
    const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
    for (const log of [...logs, new TestLog(tenant, "$system")]) await log.alarm();
    // An alarm that went off by itself may still be at work.
    await vi.waitFor(async () => expect((await directory.indexView()).dirty).toEqual([]), 10_000);
  }

  async function newLogs(...names: string[]): Promise<TestLog[]> {
    tenant = await newTenant();
    const logs = names.map((name) => new TestLog(tenant, name));
    for (const log of logs) await log.append(entries(2));
    await rest(...logs);
    return logs;
  }

  async function settled(): Promise<string[]> {
    let answer = await page();
    for (let i = 0; i < 5 && answer.status === 503; i++) answer = await page();
    expect(answer.status).toBe(200);
    return idsOf(answer);
  }

  it("is noticed: never a page that is short", async () => {
    const logs = await newLogs("a", "b");
    const older = await readIndex();
    for (const log of logs) await log.append(entries(4));
    await rest(...logs);
    const before = new Set(idsOf(await page()));
    await restoreIndex(older);
    const answer = await page();
    expect([answer.status, problemOf(answer), answer.headers.get("retry-after")]).toEqual([
      503,
      "index-rebuilding",
      "1",
    ]);
    expect(new Set(await settled())).toEqual(before);
    for (const log of logs) expect((await log.check()).size).toBe(6);
  });

  it("is noticed where the log that arrived last was filled again by its own reader", async () => {
    const [c, d] = (await newLogs("c", "d")) as [TestLog, TestLog];
    const older = await readIndex();
    for (const log of [c, d]) {
      await log.append(entries(4));
      await rest(log);
    }
    const before = new Set(idsOf(await page()));
    await restoreIndex(older);
    // Only d looks at itself: c's rows are missed by nobody but the reader of all.
    expect((await d.get("/entries")).status).toBe(503);
    expect((await d.get("/entries")).status).toBe(200);
    expect(new Set(await settled())).toEqual(before);
  });

  it("is noticed where another log was appended to since, as often as entries were lost", async () => {
    const logs = (await newLogs("e", "f", "g")) as [TestLog, TestLog, TestLog];
    const older = await readIndex();
    await logs[1].append(entries(4));
    await rest(logs[1]);
    await restoreIndex(older);
    await logs[2].append(entries(4));
    await rest(logs[2]);
    const ids = await settled();
    const sent = logs.flatMap(({ told }) => [...told.receipts.keys()]);
    expect(ids.filter((id) => sent.includes(id)).length).toBe(14);
  });

  it("is filled again in steps, where there are many logs, and is not read in between", async () => {
    REBUILD_STEP.logs = 6;
    const names = Array.from({ length: 9 }, (_, i) => `many-${i}`);
    const logs = await newLogs(...names);
    const older = await readIndex();
    for (const log of logs) await log.append(entries(2));
    await rest(...logs);
    const before = new Set(idsOf(await page()));
    await restoreIndex(older);
    expect((await page()).status).toBe(503);
    // The first step reached the first logs only.
    const held = await env.DB.prepare("SELECT last_seq FROM logs WHERE tenant = ? AND name = ?")
      .bind(tenant.id, names.at(-1))
      .first<{ last_seq: number }>();
    expect(held?.last_seq).toBe(2);
    expect(new Set(await settled())).toEqual(before);
  });

  it("is told from a reader that asks while nothing is wrong", async () => {
    const [log] = (await newLogs("h")) as [TestLog];
    for (let round = 0; round < 3; round++) {
      expect((await page()).status).toBe(200);
      await log.append(entries(2));
      expect((await page()).status).toBe(200);
      await log.alarm();
      expect((await page()).status).toBe(200);
      await log.evict();
    }
  });
});
