import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import { REBUILD_STEP } from "../../workers/logs/rebuild.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { clearIndex, comparable, readIndex } from "./index-copy.ts";
import { entries, entry, newTenant, problemOf, TestLog } from "./support.ts";

const bounds = { ...REBUILD_STEP };
let tenant: TestTenant;
beforeAll(() => {
  MIRROR_PACE.minPutInterval = 20;
});
beforeEach(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(REBUILD_STEP, bounds);
});

const operator = (path: string, body: unknown): Promise<Answer> =>
  call(env.RUNSEAL_OPERATOR_TOKEN, "POST", path, body);
const step = (body: unknown): Promise<Answer> => operator("/v1/admin/rebuild-index", body);

interface Step {
  done: boolean;
  cursor: string | null;
  tenant: string | null;
  logs: number;
}

/** Every step to the end. */
async function rebuild(only?: string): Promise<Step[]> {
  const steps: Step[] = [];
  for (let cursor: string | null = null; ; ) {
    const answer = await step({
      ...(only === undefined ? {} : { tenant: only }),
      ...(cursor === null ? {} : { cursor }),
    });
    expect(answer.status).toBe(200);
    const one = answer.body as unknown as Step;
    steps.push(one);
    if (one.done) return steps;
    cursor = one.cursor;
  }
}

describe("an index that is gone", () => {
  it("is filled again from the logs, row by row what it was, for every tenant", async () => {
    const other = await newTenant("other");
    const logs: TestLog[] = [];
    for (const [owner, name, count] of [
      [tenant, "a", 7],
      [tenant, "b", 300],
      [other, "a", 3],
    ] as const) {
      const log = new TestLog(owner, name);
      await log.append(entries(count), "?wait=mirrored");
      await log.append(
        entry({ run: "run-2", outcome: undefined, action: { tool: "x", args: { n: 1e21, t: "é\u2028" } } }),
      );
      expect((await log.get("/entries?limit=1")).status).toBe(200);
      logs.push(log);
    }
    for (const owner of [tenant, other])
      expect((await call(owner.key, "GET", "/v1/entries")).status).toBe(200);
    const before = await readIndex();
    const pages = await Promise.all(logs.map((log) => log.get("/entries?limit=1000")));
    await clearIndex();

    REBUILD_STEP.logs = 2;
    const steps = await rebuild();
    expect(steps.length).toBeGreaterThan(3);
    expect(comparable(await readIndex())).toEqual(comparable(before));
    for (const owner of [tenant, other]) {
      const { results } = await env.DB.prepare("SELECT pos FROM entries WHERE tenant = ? ORDER BY pos")
        .bind(owner.id)
        .all<{ pos: number }>();
      expect(results.map(({ pos }) => pos)).toEqual(results.map((_, i) => i + 1));
    }
    for (const [i, log] of logs.entries()) {
      expect((await log.get("/entries?limit=1000")).body.entries).toEqual(pages[i]?.body.entries);
      await log.check();
    }
    // Once more changes nothing.
    await rebuild();
    expect(comparable(await readIndex())).toEqual(comparable(before));
  });

  it("answers no query with less than all while it is filled", async () => {
    const names = ["q0", "q1", "q2"];
    const logs = names.map((name) => new TestLog(tenant, name));
    for (const log of logs) await log.append(entries(4));
    const sent = ({ body }: Answer): number =>
      (body.entries as unknown as { kind: string }[]).filter(({ kind }) => kind.startsWith("tool.")).length;
    expect(sent(await call(tenant.key, "GET", "/v1/entries"))).toBe(12);
    await clearIndex();
    REBUILD_STEP.logs = 1;
    const readers = [
      "/v1/entries?limit=1000",
      ...names.flatMap((name) =>
        ["entries", "runs", "runs/run-1", "entries/3", "verify", "export"].map(
          (path) => `/v1/principals/${name}/${path}`,
        ),
      ),
    ];
    const answers = new Map<string, number[]>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const answer = await step({ tenant: tenant.id, ...(cursor === undefined ? {} : { cursor }) });
      cursor = (answer.body as unknown as Step).cursor;
      for (const path of readers) {
        const got = await call(tenant.key, "GET", path);
        answers.set(path, [...(answers.get(path) ?? []), got.status]);
        if (got.status === 503) expect(problemOf(got)).toBe("index-rebuilding");
        else if (path.startsWith("/v1/entries"))
          // An export is recorded on the system log, which grows meanwhile.
          expect(sent(got)).toBe(12);
        else if (path.endsWith("/entries")) expect((got.body.entries as unknown as unknown[]).length).toBe(4);
        else if (path.endsWith("/verify")) expect(got.body.verdict).toBe("intact");
        else expect(got.status).toBe(200);
      }
    }
    expect(answers.get("/v1/entries?limit=1000")?.[0]).toBe(503);
    expect(answers.get("/v1/entries?limit=1000")?.at(-1)).toBe(200);
  });

  it("is filled in bounded steps for a long log too, and a step that fails is made again", async () => {
    const log = new TestLog(tenant, "long");
    for (let i = 0; i < 3; i++) await log.append(entries(900));
    await log.get("/entries?limit=1");
    await clearIndex();
    REBUILD_STEP.chunks = 1;
    const first = await step({ tenant: tenant.id });
    expect(first.body).toMatchObject({ done: false, cursor: `${tenant.id}.begun` });
    const failing = vi.spyOn(env.DB, "batch").mockImplementation(async () => {
      throw new Error("D1_ERROR: Network connection lost.");
    });
    const failed = await step({ tenant: tenant.id, cursor: first.body.cursor });
    expect([failed.status, failed.headers.get("retry-after")]).toEqual([503, "1"]);
    failing.mockRestore();
    // Old entries that D1 lacks again are no backlog: the log takes new ones.
    expect((await log.append(entry())).status).toBe(201);
    for (let cursor: string | null = String(first.body.cursor); cursor !== null; ) {
      cursor = ((await step({ tenant: tenant.id, cursor })).body as unknown as Step).cursor;
    }
    expect(await log.check()).toMatchObject({ size: 2701 });
  });

  it("is the operator's to fill, of tenants that are there", async () => {
    expect((await call(tenant.key, "POST", "/v1/admin/rebuild-index", {})).status).toBe(401);
    expect((await step({ tenant: "ab".repeat(16) })).status).toBe(404);
    expect((await step({ cursor: "nonsense" })).body.type).toContain("invalid-cursor");
    expect((await step({ tenant: tenant.id, cursor: `${"ab".repeat(16)}.begun` })).status).toBe(400);
  });
});

describe("an index that contradicts a log", () => {
  it("is emptied of the log, and filled anew", async () => {
    const log = new TestLog(tenant, "contradicted");
    const neighbour = new TestLog(tenant, "neighbour");
    await log.append(entries(5));
    await neighbour.append(entries(2));
    for (const one of [log, neighbour]) await one.get("/entries");
    const row = "log = (SELECT log FROM logs WHERE name = 'contradicted' AND tenant = ?)";
    await env.DB.prepare(
      `UPDATE entries SET content = replace(content, 'read_file', 'rm') WHERE seq = 2 AND ${row}`,
    )
      .bind(tenant.id)
      .run();
    await env.DB.prepare(`UPDATE logs SET last_hash = ? WHERE ${row}`).bind("ab".repeat(32), tenant.id).run();
    await log.append(entry());
    expect(problemOf(await log.get("/entries"))).toBe("index-conflict");
    expect((await log.get("/verify")).body.verdict).toBe("broken");
    const path = `/v1/tenants/${tenant.id}/principals/contradicted/reindex`;
    expect((await operator(path, undefined)).body).toEqual({ entries: 6 });
    await rebuild(tenant.id);
    expect(await log.check()).toMatchObject({ size: 6 });
    expect(await neighbour.check()).toMatchObject({ size: 2 });
    const { results } = await env.DB.prepare(`SELECT entries FROM runs WHERE ${row}`).bind(tenant.id).all();
    expect(results).toEqual([{ entries: 6 }]);
    expect((await call(tenant.key, "GET", "/v1/entries")).status).toBe(200);
  });
});
