import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { CONTENT_LIMITS } from "../../durable-objects/content/archive.ts";
import { ALARM_PACE } from "../../durable-objects/principal-log/flush-alarm.ts";
import { FLUSH_PACE } from "../../durable-objects/principal-log/outbox.ts";
import type { TestTenant } from "../workers/support.ts";
import { isFlushOf } from "./faults.ts";
import { entries, entry, newTenant, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  Object.assign(CONTENT_LIMITS, { objects: 1, entries: 8, backlog: 64 });
});

const pace = { ...ALARM_PACE };
const flushPace = { ...FLUSH_PACE };
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(ALARM_PACE, pace);
  Object.assign(FLUSH_PACE, flushPace);
});

/** Pauses that no test outlasts: which one was taken is told by the time that is left. */
function takeLongPauses(): void {
  Object.assign(ALARM_PACE, { delayMs: 400_000, breathMs: 200_000 });
}

/** Milliseconds until the log's alarm; null where none is set. */
async function untilAlarm(log: TestLog): Promise<number | null> {
  const at = await log.inside((state) => state.storage.getAlarm());
  return at === null ? null : at - Date.now();
}

describe("the alarm of a log", () => {
  it("waits after a commit for what comes with it", async () => {
    takeLongPauses();
    const log = new TestLog(tenant, "waits");
    await log.append(entry());
    expect(await untilAlarm(log)).toBeGreaterThan(200_000);
  });

  it("goes on soon while a log that never rests has left more unsealed than it may", async () => {
    takeLongPauses();
    const log = new TestLog(tenant, "restless");
    await log.append(entries(256));
    const batch = env.DB.batch.bind(env.DB) as D1Database["batch"];
    let flushes = 0;
    vi.spyOn(env.DB, "batch").mockImplementation((async (statements) => {
      const results = await batch(statements);
      if (isFlushOf(statements, log.name) && flushes++ === 0) await log.append(entry());
      return results;
    }) as D1Database["batch"]);
    await log.alarm();
    expect(flushes).toBe(1);
    const { flushed, size } = await log.progress();
    expect([flushed, size]).toEqual([256, 257]);
    expect(await untilAlarm(log)).toBeLessThan(200_000);
  });

  it("ends a flush that takes long, and goes on soon", async () => {
    takeLongPauses();
    const log = new TestLog(tenant, "long");
    for (let i = 0; i < 3; i++) await log.append(entries(1000));
    FLUSH_PACE.ms = -1;
    // Nothing else brings the alarm forward.
    CONTENT_LIMITS.backlog = 10_000;
    await log.alarm();
    CONTENT_LIMITS.backlog = 64;
    expect((await log.progress()).flushed).toBe(1000);
    expect(await untilAlarm(log)).toBeLessThan(200_000);
    // A reader is told to come again, and finds it done at some time.
    const statuses: number[] = [];
    for (let i = 0; i < 2; i++) statuses.push((await log.get("/entries?limit=1")).status);
    expect(statuses).toEqual([503, 200]);
    expect((await log.check()).size).toBe(3000);
  });

  it("goes on soon while only content is left to be sealed, until it is", async () => {
    takeLongPauses();
    const log = new TestLog(tenant, "sealing");
    await log.append(entries(256));
    await log.alarm();
    expect(await untilAlarm(log)).toBeLessThan(200_000);
    Object.assign(ALARM_PACE, pace);
    await log.alarm();
    // Nobody calls it any more: it goes off by itself.
    const boxed = () =>
      log.inside((state) => state.storage.sql.exec("SELECT boxed_seq FROM content_progress").one().boxed_seq);
    await vi.waitFor(async () => expect(await boxed()).toBe(256), { timeout: 60_000, interval: 100 });
    await vi.waitFor(async () => expect(await untilAlarm(log)).toBeNull(), {
      timeout: 60_000,
      interval: 100,
    });
  });
});
