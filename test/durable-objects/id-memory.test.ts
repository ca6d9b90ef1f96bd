import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ID_LIMITS } from "../../durable-objects/principal-log/id-index.ts";
import type { ItemOutcome } from "../../durable-objects/principal-log/types.ts";
import { uuidv7 } from "../../shared/ids.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { breakIndex, stopClock } from "./faults.ts";
import { entries, entry, frameOf, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

const MINUTE = 60_000;
const limits = { ...ID_LIMITS };
let tenant: TestTenant;
let clock: ReturnType<typeof stopClock>;
beforeAll(async () => {
  tenant = await newTenant();
});
beforeEach(() => {
  // As for a log whose newest entries are spread over hours.
  Object.assign(ID_LIMITS, { remembered: 20, windowMs: 0 });
  // Ahead of the real clock: the alarms that the log sets do not go off by themselves.
  clock = stopClock(Date.now() + 60 * MINUTE);
});
afterEach(() => {
  Object.assign(ID_LIMITS, limits);
  vi.restoreAllMocks();
});

function v7(at: number): string {
  return uuidv7(at, crypto.getRandomValues(new Uint8Array(16)));
}

function ulid(at: number): string {
  const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  let time = "";
  for (let rest = at, i = 0; i < 10; i++, rest = Math.floor(rest / 32))
    time = digits.charAt(rest % 32) + time;
  return time + Array.from({ length: 16 }, () => digits.charAt(Math.floor(Math.random() * 32))).join("");
}

/** Appends as many entries as make the log forget all that it remembered before, D1 holding them. */
async function forget(log: TestLog): Promise<void> {
  await log.get("/entries?limit=1");
  clock.set(Date.now() + 1);
  for (let i = 0; i < 3; i++) {
    const answer = await log.append(Array.from({ length: 25 }, () => entry({ id: v7(Date.now()) })));
    if (answer.status !== 201) throw new Error(answer.text);
    await log.get("/entries?limit=1");
    clock.set(Date.now() + 1);
  }
}

const refused = (answer: Answer) => answer.status === 503 && problemOf(answer) === "index-unavailable";
const receipt = (answer: Answer) => {
  const { seq, hash } = resultsOf(answer)[0] ?? {};
  return { seq, hash };
};

/** An id, and how an append of it is answered while D1 is away. */
describe("an id that the log has forgotten", () => {
  const ids: [string, () => string][] = [
    ["an opaque id", () => `opaque-${crypto.randomUUID()}`],
    ["a UUIDv7", () => v7(Date.now())],
    ["a ULID", () => ulid(Date.now())],
    ["a UUIDv7 of a clock within the skew ahead", () => v7(Date.now() + 4 * MINUTE)],
    ["a UUIDv7 of a clock far ahead", () => v7(Date.now() + 8 * MINUTE)],
    ["a UUIDv7 of a clock within the skew behind", () => v7(Date.now() - 4 * MINUTE)],
    ["a UUIDv7 of a clock far behind", () => v7(Date.now() - 8 * MINUTE)],
  ];
  const whens: [string, number][] = [
    ["at once", 0],
    ["after 3 minutes", 3 * MINUTE],
    ["after 6 minutes", 6 * MINUTE],
    ["after 9 minutes", 9 * MINUTE],
    ["after an hour", 60 * MINUTE],
  ];
  const restarts: [string, boolean][] = [
    ["", false],
    [" and a restart", true],
  ];
  for (const [what, make] of ids) {
    it(`${what}: never a second copy, whenever it comes again, with D1 or without`, async () => {
      const log = new TestLog(tenant, `forgotten-${what.replaceAll(" ", "-")}`);
      const sent = entry({ id: make() });
      const first = await log.append(sent);
      const start = Date.now();
      await forget(log);
      for (const [when, later] of whens) {
        clock.set(Math.max(Date.now(), start + later));
        for (const [restart, evict] of restarts) {
          if (evict) await log.evict();
          const place = `${when}${restart}`;
          const fault = breakIndex();
          const without = await log.append(sent);
          expect([place, refused(without), without.headers.get("retry-after")]).toEqual([place, true, "2"]);
          fault.mend();
          const again = await log.append(sent);
          expect([place, again.status, receipt(again)]).toEqual([place, 200, receipt(first)]);
          expect([place, (await log.append({ ...sent, run: "other" })).status]).toEqual([place, 409]);
        }
        await forget(log);
      }
      const { ids: stored } = await log.check();
      expect(stored.filter((id) => id === sent.id)).toHaveLength(1);
    });
  }
});

describe("an id that is new", () => {
  it("needs no D1 where it carries the time of now, and needs it where it does not", async () => {
    const log = new TestLog(tenant, "new");
    await log.append(entry());
    await forget(log);
    // What was forgotten must be older than the skew, or even an id of now might be one of those.
    clock.set(Date.now() + 6 * MINUTE);
    const fault = breakIndex();
    for (const restart of [false, true]) {
      if (restart) await log.evict();
      expect((await log.append(entry({ id: v7(Date.now()) }))).status).toBe(201);
      expect((await log.append(entry({ id: ulid(Date.now()) }))).status).toBe(201);
      expect((await log.append(entry({ id: v7(Date.now() + 4 * MINUTE) }))).status).toBe(201);
      expect(refused(await log.append(entry({ id: `opaque-${restart}` })))).toBe(true);
      expect(refused(await log.append(entry({ id: v7(Date.now() - 20 * MINUTE) })))).toBe(true);
      expect(refused(await log.append(entry({ id: v7(Date.now() + 6 * MINUTE) })))).toBe(true);
      // One of them that may not be new is enough.
      expect(refused(await log.append([entry({ id: v7(Date.now()) }), entry({ id: "opaque" })]))).toBe(true);
    }
    fault.mend();
    expect((await log.append(entry({ id: "opaque" }))).status).toBe(201);
    await log.check();
  });

  it("needs no D1 in a log that has forgotten nothing", async () => {
    const log = new TestLog(tenant, "whole");
    const fault = breakIndex();
    for (let i = 0; i < 3; i++) {
      // Far more than the bound: what D1 lacks is never forgotten.
      expect((await log.append(entries(30))).status).toBe(201);
      expect((await log.append(entry({ id: `opaque-${i}` }))).status).toBe(201);
      if (i === 1) await log.evict();
    }
    fault.mend();
    expect((await log.check()).size).toBe(93);
  });
});

describe("forgetting", () => {
  it("between a request's arrival and its commit has the request ask again", async () => {
    const log = new TestLog(tenant, "between");
    const old = entry({ id: "old" });
    const first = await log.append(old);
    await log.get("/entries");
    const stub = await log.stub();
    const identity = await log.identity();
    const send = (sent: unknown[]) =>
      stub.append({ log: identity, epoch: 0, atomic: false, ...frameOf(sent) });
    // Two full commits before its own: the first of them makes the log forget the id that the third has found there.
    const outcomes = await Promise.all([
      send(Array.from({ length: 1000 }, () => entry({ id: v7(Date.now()) }))),
      send(Array.from({ length: 1000 }, () => entry({ id: v7(Date.now()) }))),
      send([old]),
    ]);
    const [again] = (outcomes[2] as { items?: ItemOutcome[] }).items ?? [];
    expect(again).toEqual({ status: "seen", ...receipt(first) });
    expect((await log.check()).size).toBe(2001);
  });

  it("survives a transaction that throws: an id found in memory is not lost to a reload", async () => {
    ID_LIMITS.remembered = 100;
    const log = new TestLog(tenant, "reload");
    const old = entry({ id: "old" });
    const first = await log.append(old);
    // More than a restart would load, fewer than the bound.
    await log.append(entries(89));
    await log.get("/entries");
    await log.inside((state) => {
      state.storage.sql.exec(
        "CREATE TRIGGER broken BEFORE INSERT ON segments WHEN NEW.rows LIKE '%poison%' BEGIN SELECT RAISE(ABORT, 'broken'); END",
      );
    });
    const [poisoned, again] = await Promise.all([log.append(entry({ id: "poison" })), log.append(old)]);
    expect(poisoned.status).toBe(503);
    expect([again.status, receipt(again)]).toEqual([200, receipt(first)]);
    const third = await log.append(old);
    expect([third.status, receipt(third)]).toEqual([200, receipt(first)]);
    expect((await log.check()).size).toBe(90);
  });
});

describe("a busy log", () => {
  /** Appends 60 entries in 20 seconds: more than are remembered of a log at rest. */
  async function busy(log: TestLog): Promise<void> {
    for (let i = 0; i < 4; i++) {
      await log.append(Array.from({ length: 15 }, () => entry({ id: v7(Date.now()) })));
      await log.get("/entries?limit=1");
      clock.set(Date.now() + 5000);
    }
  }

  it("takes ids of now without D1, however many came within the time that a clock may be off by", async () => {
    Object.assign(ID_LIMITS, { windowMs: limits.windowMs });
    const log = new TestLog(tenant, "busy");
    const first = entry({ id: v7(Date.now()) });
    const receiptOfFirst = receipt(await log.append(first));
    await busy(log);
    const fault = breakIndex();
    expect((await log.append(entry({ id: v7(Date.now()) }))).status).toBe(201);
    expect((await log.append(entry({ id: "opaque" }))).status).toBe(201);
    const again = await log.append(first);
    expect([again.status, receipt(again)]).toEqual([200, receiptOfFirst]);
    fault.mend();
    // Later the first ones are forgotten, and ids of now still need no D1.
    clock.set(Date.now() + 9 * MINUTE);
    await busy(log);
    const later = breakIndex();
    expect((await log.append(entry({ id: v7(Date.now()) }))).status).toBe(201);
    expect(refused(await log.append(entry({ id: "another" })))).toBe(true);
    later.mend();
    expect((await log.append(entry({ id: "another" }))).status).toBe(201);
    expect((await log.check()).size).toBe(125);
  });

  it("asks D1 where more came within that time than it may remember, and forgets none", async () => {
    Object.assign(ID_LIMITS, { windowMs: limits.windowMs, perWindow: 40 });
    const log = new TestLog(tenant, "too-busy");
    const first = entry({ id: v7(Date.now()) });
    const receiptOfFirst = receipt(await log.append(first));
    await busy(log);
    const fault = breakIndex();
    expect(refused(await log.append(entry({ id: v7(Date.now()) })))).toBe(true);
    fault.mend();
    expect((await log.append(entry({ id: v7(Date.now()) }))).status).toBe(201);
    const again = await log.append(first);
    expect([again.status, receipt(again)]).toEqual([200, receiptOfFirst]);
    expect((await log.check()).size).toBe(62);
  });
});

describe("D1 as the memory of ids", () => {
  /** Sets D1 back to where it held the log's first `seq` entries. */
  async function rewindIndex(log: TestLog, seq: number): Promise<void> {
    const { results } = await env.DB.prepare(
      "SELECT e.log, e.hash FROM logs l JOIN entries e ON e.log = l.log AND e.seq = ? WHERE l.name = ? AND l.tenant = ?",
    )
      .bind(seq, log.name, tenant.id)
      .all<{ log: number; hash: string }>();
    const [row] = results;
    await env.DB.batch([
      env.DB.prepare("DELETE FROM entries WHERE log = ? AND seq > ?").bind(row?.log, seq),
      env.DB.prepare("UPDATE logs SET last_seq = ?, last_hash = ? WHERE log = ?").bind(
        seq,
        row?.hash,
        row?.log,
      ),
    ]);
  }

  it("is not believed where it went backwards: an old id gets no second copy, and its receipt once D1 is filled again", async () => {
    const log = new TestLog(tenant, "rewound");
    await log.append(entries(3));
    const old = entry({ id: "old" });
    const first = await log.append(old);
    await forget(log);
    await rewindIndex(log, 2);
    const without = await log.append(old);
    expect(refused(without)).toBe(true);
    expect(await log.alarm()).toBe(true);
    const again = await log.append(old);
    expect([again.status, receipt(again)]).toEqual([200, receipt(first)]);
    expect((await log.check()).size).toBe(79);
  });

  it("is noticed by a query, which says so until D1 is filled again; a restart between changes nothing", async () => {
    const log = new TestLog(tenant, "rewound-query");
    const old = entry({ id: "old" });
    await log.append([entry(), entry(), old]);
    await forget(log);
    await rewindIndex(log, 1);
    const answer = await log.get("/entries");
    expect([answer.status, problemOf(answer)]).toEqual([503, "index-rebuilding"]);
    await log.evict();
    expect((await log.append(old)).status).toBe(200);
    expect((await log.get("/entries")).status).toBe(200);
    expect((await log.check()).size).toBe(78);
  });

  const own = "log = (SELECT log FROM logs WHERE name = ?1 AND tenant = ?2)";
  const columns =
    "hash, leaf, recorded_at, 'planted', kind, session, run, step, call, tool, status, content, salts";
  const plants: [string, string][] = [
    [
      "a row beyond the log's end",
      `INSERT INTO entries SELECT log << 32 | 900, pos, tenant, ${columns} FROM entries WHERE seq = 2 AND ${own}`,
    ],
    ["another entry's row under the id", `UPDATE entries SET id = 'planted' WHERE seq = 2 AND ${own}`],
    [
      "another leaf under the id",
      `UPDATE entries SET id = 'planted', leaf = (SELECT leaf FROM entries WHERE seq = 3 AND ${own}) WHERE seq = 2 AND ${own}`,
    ],
    ["bytes that are no leaf", `UPDATE entries SET id = 'planted', leaf = 'AAAA' WHERE seq = 2 AND ${own}`],
  ];
  it.each(plants)("gives no receipt on its word alone: %s is an alarm", async (name, statement) => {
    const log = new TestLog(tenant, `planted-${name.replaceAll(/\W/g, "-")}`);
    await log.append(entries(3));
    await forget(log);
    await env.DB.prepare(statement).bind(log.name, tenant.id).run();
    const answer = await log.append(entry({ id: "planted" }));
    expect([answer.status, problemOf(answer)]).toEqual([503, "index-conflict"]);
    expect((await log.progress()).size).toBe(78);
    expect(await log.inside((state) => state.storage.sql.exec("SELECT name FROM alarms").toArray())).toEqual([
      { name: "index-conflict" },
    ]);
  });
});
