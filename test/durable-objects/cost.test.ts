import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { PRUNE_LIMITS } from "../../durable-objects/principal-log/prune.ts";
import { settle } from "./content/support.ts";
import { lowerBounds, prunedTo, restoreBounds, stopPruning } from "./pruned-log.ts";
import { newTenant, TestLog } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
  restoreBounds();
});

/** Entries as runtimes send them: with an id, a run, a step, a call, and three values. */
function batch(prefix: string, count: number): unknown[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}-${i}`,
    kind: "policy.evaluated",
    run: `run-${prefix}`,
    step: `s${i}`,
    call: `c${i}`,
    action: {
      tool: "read_file",
      args: { path: `/srv/${i}` },
      decision: { outcome: "allow", reason: "reading is allowed" },
    },
  }));
}

/** What the log's object writes from now on. */
async function countRows(log: TestLog): Promise<{ rows: number }> {
  const counted = { rows: 0 };
  await log.inside((state) => {
    const { sql } = state.storage;
    const exec = sql.exec.bind(sql);
    sql.exec = ((...args: Parameters<typeof exec>) => {
      const cursor = exec(...args);
      counted.rows += cursor.rowsWritten;
      return cursor;
    }) as typeof sql.exec;
  });
  return counted;
}

/** What D1 says was written there from now on. */
function countD1(): { rows: number } {
  const counted = { rows: 0 };
  const original = env.DB.batch.bind(env.DB);
  vi.spyOn(env.DB, "batch").mockImplementation((async (statements: D1PreparedStatement[]) => {
    const results = await original(statements);
    for (const { meta } of results) counted.rows += meta.rows_written;
    return results;
  }) as never);
  return counted;
}

describe("the cost of 1,000 entries, 100 a request", () => {
  it.each([
    ["all flushed and mirrored together", 10],
    ["flushed and mirrored after each request", 1],
  ])("is within its bounds, %s", async (_, requestsAnAlarm) => {
    const tenant = await newTenant();
    const log = new TestLog(tenant, "cost");
    await log.append(batch("warm", 24), "?wait=mirrored");
    await log.alarm();
    const object = await countRows(log);
    const d1 = countD1();
    const operations = (["put", "get", "head", "list", "delete"] as const).map((name) =>
      vi.spyOn(env.MIRROR, name),
    );
    for (let i = 0; i < 10; i++) {
      expect((await log.append(batch(`b${i}`, 100))).status).toBe(201);
      if ((i + 1) % requestsAnAlarm === 0) await log.alarm();
    }
    const { size, flushed, mirrored } = await log.progress();
    expect([size, flushed, mirrored]).toEqual([1024, 1024, 1024]);
    const prefix = await log.prefix();
    const r2 = operations
      .flatMap((spy) => spy.mock.calls)
      .filter(([key]) => String(key).startsWith(prefix)).length;
    const cost = { object: object.rows, d1: d1.rows, r2 };
    // The bounds that docs/performance.md states; with an alarm for each request the checkpoint alone is ten pairs.
    expect(cost.object).toBeLessThanOrEqual(80);
    expect(cost.d1).toBeLessThanOrEqual(3200);
    expect(cost.r2).toBeLessThanOrEqual(requestsAnAlarm === 10 ? 20 : 40);
  });
});

describe("the cost of taking 1,000 entries out of the log's object", () => {
  it("is within its bounds, and nothing while there is less than a step's", async () => {
    const tenant = await newTenant();
    const log = new TestLog(tenant, "pruned");
    stopPruning();
    for (let i = 0; i < 43; i++) await log.append(batch(`b${i}`, 100));
    await settle(log);
    restoreBounds();
    const { entries, ...others } = PRUNE_LIMITS;
    lowerBounds();
    Object.assign(PRUNE_LIMITS, { entries, ...others });
    await log.append(batch("last", 1), "?wait=mirrored");
    const object = await countRows(log);
    const operations = (["put", "get", "head", "list", "delete"] as const).map((name) =>
      vi.spyOn(env.MIRROR, name),
    );
    await settle(log);
    const prefix = await log.prefix();
    const count = (): { reads: number; others: number } => {
      const calls = operations.map(
        (spy) => spy.mock.calls.filter(([about]) => JSON.stringify(about).includes(prefix)).length,
      );
      const [put = 0, get = 0, head = 0, ...others] = calls;
      return { reads: get + head, others: others.reduce((sum, n) => sum + n, put) };
    };
    // 4,044 entries may go, a commit of 100 each: eight steps of 500 and no part of a ninth.
    expect(await prunedTo(log)).toEqual({ seq: 4000, segments: 4001 });
    const cost = count();
    expect(cost.reads / 4).toBeLessThanOrEqual(5);
    expect(cost.others).toBe(0);
    // A row for each segment that is deleted, and one for the step.
    expect(object.rows / 4).toBeLessThanOrEqual(12);
    await settle(log);
    expect(count()).toEqual(cost);
  });
});
