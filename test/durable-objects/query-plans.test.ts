import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ERASE_ROWS } from "../../durable-objects/content/erase-index.ts";
import { ENTRIES_BY_ID } from "../../durable-objects/principal-log/look-up.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { copyLog } from "./log-copy.ts";
import { emptyIndexOf, readUntilFilled } from "./pruned-log.ts";
import { noteStatements, planOf, plansOfEntries } from "./statements.ts";
import { entries, entry, newTenant, TestLog } from "./support.ts";

/** The ways to an entry that do not get longer with the log, as SQLite words them. */
const WAYS = {
  number: "INTEGER PRIMARY KEY (rowid=?)",
  "range of numbers": "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
  id: "INDEX entries_by_id (log=? AND id=?)",
  "range of ids": "INDEX entries_by_id (log=? AND id>? AND id<?)",
  arrival: "INDEX entries_by_arrival (tenant=?)",
  "arrival after a place": "INDEX entries_by_arrival (tenant=? AND pos>?)",
} as const;
type Way = keyof typeof WAYS;

/** The way that a line of a plan goes; the line itself where it goes another one. */
function wayOf(line: string): string {
  const way = Object.entries(WAYS).find(
    ([, words]) => line.startsWith("SEARCH ") && line.includes(` USING ${words}`),
  );
  return way?.[0] ?? line;
}

let tenant: TestTenant;
let log: TestLog;
const get = (path: string): Promise<Answer> => call(tenant.key, "GET", path);
const post = (path: string, body: unknown): Promise<Answer> => call(tenant.key, "POST", path, body);

const RECHECK = { policy: { rules: { side_effects: {} } } };

beforeAll(async () => {
  MIRROR_PACE.minPutInterval = 20;
  tenant = await newTenant();
  log = new TestLog(tenant, "read");
  await log.append([
    { kind: "run.created", run: "a", action: { goal: "g" } },
    entry({ run: "a", session: "s", action: { tool: "t", args: {} } }),
    ...entries(3),
  ]);
  await readUntilFilled(log);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** What is asked of the service, and the ways that D1 goes to the entries for it: these, and no other. */
const READS: [string, readonly Way[], () => Promise<Answer>][] = [
  ["a log's entries", ["range of numbers"], () => log.get("/entries")],
  ["a log's entries from one on", ["range of numbers"], () => log.get("/entries?from=2")],
  ["a log's entries up to one", ["range of numbers"], () => log.get("/entries?to=3")],
  ["a log's entries in a range", ["range of numbers"], () => log.get("/entries?from=2&to=3")],
  ["one entry", ["range of numbers"], () => log.get("/entries/2")],
  ["a log's entries of a run", ["range of numbers"], () => log.get("/entries?run=a")],
  ["a log's entries of a run in a range", ["range of numbers"], () => log.get("/entries?run=a&from=2&to=3")],
  ["a log's entries of kinds", ["range of numbers"], () => log.get("/entries?kind=run.created,run.started")],
  [
    "a log's entries by the other columns",
    ["range of numbers"],
    () =>
      log.get("/entries?session=s&tool=t&status=ok&since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00Z"),
  ],
  ["the tenant's entries", ["arrival after a place"], () => get("/v1/entries")],
  [
    "the tenant's entries by their columns",
    ["arrival after a place"],
    () => get("/v1/entries?run=a&kind=run.created&session=s&tool=t&since=2020-01-01T00:00:00Z"),
  ],
  ["a run", ["range of numbers"], () => log.get("/runs/a")],
  ["the evaluations of a run", ["range of numbers"], () => log.get("/runs/a/evaluations")],
  ["a verification", ["range of numbers"], () => log.get("/verify")],
  ["an export", ["range of numbers"], () => log.get("/export")],
  ["the audit of a run", ["range of numbers"], () => log.get("/runs/a/audit")],
  [
    "the audit of the newest run with a call",
    ["number", "range of numbers"],
    () => post("/v1/audits", { expected: { tool_name: "t" } }),
  ],
  [
    "the audit of a run by its name",
    ["number", "range of numbers"],
    () => post("/v1/audits", { run_id: "a" }),
  ],
  ["the recheck of a run", ["range of numbers"], () => post(`${log.path}/runs/a/recheck`, RECHECK)],
  [
    "a recheck of every run",
    ["range of numbers"],
    () => post("/v1/rechecks?wait=30", { ...RECHECK, selection: {} }),
  ],
  [
    "a recheck of the runs of a time",
    ["number", "range of numbers"],
    () =>
      post("/v1/rechecks?wait=30", {
        ...RECHECK,
        selection: { since: "2020-01-01T00:00:00Z", until: "2100-01-01T00:00:00Z" },
      }),
  ],
  [
    "a recheck of the newest runs",
    ["number", "range of numbers"],
    () => post("/v1/rechecks?wait=30", { ...RECHECK, selection: { newest: 5 } }),
  ],
];

/** The ways that D1 goes to the entries for what `work` has it asked. */
async function waysOf(work: () => Promise<unknown>): Promise<Set<string>> {
  const noted = noteStatements();
  await work();
  vi.restoreAllMocks();
  const steps = (await plansOfEntries(noted)).flatMap((plan) => {
    const isInsert = plan.sql.startsWith("INSERT INTO entries ");
    expect([plan.sql, isInsert || plan.steps.length > 0]).toEqual([plan.sql, true]);
    return plan.steps;
  });
  return new Set(steps.map(wayOf));
}

describe("D1 finds entries by index, however long the log is", () => {
  it.each(READS)("for %s", async (_name, ways, read) => {
    const found = await waysOf(async () => {
      const answer = await read();
      expect(answer.status, answer.text).toBeLessThan(300);
    });
    expect(found).toEqual(new Set(ways));
  });

  it("for a log whose object lost its entries", async () => {
    const lost = new TestLog(tenant, "lost");
    await lost.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(lost);
    await lost.append(entries(5), "?wait=mirrored");
    await readUntilFilled(lost);
    await restore();
    const found = await waysOf(async () => {
      expect((await lost.get("/head")).body).toMatchObject({ size: 8 });
    });
    expect(found).toEqual(new Set(["range of numbers"]));
  });

  it("for a log that is taken out of D1, and put in again", async () => {
    const again = new TestLog(tenant, "again");
    await again.append(entries(5));
    await readUntilFilled(again);
    const found = await waysOf(async () => {
      await emptyIndexOf(again);
      await readUntilFilled(again);
    });
    expect(found).toEqual(new Set(["number", "range of numbers"]));
    expect((await again.check()).size).toBe(5);
  });

  it("for a chunk whose rows were there already", async () => {
    const twice = new TestLog(tenant, "twice");
    await twice.append(entries(3));
    await readUntilFilled(twice);
    await env.DB.prepare("UPDATE logs SET last_seq = 0, last_hash = log_id WHERE name = ? AND tenant = ?")
      .bind("twice", tenant.id)
      .run();
    await twice.evict();
    const found = await waysOf(async () => {
      await twice.append(entry());
      await readUntilFilled(twice);
    });
    expect(found).toEqual(new Set(["range of numbers"]));
    expect((await twice.check()).size).toBe(4);
  });

  it("for a rebuild of the tenant's index", async () => {
    const found = await waysOf(async () => {
      const request = { tenant: tenant.id };
      for (let cursor: unknown = null, done: unknown = false; done !== true; ) {
        const body = cursor === null ? request : { ...request, cursor };
        const answer = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/admin/rebuild-index", body);
        expect(answer.status, answer.text).toBe(200);
        ({ cursor, done } = answer.body);
      }
    });
    expect(found).toEqual(new Set(["arrival"]));
  });

  it("for a policy that is put, put again, and compared with the log", async () => {
    const policy = { rules: { side_effects: {} } };
    const found = await waysOf(async () => {
      for (const status of [201, 200]) {
        expect((await call(tenant.key, "PUT", "/v1/policies/planned", policy)).status).toBe(status);
        expect((await get("/v1/principals/$system/entries?limit=1")).status).toBe(200);
      }
      const body = { tenant: tenant.id };
      const rebuilt = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/admin/rebuild-index", body);
      expect(rebuilt.body).toMatchObject({ done: true, refused: 0 });
    });
    expect(found).toEqual(new Set(["id", "range of ids", "range of numbers", "arrival"]));
  });

  it("for an erasure", async () => {
    const found = await waysOf(async () => {
      const answer = await post(`${log.path}/erasures`, { seq: 1, reason: "asked for" });
      expect(answer.status, answer.text).toBe(200);
    });
    expect(found).toEqual(new Set(["number"]));
  });

  it("for ids", async () => {
    expect((await planOf(ENTRIES_BY_ID)).map(wayOf)).toContain("id");
  });
});

describe("D1 goes through a list of entries once, and not once more for each of them", () => {
  it.each([
    ["ids", ENTRIES_BY_ID],
    ["places to erase", ERASE_ROWS],
  ])("of %s", async (_name, sql) => {
    const tables = (await planOf(sql)).flatMap((line) => /^(?:SCAN|SEARCH) (\w+)/.exec(line)?.[1] ?? []);
    const lists = tables.filter((table) => ["i", "r", "json_each"].includes(table));
    expect([tables[0], lists.length]).toEqual([lists[0], 1]);
  });
});
