import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { queryRunFacts, queryRunInLog } from "../../workers/index-db/audits.ts";
import { queryForVerify, queryLog } from "../../workers/index-db/entries.ts";
import { call, entries, entry, newTenant } from "./support.ts";

const SIZE = 600;
let logId: string;

/** D1, and the rows that it read for the first statement of the last batch. */
function counted(): { db: D1DatabaseSession; rows: () => number } {
  let rows = 0;
  const count = <T>(results: D1Result<T>[]): D1Result<T>[] => {
    rows = results[0]?.meta.rows_read ?? 0;
    return results;
  };
  const prepare = (sql: string): D1PreparedStatement => {
    const statement = env.DB.prepare(sql);
    const bind = statement.bind.bind(statement);
    statement.bind = (...values: unknown[]) => {
      const bound = bind(...values);
      const all = bound.all.bind(bound);
      bound.all = async <T>() => count<T>([await all<T>()])[0] as D1Result<T>;
      return bound;
    };
    return statement;
  };
  const db = {
    prepare,
    batch: async <T>(statements: D1PreparedStatement[]) => count(await env.DB.batch<T>(statements)),
  };
  return { db: db as unknown as D1DatabaseSession, rows: () => rows };
}

beforeAll(async () => {
  const tenant = await newTenant();
  for (let i = 0; i < SIZE / 100; i++) {
    // A run whose entries lie all over the log, between others.
    const sent = [...entries(99), entry({ run: "long" })];
    await call(tenant.key, "POST", "/v1/principals/counted/entries", sent);
  }
  expect((await call(tenant.key, "GET", "/v1/principals/counted/entries?limit=1")).status).toBe(200);
  const row = await env.DB.prepare("SELECT log_id FROM logs WHERE tenant = ? AND name = 'counted'")
    .bind(tenant.id)
    .first<{ log_id: string }>();
  logId = row?.log_id ?? "";
});

describe("D1 reads the rows that are asked for, wherever in the log they lie", () => {
  const all: [string, number, (db: D1DatabaseSession) => Promise<{ rows: readonly unknown[] }>][] = [
    ["one entry", 1, (db) => queryLog(db, logId, { from: 450, to: 450 }, 0, 1)],
    ["a page after another", 10, (db) => queryLog(db, logId, {}, 450, 10)],
    ["a page from a place on", 10, (db) => queryLog(db, logId, { from: 450 }, 0, 10)],
    ["a page up to a place", 10, (db) => queryLog(db, logId, { to: 460 }, 450, 20)],
    ["the end of a run", 1, (db) => queryLog(db, logId, { run: "long" }, 590, 20)],
    ["a run up to a place", 1, (db) => queryLog(db, logId, { run: "long", to: 110 }, 0, 20)],
    ["rows to verify", 10, (db) => queryForVerify(db, logId, 450, 459, 100)],
    [
      "a run's facts",
      0,
      (db) => queryRunFacts(db, logId, "long", { first_seq: 100, last_seq: 600 }, undefined, 590, 10),
    ],
    ["a run with what bears on it", 1, (db) => queryRunInLog(db, logId, "long", [], 590, 600, 10)],
  ];
  it.each(all)("%s", async (_name, expected, ask) => {
    const { db, rows } = counted();
    const page = await ask(db);
    expect(page.rows).toHaveLength(expected);
    // The windows over the page read its rows again, twice.
    expect(rows()).toBeLessThan(150);
    expect(rows()).toBeGreaterThan(0);
  });
});
