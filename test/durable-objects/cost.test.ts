import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { newTenant, TestLog } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
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
