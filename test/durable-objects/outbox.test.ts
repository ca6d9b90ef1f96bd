import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import type { Injected } from "./faults.ts";
import { breakIndex, breakIndexWrites, breakPuts, isFlushOf, stopClock } from "./faults.ts";
import { entries, entry, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 20;
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** An hour ahead: alarms that the log sets by this clock never go off by themselves. */
const aheadBy = 3_600_000;
const stopClockAhead = () => stopClock(Date.now() + aheadBy);

async function indexed(log: TestLog): Promise<{ rows: number; lastSeq: number }> {
  const { results } = await env.DB.prepare(
    "SELECT (SELECT count(*) FROM entries e WHERE e.log = l.log) AS n, l.last_seq AS s FROM logs l WHERE l.name = ? AND l.tenant = ?",
  )
    .bind(log.name, tenant.id)
    .all<{ n: number; s: number }>();
  return { rows: results[0]?.n ?? 0, lastSeq: results[0]?.s ?? 0 };
}

async function refusesQueries(log: TestLog): Promise<void> {
  for (const path of ["/entries", "/entries/1", "/runs", "/runs/run-1", "/verify", "/export"]) {
    const answer = await log.get(path);
    expect([path, answer.status, problemOf(answer)]).toEqual([path, 503, "index-rebuilding"]);
  }
  const all = await call(tenant.key, "GET", "/v1/entries");
  expect([all.status, problemOf(all)]).toEqual([503, "index-rebuilding"]);
}

describe("D1 that does not take entries", () => {
  const faults: [string, () => Injected][] = [
    ["fails", () => breakIndexWrites("fails")],
    ["is away altogether", () => breakIndex()],
  ];
  it.each(faults)(
    "%s: appends go on, queries say so, and nothing is lost or doubled",
    async (name, inject) => {
      const log = new TestLog(tenant, `d1-${name.replaceAll(" ", "-")}`);
      await log.append(entries(3));
      await log.get("/entries");
      const fault = inject();
      const answers = await Promise.all(Array.from({ length: 30 }, () => log.append(entries(10))));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
      await refusesQueries(log);
      await log.alarm();
      await log.evict();
      expect((await log.append(entries(10))).status).toBe(201);
      await refusesQueries(log);
      expect(fault.count()).toBeGreaterThan(0);
      fault.mend();
      expect((await log.check()).size).toBe(313);
      expect(await indexed(log)).toEqual({ rows: 313, lastSeq: 313 });
    },
  );

  it("loses only its answers: what it took is found to be there, and is not written twice", async () => {
    const log = new TestLog(tenant, "lost-answers");
    const fault = breakIndexWrites("fails but persisted");
    for (let round = 0; round < 4; round++) {
      await log.append(entries(5));
      // A reader makes the log flush, however long its own pause is.
      await log.get("/entries?limit=1");
    }
    expect(fault.count()).toBeGreaterThanOrEqual(4);
    fault.mend();
    expect((await log.check()).size).toBe(20);
    expect(await indexed(log)).toEqual({ rows: 20, lastSeq: 20 });
    const { results } = await env.DB.prepare(
      "SELECT entries FROM runs r JOIN logs l ON l.log = r.log WHERE l.name = ?",
    )
      .bind(log.name)
      .all<{ entries: number }>();
    expect(results).toEqual([{ entries: 20 }]);
  });

  it("loses an answer, and the log its memory before it can ask again", async () => {
    const log = new TestLog(tenant, "lost-answer-and-memory");
    const fault = breakIndexWrites("fails but persisted");
    await log.append(entries(5));
    await log.alarm();
    await log.evict();
    fault.mend();
    await log.append(entries(5));
    expect((await log.check()).size).toBe(10);
    expect(await indexed(log)).toEqual({ rows: 10, lastSeq: 10 });
  });

  it("loses an answer and then can't say where it stands: queries are refused, not failed", async () => {
    const log = new TestLog(tenant, "nothing-but-lost");
    const first = breakIndexWrites("fails but persisted");
    await log.append(entries(5));
    await log.alarm();
    first.mend();
    // The flush's next batch changes nothing, since D1 has moved on; the question where it stands fails.
    const original = env.DB.prepare.bind(env.DB);
    const spy = vi.spyOn(env.DB, "prepare").mockImplementation((query) => {
      if (query.startsWith("SELECT last_seq")) throw new Error("D1_ERROR: Network connection lost.");
      return original(query);
    });
    const answer = await log.get("/entries");
    expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
    await expect(log.alarm()).resolves.toBe(true);
    expect(await log.alarmAt()).not.toBeNull();
    spy.mockRestore();
    expect((await log.check()).size).toBe(5);
  });

  it("is slow: appends do not wait for it", async () => {
    const log = new TestLog(tenant, "slow");
    const original = env.DB.batch.bind(env.DB);
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
      await held;
      return original(statements);
    });
    await log.append(entry());
    const flushing = log.alarm();
    const answers = await Promise.all(Array.from({ length: 20 }, () => log.append(entry())));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    release();
    await flushing;
    expect((await log.check()).size).toBe(21);
  });
});

describe("a flush of more than a chunk", () => {
  it("takes what is committed meanwhile as what it is, or leaves it to the next one", async () => {
    const log = new TestLog(tenant, "flush-and-commits");
    for (let i = 0; i < 5; i++) await log.append(entries(500));
    const batch = env.DB.batch.bind(env.DB);
    let chunks = 0;
    vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
      const results = await batch(statements);
      // A commit between a chunk's arrival and its answer: the log has grown when the next chunk is made.
      if (isFlushOf(statements, log.name)) {
        chunks += 1;
        await log.append(entries(10));
      }
      return results as never;
    });
    expect((await log.get("/entries?limit=1")).status).toBe(200);
    vi.restoreAllMocks();
    expect(chunks).toBeGreaterThanOrEqual(3);
    const { size } = await log.check();
    expect(size).toBe(2500 + 10 * chunks);
    expect(await indexed(log)).toEqual({ rows: size, lastSeq: size });
    expect((await log.get("/verify")).body).toMatchObject({ verdict: "intact" });
  });
});

describe("D1 of an older SQLite", () => {
  it("takes the entries in its own way", async () => {
    const log = new TestLog(tenant, "older-sqlite");
    const prepare = env.DB.prepare.bind(env.DB);
    const asked: string[] = [];
    const spy = vi.spyOn(env.DB, "prepare").mockImplementation((query) => {
      if (query.includes("INSERT INTO entries")) asked.push(/jsonb?_each/.exec(query)?.[0] ?? "");
      // What it says of a function that no SQLite has.
      return prepare(query.replace("jsonb_each", "jsonb_each_of_tomorrow"));
    });
    for (let round = 0; round < 2; round++) {
      await log.append(entries(5));
      expect((await log.get("/entries?limit=1")).status).toBe(200);
    }
    // The logs of other tests may be at work still.
    expect(asked[0]).toBe("jsonb_each");
    expect(asked.at(-1)).toBe("json_each");
    expect(asked.lastIndexOf("jsonb_each")).toBeLessThan(asked.indexOf("json_each"));
    spy.mockRestore();
    expect((await log.check()).size).toBe(10);
    expect(await indexed(log)).toEqual({ rows: 10, lastSeq: 10 });
  });
});

describe("the alarm", () => {
  it("stays where the first append set it, however many follow: the flush is not put off", async () => {
    const clock = stopClockAhead();
    const log = new TestLog(tenant, "steady");
    await log.append(entry());
    const at = await log.alarmAt();
    expect(at).not.toBeNull();
    for (let i = 1; i <= 10; i++) {
      clock.set(Date.now() + 100);
      await log.append(entry());
      expect(await log.alarmAt()).toBe(at);
    }
    expect(await log.alarm()).toBe(true);
    expect((await log.progress()).flushed).toBe(11);
  });

  it("is not set again once D1 and R2 hold everything", async () => {
    stopClockAhead();
    const log = new TestLog(tenant, "at-rest");
    await log.append(entry());
    await log.alarm();
    expect(await log.progress()).toMatchObject({ flushed: 1, mirrored: 1 });
    expect(await log.alarmAt()).toBeNull();
    await log.evict();
    expect(await log.alarmAt()).toBeNull();
  });

  it("never throws while D1 fails, and pauses longer each time, up to a minute", async () => {
    stopClockAhead();
    const log = new TestLog(tenant, "backoff");
    await log.append(entry());
    const fault = breakIndex();
    const pauses: number[] = [];
    for (let i = 0; i < 9; i++) {
      expect(await log.alarm()).toBe(true);
      pauses.push(((await log.alarmAt()) ?? 0) - Date.now());
    }
    expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60, 60, 60].map((seconds) => seconds * 1000));
    fault.mend();
    await log.alarm();
    expect(await log.alarmAt()).toBeNull();
    expect((await log.check()).size).toBe(1);
  });

  it("keeps its pauses under load: appends during a failing flush do not bring the next one forward", async () => {
    const clock = stopClockAhead();
    const start = Date.now();
    const log = new TestLog(tenant, "backoff-under-load");
    await log.append(entry());
    const attempts: number[] = [];
    const original = env.DB.batch.bind(env.DB);
    const spy = vi.spyOn(env.DB, "batch").mockImplementation((async (statements) => {
      if (!isFlushOf(statements, log.name)) return original(statements);
      attempts.push((Date.now() - start) / 1000);
      await log.append(entry());
      throw new Error("D1_ERROR: Network connection lost.");
    }) as D1Database["batch"]);
    for (let pass = 0; pass < 8; pass++) {
      await log.alarm();
      await log.append(entry());
      clock.set((await log.alarmAt()) ?? 0);
    }
    expect(attempts).toEqual([0, 2, 6, 14]);
    spy.mockRestore();
    expect((await log.check()).size).toBe(13);
  });

  it("mirrors heads two seconds after an append while D1 is away, however long the pause of the flush", async () => {
    stopClockAhead();
    const log = new TestLog(tenant, "mirrored-without-index");
    await log.append(entry());
    const fault = breakIndex();
    for (let i = 0; i < 3; i++) await log.alarm();
    const pause = async () => ((await log.alarmAt()) ?? 0) - Date.now();
    expect(await pause()).toBe(8000);
    await log.append(entry());
    expect(await pause()).toBe(2000);
    await log.alarm();
    expect(await log.progress()).toMatchObject({ flushed: 0, mirrored: 2, size: 2 });
    expect(await pause()).toBe(8000);
    fault.mend();
    await log.alarm();
    expect((await log.progress()).flushed).toBe(2);
    expect(await log.alarmAt()).toBeNull();
  });

  it("flushes two seconds after an append while R2 is away, however long the pause of the mirror", async () => {
    stopClockAhead();
    const log = new TestLog(tenant, "indexed-without-mirror");
    await log.append(entry());
    const prefix = await log.prefix();
    const fault = breakPuts("fails", (key) => key.startsWith(prefix));
    for (let i = 0; i < 3; i++) await log.alarm();
    const attempts = fault.count();
    const pause = async () => ((await log.alarmAt()) ?? 0) - Date.now();
    expect(await pause()).toBe(8000);
    await log.append(entry());
    expect(await pause()).toBe(2000);
    await log.alarm();
    expect(await log.progress()).toMatchObject({ flushed: 2, mirrored: 0, size: 2 });
    expect(fault.count()).toBe(attempts);
    expect(await pause()).toBe(8000);
    fault.mend();
    await log.alarm();
    expect((await log.progress()).mirrored).toBe(2);
    expect(await log.alarmAt()).toBeNull();
  });
});

describe("D1 that contradicts the log", () => {
  const own = "log = (SELECT log FROM logs WHERE name = ?1 AND tenant = ?2)";
  const contradictions: [string, string][] = [
    [
      "a row where the next entry belongs",
      `INSERT INTO entries SELECT log << 32 | 4, pos, tenant, hash, leaf, recorded_at, 'planted', kind, session, run, step, call,
       tool, status, content, salts FROM entries WHERE seq = 2 AND ${own}`,
    ],
    ["another hash for where it stands", `UPDATE logs SET last_hash = '${"ab".repeat(32)}' WHERE ${own}`],
    ["more entries than the log has", `UPDATE logs SET last_seq = 99 WHERE ${own}`],
  ];
  for (const fault of ["", ", and an answer gets lost"] as const) {
    it.each(contradictions)(`is an alarm, not a no-op: %s${fault}`, async (name, statement) => {
      stopClockAhead();
      const log = new TestLog(tenant, `contradicts ${name}${fault}`.replaceAll(/\W/g, "-"));
      await log.append(entries(3));
      expect((await log.get("/entries")).status).toBe(200);
      await env.DB.prepare(statement).bind(log.name, tenant.id).run();
      const injected = fault === "" ? null : breakIndexWrites("fails but persisted");
      await log.append(entry());
      await log.alarm();
      injected?.mend();
      for (const path of ["/entries", "/entries/4", "/runs"]) {
        const answer = await log.get(path);
        expect([path, answer.status, problemOf(answer)]).toEqual([path, 503, "index-conflict"]);
      }
      // The log itself is not in doubt.
      expect((await log.append(entry())).status).toBe(201);
      await expect(log.alarm()).resolves.toBeDefined();
      expect((await log.get("/head")).body.size).toBe(5);
    });
  }
});

describe("the outbox's bound", () => {
  it("refuses appends with 503 and Retry-After once the oldest entry is a day old, and takes them again after a flush", async () => {
    const clock = stopClockAhead();
    const log = new TestLog(tenant, "a-day");
    await log.append(entry());
    const fault = breakIndex();
    clock.set(Date.now() + 23 * 3_600_000);
    expect((await log.append(entry())).status).toBe(201);
    clock.set(Date.now() + 3_600_001);
    const refused = await log.append(entry({ id: "refused" }));
    expect([refused.status, problemOf(refused), refused.headers.get("retry-after")]).toEqual([
      503,
      "outbox-full",
      "30",
    ]);
    fault.mend();
    await log.alarm();
    expect((await log.append(entry({ id: "refused" }))).status).toBe(201);
    expect((await log.check()).size).toBe(3);
  });
});
