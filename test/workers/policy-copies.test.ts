/**
 * Policies and tool specs outlive D1: R2 has what it needs to get them back, and the system log says what is true of it.
 */
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { canonicalJson } from "../../shared/json/canonical.ts";
import type { Env } from "../../workers/env.ts";
import type { Problem } from "../../workers/http/problem.ts";
import { COPIES_STEP } from "../../workers/logs/restore-copies.ts";
import { readSpecs, SPEC_LOOKUPS } from "../../workers/tools/read-specs.ts";
import { breakGets, breakPuts } from "../durable-objects/faults.ts";
import { clearIndex } from "../durable-objects/index-copy.ts";
import { CEDAR, lose, problemOf, RULES, rebuild, rowsOf, STRICT, step } from "./policies-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entry, newTenant } from "./support.ts";

const NAMED = { cedar: "permit(principal, action, resource);", policy_id: "acme/v7" };
const MODULE = { module: 'export function decide() { return { outcome: "allow" }; }' };

const bounds = { ...COPIES_STEP };
let tenant: TestTenant;
let lines: string[];
beforeEach(async () => {
  tenant = await newTenant();
  lines = [];
  vi.spyOn(console, "log").mockImplementation((line) => void lines.push(String(line)));
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(COPIES_STEP, bounds);
});

const put = (name: string, body: unknown, of = tenant): Promise<Answer> =>
  call(of.key, "PUT", `/v1/policies/${name}`, body);
const get = (path: string, of = tenant) => call(of.key, "GET", `/v1/policies${path}`);
const keyOf = (path: string, of = tenant) => `t/${of.id}/${path}`;

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function putSpec(spec: unknown, of = tenant): Promise<{ hash: string; answer: Answer }> {
  const hash = await sha256(canonicalJson(JSON.stringify(spec)));
  return { hash, answer: await call(of.key, "PUT", `/v1/tools/${hash}`, spec) };
}

const getSpec = (hash: string): Promise<Answer> => call(tenant.key, "GET", `/v1/tools/${hash}`);
const rows = (of = [tenant]) => rowsOf(of);
const refusals = () => lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "copy-refused");

describe("what is stored", () => {
  it("is in R2 once for each content, before it is shown", async () => {
    const puts = vi.spyOn(env.MIRROR, "put");
    const written = () =>
      puts.mock.calls.map(([key]) => String(key)).filter((key) => /\/(policies|tools)\//.test(key));
    const first = await put("team", STRICT);
    await put("team", STRICT);
    const second = await put("team", CEDAR);
    const { hash } = await putSpec({ name: "b<", side_effect: "read_only" });
    await putSpec({ side_effect: "read_only", name: "b<" });
    expect(written()).toEqual(
      ["policies/team/1", "policies/team/2", `tools/${hash}`].map((key) => keyOf(key)),
    );
    const text = await (await env.MIRROR.get(keyOf("policies/team/1")))?.text();
    expect(text).toBe(canonicalJson(text ?? ""));
    expect(JSON.parse(text ?? "")).toEqual({ ...first.body, source: canonicalJson(JSON.stringify(STRICT)) });
    expect(second.body.version).toBe(2);
    expect(await (await env.MIRROR.get(keyOf(`tools/${hash}`)))?.text()).toBe(
      '{"name":"b\\u003c","side_effect":"read_only"}',
    );
  });

  it("is not shown where R2 is away, and the same request finishes it", async () => {
    await put("team", RULES);
    for (const [fault, body, version] of [
      ["fails", STRICT, 2],
      ["fails but persisted", CEDAR, 3],
    ] as const) {
      const broken = breakPuts(fault, (key) => key.includes("/policies/"));
      const failed = await put("team", body);
      expect([...problemOf(failed), failed.headers.get("retry-after")]).toEqual([
        503,
        "mirror-unavailable",
        "2",
      ]);
      expect((await get("/team")).body.version).toBe(version - 1);
      expect((await get(`/team?version=${version}`)).status).toBe(404);
      broken.mend();
      const again = await put("team", body);
      expect([again.status, again.body.version]).toEqual([201, version]);
      const text = await (await env.MIRROR.get(keyOf(`policies/team/${version}`)))?.text();
      expect(JSON.parse(text ?? "")).toMatchObject(again.body);
    }
    const entries = await call(
      tenant.key,
      "GET",
      "/v1/principals/$system/entries?kind=policy.stored&limit=1000",
    );
    expect(entries.body.entries).toHaveLength(3);
    for (const fault of ["fails", "fails but persisted"] as const) {
      const broken = breakPuts(fault, (key) => key.includes("/tools/"));
      const { hash, answer } = await putSpec({ name: fault });
      expect([...problemOf(answer), answer.headers.get("retry-after")]).toEqual([
        503,
        "mirror-unavailable",
        "2",
      ]);
      // What R2 took is the spec of that hash, whoever was told so.
      expect((await getSpec(hash)).status).toBe(fault === "fails" ? 404 : 200);
      broken.mend();
      expect((await putSpec({ name: fault })).answer.status).toBe(200);
      expect((await call(tenant.key, "GET", `/v1/tools/${hash}`)).body).toEqual({ name: fault });
    }
  });

  it("gets its object when it is sent again, where it was stored before R2 had any", async () => {
    await put("team", RULES);
    const { hash } = await putSpec({ name: "t" });
    const keys = [keyOf("policies/team/1"), keyOf(`tools/${hash}`)];
    await env.MIRROR.delete(keys);
    const before = await rows();
    expect((await put("team", RULES)).status).toBe(200);
    expect((await putSpec({ name: "t" })).answer.status).toBe(200);
    for (const key of keys) expect(await env.MIRROR.head(key)).not.toBeNull();
    expect(await rows()).toEqual(before);
    await lose();
    expect((await rebuild(tenant)).restored).toBe(2);
  });

  it("keeps its time where the database lost the row before it was shown", async () => {
    const first = await put("team", RULES);
    await lose();
    const again = await put("team", RULES);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await get("/team")).body).toMatchObject(first.body);
  });

  it("leaves another object in the place of a version as it is, and is not shown", async () => {
    const there = JSON.stringify({ created_at: "2026-01-01T00:00:00.000Z", source: "{}" });
    await env.MIRROR.put(keyOf("policies/team/1"), there);
    expect(problemOf(await put("team", RULES))).toEqual([503, "mirror-unavailable"]);
    expect((await get("/team")).status).toBe(404);
    expect(await (await env.MIRROR.get(keyOf("policies/team/1")))?.text()).toBe(there);
    expect(lines.map((line) => JSON.parse(line).event)).toContain("copy-altered");
    // It came between the look and the put.
    const original = env.MIRROR.get.bind(env.MIRROR) as (key: string) => Promise<R2ObjectBody | null>;
    let looks = 0;
    const early = vi
      .spyOn(env.MIRROR, "get")
      .mockImplementation((async (key: string) =>
        key === keyOf("policies/team/1") && looks++ === 0 ? null : original(key)) as never);
    expect(problemOf(await put("team", RULES))).toEqual([503, "mirror-unavailable"]);
    early.mockRestore();
    expect([looks, await (await env.MIRROR.get(keyOf("policies/team/1")))?.text()]).toEqual([2, there]);
    await env.MIRROR.delete(keyOf("policies/team/1"));
    expect((await put("team", RULES)).status).toBe(201);
  });

  it("replaces another object in the place of a spec", async () => {
    const { hash } = await putSpec({ name: "t" });
    for (const options of [{}, { sha256: await sha256('{"name":"u"}') }]) {
      await env.MIRROR.put(keyOf(`tools/${hash}`), '{"name":"u"}', options);
      expect((await putSpec({ name: "t" })).answer.status).toBe(200);
      expect(await (await env.MIRROR.get(keyOf(`tools/${hash}`)))?.text()).toBe('{"name":"t"}');
    }
  });
});

describe("what D1 lost", () => {
  it("comes back row by row what it was, in bounded steps, for every tenant", async () => {
    const other = await newTenant("other");
    for (const body of [RULES, STRICT, CEDAR, NAMED, MODULE]) await put("team.a:b-c", body);
    for (let i = 0; i < 11; i++) await put("many", { cedar: `permit(principal, action, resource); // ${i}` });
    await put("team.a:b-c", STRICT, other);
    for (const of of [tenant, other])
      for (const name of ["s1", "s2", "s3"]) await putSpec({ name, description: "é<\u2028" }, of);
    const before = await rows([tenant, other]);
    // A spec's time is the one of its object.
    const comparable = (all: Record<string, unknown>[]) =>
      all.map((row) => ("spec" in row ? { ...row, created_at: null } : row));
    await lose();

    COPIES_STEP.objects = 2;
    COPIES_STEP.keys = 5;
    const done = await rebuild();
    expect(done.steps).toBeGreaterThan(12);
    expect(comparable(await rows([tenant, other]))).toEqual(comparable(before));

    const gets = vi.spyOn(env.MIRROR, "get");
    expect(await rebuild(tenant)).toMatchObject({ restored: 0, refused: 0 });
    expect(gets.mock.calls.filter(([key]) => /\/(policies|tools)\//.test(String(key)))).toEqual([]);
    expect(comparable(await rows([tenant, other]))).toEqual(comparable(before));
    expect((await put("many", { cedar: "permit(principal, action, resource); // 9" })).body.version).toBe(10);
  });

  it.each([
    ["bytes", 1],
    ["objects", 1],
    ["keys", 1],
  ] as const)("comes back in steps of few %s", async (bound, value) => {
    for (const body of [RULES, STRICT, CEDAR]) await put("team", body);
    await lose();
    COPIES_STEP[bound] = value;
    const done = await rebuild(tenant);
    expect([done.steps >= 3, done.restored]).toEqual([true, 3]);
    // All of them are passed over where nothing is missing, too.
    await env.DB.prepare("DELETE FROM policies WHERE tenant = ? AND version = 3").bind(tenant.id).run();
    expect((await rebuild(tenant)).restored).toBe(1);
  });

  it("comes back with the rest of the tenant by readers alone, who see nothing of it before", async () => {
    for (const body of [RULES, STRICT, CEDAR]) await put("team", body);
    await putSpec({ name: "t" });
    await call(tenant.key, "POST", "/v1/principals/a/entries", entry());
    expect((await call(tenant.key, "GET", "/v1/entries")).status).toBe(200);
    const before = await rows();
    await clearIndex();
    await lose();
    COPIES_STEP.objects = 1;
    const stored = { policy: { name: "team" } };
    const readers = [
      () => get("/team"),
      () => get(""),
      () => get("/team/versions"),
      () => get("/team/diff?from=1"),
      () => call(tenant.key, "POST", "/v1/principals/a/runs/run-1/recheck", stored),
    ];
    // The first who reads the whole tenant finds that it is gone.
    expect(problemOf(await call(tenant.key, "GET", "/v1/entries"))).toEqual([503, "index-rebuilding"]);
    const statuses: number[] = [];
    for (let i = 0; i < 10 && statuses.at(-1) !== 200; i++) {
      const answer = (await readers[i % readers.length]?.()) as Answer;
      statuses.push(answer.status);
      if (answer.status !== 200) expect(problemOf(answer)).toEqual([503, "index-rebuilding"]);
    }
    expect(statuses[0]).toBe(503);
    expect(statuses.at(-1)).toBe(200);
    for (const reader of readers) expect((await reader()).status).toBe(200);
    expect((await get("/team")).body.version).toBe(3);
    expect((await rows()).length).toBe(before.length);
  });

  it("waits for R2", async () => {
    await put("team", RULES);
    await putSpec({ name: "t" });
    await lose();
    const broken = breakGets((key) => key.includes("/policies/"));
    const failed = await step({ tenant: tenant.id });
    expect([...problemOf(failed), failed.headers.get("retry-after")]).toEqual([
      503,
      "mirror-unavailable",
      "2",
    ]);
    broken.mend();
    const list = vi.spyOn(env.MIRROR, "list").mockImplementation(async () => {
      throw new Error("list: Unspecified error (0)");
    });
    expect(problemOf(await step({ tenant: tenant.id }))).toEqual([503, "mirror-unavailable"]);
    expect(problemOf(await step({}))).toEqual([503, "mirror-unavailable"]);
    list.mockRestore();
    expect(await rebuild(tenant)).toMatchObject({ restored: 2, refused: 0 });
  });

  it("takes the place of what was reserved meanwhile", async () => {
    const first = await put("team", RULES);
    const second = await put("team", STRICT);
    const third = await put("team", CEDAR);
    await lose();
    const reserve = (version: number, hash: unknown) =>
      env.DB.prepare(
        "INSERT INTO policies (tenant, name, version, policy_id, engine, source, created_at, hash, stored) VALUES (?, 'team', ?, 'x', 'rules', '{}', 'x', ?, 0)",
      ).bind(tenant.id, version, hash);
    // One of another content, one of its own content, and one of its content under another number.
    await env.DB.batch([
      reserve(1, "ab".repeat(32)),
      reserve(2, second.body.hash),
      reserve(9, third.body.hash),
    ]);
    expect(await rebuild(tenant)).toMatchObject({ restored: 3, refused: 0 });
    const { versions } = (await get("/team/versions")).body;
    expect(versions).toEqual([third, second, first].map(({ body }) => body));
    expect((await get("/team?version=2")).body.policy).toEqual(STRICT);
  });

  it("is put back whatever was stored under a further number meanwhile", async () => {
    const [first, second] = [await put("team", RULES), await put("team", STRICT)];
    await lose();
    const third = await put("team", CEDAR);
    expect([third.status, third.body.version]).toEqual([201, 3]);
    expect((await put("team", STRICT)).body).toEqual(second.body);
    expect((await get("/team")).body.version).toBe(3);
    // The content of the first one is shown as another version already, which an earlier release could bring about.
    await env.DB.prepare(
      "INSERT INTO policies SELECT tenant, name, 9, policy_id, engine, source, created_at, ?, 1 FROM policies WHERE tenant = ? AND version = 3",
    )
      .bind(first.body.hash, tenant.id)
      .run();
    expect(await rebuild(tenant)).toMatchObject({ restored: 1, refused: 0 });
    expect((await get("/team?version=1")).body).toMatchObject(first.body);
  });

  it("is told as refused to the operator, also where readers made the steps", async () => {
    for (const body of [RULES, STRICT, CEDAR, NAMED]) await put("team", body);
    const bad = [2, 3, 4].map((version) => keyOf(`policies/team/${version}`));
    for (const key of bad) await env.MIRROR.put(key, "garbage");
    await lose();
    COPIES_STEP.objects = 1;
    const begun = (await step({ tenant: tenant.id })).body as unknown as { cursor: string; refused: number };
    expect(begun.refused).toBe(0);
    expect(problemOf(await get("/team"))).toEqual([503, "index-rebuilding"]);
    expect(refusals().length).toBe(1);
    expect((await rebuild(tenant, begun.cursor)).refused).toBe(3);
    // All that is left by readers, who make the same steps at once. Each rebuild counts for itself.
    await step({ tenant: tenant.id });
    for (let i = 0; i < 4; i++) await Promise.all([get("/team"), get("/team"), get("/team")]);
    expect((await rebuild(tenant, begun.cursor)).refused).toBe(3);
    await env.MIRROR.delete(bad);
    expect((await rebuild(tenant)).refused).toBe(0);
  });

  it("is told as refused by a directory that an earlier release made", async () => {
    await put("team", RULES);
    await env.MIRROR.put(keyOf("policies/team/1"), "garbage");
    await lose();
    const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
    await runInDurableObject(directory, (_, { storage }) => {
      storage.sql.exec("ALTER TABLE index_copies DROP COLUMN refused");
    });
    await evictDurableObject(directory);
    expect((await rebuild(tenant)).refused).toBe(1);
  });

  it("is passed over where D1 does not take it, and waited for where D1 is away", async () => {
    const [, bad] = [await put("good", RULES), await put("bad", STRICT)];
    await lose();
    const original = env.DB.batch.bind(env.DB) as D1Database["batch"];
    const broken = vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
      if (!JSON.stringify(statements).includes("INSERT INTO policies")) return original(statements);
      throw new Error("D1_ERROR: Network connection lost.");
    });
    expect((await step({ tenant: tenant.id })).status).toBe(503);
    expect([broken.mock.calls.length > 0, refusals()]).toEqual([true, []]);
    broken.mockRestore();
    await env.DB.prepare(
      `CREATE TRIGGER no_bad BEFORE INSERT ON policies WHEN NEW.hash = '${bad.body.hash}' BEGIN SELECT RAISE(ABORT, 'no'); END`,
    ).run();
    expect(await rebuild(tenant)).toMatchObject({ restored: 1, refused: 1 });
    expect(refusals().map(({ key, why }) => [key, why])).toEqual([["policies/bad/1", "D1 does not take it"]]);
    await env.DB.prepare("DROP TRIGGER no_bad").run();
    expect(await rebuild(tenant)).toMatchObject({ restored: 1, refused: 0 });
    expect((await get("/bad")).body).toMatchObject(bad.body);
  });

  it("is shown by a rebuild as soon as it is recorded and in R2, whatever its request was answered", async () => {
    await put("team", RULES);
    const broken = breakPuts("fails but persisted", (key) => key.includes("/policies/"));
    expect((await put("team", STRICT)).status).toBe(503);
    broken.mend();
    expect((await get("/team")).body.version).toBe(1);
    expect((await rebuild(tenant)).restored).toBe(1);
    expect((await get("/team")).body).toMatchObject({ version: 2, policy: STRICT });
  });
});

describe("a row of a version that somebody changed in D1", () => {
  const other = JSON.stringify(RULES);
  const changes: [string, () => Promise<string>][] = [
    ["its source", async () => `source = '${other}'`],
    ["its hash", async () => `hash = '${await sha256(other)}'`],
    ["both", async () => `source = '${other}', hash = '${await sha256(other)}'`],
    ["what it says of its source", async () => "policy_id = 'x', engine = 'cedar'"],
  ];

  it.each(changes)(
    "is made what the log records by the same policy, and by a rebuild: %s",
    async (_, set) => {
      const [, second] = [await put("team", CEDAR), await put("team", STRICT)];
      const before = await rows();
      const alter = async () =>
        env.DB.prepare(`UPDATE policies SET ${await set()} WHERE tenant = ? AND version = 2`)
          .bind(tenant.id)
          .run();
      for (const mend of [() => put("team", STRICT), () => rebuild(tenant)]) {
        await alter();
        expect(await rows()).not.toEqual(before);
        const mended = await mend();
        expect("status" in mended ? [mended.status, mended.body] : mended.restored).toEqual(
          "status" in mended ? [200, second.body] : 1,
        );
        expect(await rows()).toEqual(before);
      }
      const named = lines
        .map((line) => JSON.parse(line))
        .filter(({ event }) => event === "policy-row-replaced");
      expect(named.map(({ key }) => key)).toEqual(["policies/team/2", "policies/team/2"]);
    },
  );

  it("is found in bounded steps", async () => {
    for (const body of [RULES, STRICT, CEDAR]) await put("team", body);
    await env.DB.prepare("UPDATE policies SET source = '{}' WHERE tenant = ?").bind(tenant.id).run();
    COPIES_STEP.bytes = 3;
    const done = await rebuild(tenant);
    expect([done.steps >= 3, done.restored]).toEqual([true, 3]);
    const statements = vi.spyOn(env.DB, "prepare");
    expect((await rebuild(tenant)).steps).toBeGreaterThanOrEqual(3);
    expect(statements.mock.calls.filter(([sql]) => sql.includes("source FROM policies")).length).toBe(3);
  });
});

describe("a tool spec", () => {
  const SPEC = { name: "t", side_effect: "destructive" };
  const key = (hash: string) => keyOf(`tools/${hash}`);
  const alter = () =>
    env.DB.prepare("UPDATE tool_specs SET spec = ? WHERE tenant = ?").bind('{"name":"t"}', tenant.id).run();

  it.each([
    ["lost", lose],
    ["altered", alter],
  ])("that D1 has %s is what R2 holds under its hash, and is in D1 again", async (what, spoil) => {
    const { hash } = await putSpec(SPEC);
    const before = (await rows()).map(({ spec }) => spec);
    await spoil();
    const gets = vi.spyOn(env.MIRROR, "get");
    for (let i = 0; i < 3; i++) expect((await getSpec(hash)).body).toEqual(SPEC);
    expect(gets.mock.calls.filter(([of]) => of === key(hash))).toHaveLength(1);
    expect((await rows()).map(({ spec }) => spec)).toEqual(before);
    const told = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "row-altered");
    expect(told).toEqual(
      what === "lost" ? [] : [{ event: "row-altered", tenant: tenant.id, key: `tools/${hash}` }],
    );
  });

  it("that is altered is mended by whoever sends it again, and by a rebuild", async () => {
    await putSpec(SPEC);
    await putSpec({ name: "untouched" });
    const before = await rows();
    await env.DB.prepare("UPDATE tool_specs SET spec = '{}' WHERE tenant = ? AND spec LIKE '%destructive%'")
      .bind(tenant.id)
      .run();
    expect((await putSpec(SPEC)).answer.status).toBe(200);
    expect(await rows()).toEqual(before);
    await alter();
    expect(await rebuild(tenant)).toMatchObject({ restored: 2, refused: 0 });
    expect(await rows()).toEqual(before);
    expect(await rebuild(tenant)).toMatchObject({ restored: 0, refused: 0 });
  });

  it("that D1 and R2 hold nowhere as it was is a conflict, and never another one", async () => {
    const { hash } = await putSpec(SPEC);
    await alter();
    await env.MIRROR.delete(key(hash));
    expect(problemOf(await getSpec(hash))).toEqual([503, "index-conflict"]);
    await env.MIRROR.put(key(hash), '{"name":"t"}');
    expect(problemOf(await getSpec(hash))).toEqual([503, "index-conflict"]);
    await lose();
    expect(problemOf(await getSpec(hash))).toEqual([503, "index-conflict"]);
    await putSpec(SPEC);
    expect((await getSpec(hash)).body).toEqual(SPEC);
  });

  it("that nobody stored is looked for in R2 once, and is not said to be missing while R2 is away", async () => {
    const hash = await sha256('{"name":"nobody\'s"}');
    const broken = breakGets((of) => of === key(hash));
    expect(problemOf(await getSpec(hash))).toEqual([503, "mirror-unavailable"]);
    broken.mend();
    const gets = vi.spyOn(env.MIRROR, "get");
    for (let i = 0; i < 3; i++) expect((await getSpec(hash)).status).toBe(404);
    expect(gets.mock.calls.filter(([of]) => of === key(hash))).toHaveLength(1);
    // Once it is stored, it is there at once.
    expect((await putSpec({ name: "nobody's" })).hash).toBe(hash);
    expect((await getSpec(hash)).status).toBe(200);
  });
});

describe("more tool specs than one call looks up in R2", () => {
  const asked = { ...SPEC_LOOKUPS };
  afterEach(() => void Object.assign(SPEC_LOOKUPS, asked));
  const putSpecs = async (count: number): Promise<string[]> => {
    const stored = await Promise.all(Array.from({ length: count }, (_, n) => putSpec({ name: `t${n}` })));
    return stored.map(({ hash }) => hash).sort();
  };
  const unknown = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => sha256(`nobody's ${n}`)));
  const read = (hashes: readonly string[]) => readSpecs(env as unknown as Env, tenant.id, hashes);
  const refused = (hashes: readonly string[]) => read(hashes).catch(({ code }: Problem) => code);

  it("are listed, and those that nobody stored are neither got nor listed again", async () => {
    const stored = await putSpecs(3);
    await lose();
    const [gets, lists] = [vi.spyOn(env.MIRROR, "get"), vi.spyOn(env.MIRROR, "list")];
    const hashes = [...stored, ...(await unknown(1500))];
    for (let i = 0; i < 2; i++) expect([...(await read(hashes)).keys()].sort()).toEqual(stored);
    const of = (keys: readonly unknown[]) => keys.filter((key) => String(key).startsWith(keyOf("tools/")));
    expect(of(gets.mock.calls.map(([key]) => key)).sort()).toEqual(
      stored.map((hash) => keyOf(`tools/${hash}`)),
    );
    expect(of(lists.mock.calls.map(([options]) => options?.prefix))).toHaveLength(1);
  });

  it("are asked of D1 in statements whose text it takes", async () => {
    const sizes: number[] = [];
    const prepare = env.DB.prepare.bind(env.DB);
    vi.spyOn(env.DB, "prepare").mockImplementation((sql) => {
      const statement = prepare(sql);
      if (!sql.includes("FROM tool_specs")) return statement;
      const bind = statement.bind.bind(statement);
      return Object.assign(statement, {
        bind: (...values: unknown[]) => {
          if (values[0] === tenant.id) sizes.push(...values.map((value) => String(value).length));
          return bind(...values);
        },
      });
    });
    const hashes = Array.from({ length: 35_000 }, (_, n) => n.toString(16).padStart(64, "0"));
    expect((await read(hashes)).size).toBe(0);
    expect(sizes.length).toBeGreaterThan(0);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2_000_000);
  });

  it("are found on whatever page of the list they are", async () => {
    const stored = await putSpecs(12);
    await lose();
    Object.assign(SPEC_LOOKUPS, { gets: 12, keys: 2 });
    const hashes = [...stored.filter((_, i) => i % 4 !== 1), ...(await unknown(30))];
    expect([...(await read(hashes)).keys()].sort()).toEqual(stored.filter((_, i) => i % 4 !== 1));
  });

  it.each([
    ["got", { gets: 2 }, 3],
    ["listed", { gets: 6, lists: 1, keys: 2 }, 3],
  ])("are said to be lacking, and never not to be stored, until all are %s", async (_how, bound, calls) => {
    const stored = await putSpecs(6);
    await lose();
    Object.assign(SPEC_LOOKUPS, bound);
    // Unknown ones that come after all that are stored.
    const hashes = [...Array.from({ length: 20 }, (_, n) => n.toString(16).padStart(64, "f")), ...stored];
    for (let i = 1; i < calls; i++) expect(await refused(hashes)).toBe("index-rebuilding");
    expect([...(await read(hashes)).keys()].sort()).toEqual(stored);
    const told = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "specs-lacking");
    expect(told).toHaveLength(calls - 1);
    expect(told[0]).toEqual({ event: "specs-lacking", tenant: tenant.id, left: expect.any(Number) });
  });
});

describe("an object in R2 that is not what its key says", () => {
  it("is left out of D1, and the service's log names it", async () => {
    const other = await newTenant("other");
    await put("team", RULES);
    await put("team", STRICT);
    await put("copied", CEDAR, other);
    await put("timeless", RULES);
    // D1 has the other tenant's entry as well.
    expect((await call(other.key, "GET", "/v1/principals/$system/entries")).status).toBe(200);
    const { hash } = await putSpec({ name: "t" });
    const good = (await (await env.MIRROR.get(keyOf("policies/team/1")))?.text()) ?? "";
    const foreign = (await (await env.MIRROR.get(keyOf("policies/copied/1", other)))?.text()) ?? "";
    const bad: [string, string][] = [
      // Another policy that is whole in itself: the log records another hash.
      ["policies/team/2", good],
      // A version that the log does not record, and one that another tenant's does.
      ["policies/team/3", good],
      ["policies/copied/1", foreign],
      ["policies/garbage/1", "{"],
      ["policies/timeless/1", good.replace(/"created_at":"[^"]*"/, '"created_at":"now"')],
      ["policies/garbage/3", JSON.stringify({ created_at: "2026-01-01T00:00:00.000Z", source: "1" })],
      ["policies/garbage/04", good],
      ["policies/a b/1", good],
      ["policies/team/1/2", good],
      [`tools/${hash}`, '{"name":"u"}'],
      [`tools/${await sha256('{ "name":"t"}')}`, '{ "name":"t"}'],
      [`tools/${await sha256('{"x":1}')}`, '{"x":1}'],
      [`tools/${await sha256('{"name":"v"}')}`, '{ "name":"v"}'],
      ["tools/x", '{"name":"t"}'],
    ];
    for (const [key, text] of bad) await env.MIRROR.put(keyOf(key), text);
    await lose();
    const done = await rebuild(tenant);
    expect(done).toMatchObject({ restored: 1, refused: bad.length });
    expect(
      refusals()
        .map(({ key }) => key)
        .sort(),
    ).toEqual(bad.map(([key]) => key).sort());
    for (const line of refusals()) expect(line.tenant).toBe(tenant.id);
    const why = new Map(refusals().map((line) => [line.key, line.why]));
    expect(["policies/a b/1", "policies/timeless/1", "policies/copied/1"].map((key) => why.get(key))).toEqual(
      ["not a key of the service", "not a policy", "not the content that the system log records"],
    );
    expect((await get("/team")).body).toMatchObject({ version: 1, policy: RULES });
    expect((await rows()).length).toBe(1);
    // Whoever has the content can put it again, once the object is gone.
    expect(problemOf(await put("team", STRICT))).toEqual([503, "mirror-unavailable"]);
    await env.MIRROR.delete(keyOf("policies/team/2"));
    expect((await put("team", STRICT)).body.version).toBe(2);
  });

  it("is of one tenant: no other gets it back, nor sees it", async () => {
    const other = await newTenant("other");
    await put("team", RULES);
    const { hash } = await putSpec({ name: "t" });
    await lose();
    expect(await rebuild(other)).toMatchObject({ restored: 0, refused: 0 });
    expect(await rows([tenant, other])).toEqual([]);
    await rebuild(tenant);
    expect((await get("/team")).status).toBe(200);
    expect((await get("/team", other)).status).toBe(404);
    expect((await call(other.key, "GET", `/v1/tools/${hash}`)).status).toBe(404);
  });
});
