import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { canonicalJson } from "../../shared/json/canonical.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
const RULES = { rules: { side_effects: { read_only: "allow" } } };
const STRICT = { rules: { side_effects: { read_only: "deny" }, tools: { t: { outcome: "allow" } } } };
const CEDAR = { cedar: 'permit(principal, action == Action::"read_file", resource);' };

let names = 0;
const newName = () => `policy-${++names}`;
const put = (name: string, body: unknown, query = "", key = tenant.key): Promise<Answer> =>
  call(key, "PUT", `/v1/policies/${name}${query}`, body);
const get = (path: string, key = tenant.key) => call(key, "GET", `/v1/policies${path}`);

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The policy.stored entries of a name, in order. */
async function recorded(name: string, of = tenant): Promise<Record<string, unknown>[]> {
  const { body } = await call(of.key, "GET", "/v1/principals/$system/entries?kind=policy.stored&limit=1000");
  const entries = body.entries as unknown as { action: Record<string, unknown> }[];
  return entries.map(({ action }) => action).filter((action) => action.name === name);
}

beforeAll(async () => {
  tenant = await newTenant();
});

describe("a policy", () => {
  it("is stored once for each content, with its identity, its hash and its entry", async () => {
    const name = newName();
    const first = await put(name, RULES);
    expect(first.status).toBe(201);
    const hash = await sha256(canonicalJson(JSON.stringify(RULES)));
    expect(first.body).toMatchObject({ name, version: 1, engine: "rules", hash });
    expect(first.body.policy_id).toMatch(/^runseal-rules\/sha256:[0-9a-f]{64}$/);
    const second = await put(name, STRICT);
    expect([second.status, second.body.version]).toEqual([201, 2]);
    const again = await put(name, '{ "engine": "rules", "rules": {"side_effects": {"read_only":"allow"}}}');
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect(await recorded(name)).toEqual([
      { name, version: 1, type: "rules", hash, by: expect.any(String) },
      { name, version: 2, type: "rules", hash: second.body.hash, by: expect.any(String) },
    ]);
  });

  it("is told as new to one alone of those who send it at once", async () => {
    const name = newName();
    const answers = await Promise.all(Array.from({ length: 10 }, () => put(name, RULES)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.version))).toEqual(new Set([1]));
  });

  it("is not used, nor shown, where its source in D1 is not the one that was hashed", async () => {
    const name = newName();
    await put(name, RULES);
    await put(name, STRICT);
    await env.DB.prepare("UPDATE policies SET source = ? WHERE tenant = ? AND name = ? AND version = 2")
      .bind(canonicalJson(JSON.stringify(RULES)), tenant.id, name)
      .run();
    const shown = await get(`/${name}`);
    expect([shown.status, shown.body.type]).toEqual([503, "urn:runseal:problem:index-conflict"]);
    expect((await get(`/${name}?version=1`)).body).toMatchObject({ version: 1, policy: RULES });
  });

  it("is read by its latest version, or the one asked for, with the digits that it was sent with", async () => {
    const name = newName();
    const text = '{"rules":{"tools":{"t":{"fixed":{"n":1.0,"m":12345678901234567890}}}}}';
    await put(name, text);
    await put(name, CEDAR);
    const latest = await get(`/${name}`);
    expect(latest.body).toMatchObject({ version: 2, engine: "cedar", policy: CEDAR });
    const first = await get(`/${name}?version=1`);
    expect(first.text).toContain(`"policy":${canonicalJson(text)}`);
    expect((await get(`/${name}?version=3`)).status).toBe(404);
    expect((await get("/nothing-of-this-name")).status).toBe(404);
    expect((await get("/nothing-of-this-name/versions")).status).toBe(404);
  });

  it("is listed with its latest version, and its versions newest first, page by page", async () => {
    const own = await newTenant();
    for (const name of ["b", "a", "c"]) await put(name, RULES, "", own.key);
    await put("b", STRICT, "", own.key);
    const page = await get("?limit=2", own.key);
    const seen = (answer: Answer, member: string) =>
      (answer.body[member] as unknown as { name: string; version: number }[]).map((each) => [
        each.name,
        each.version,
      ]);
    expect(seen(page, "policies")).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
    const next = await get(`?limit=2&cursor=${page.body.next_cursor}`, own.key);
    expect([seen(next, "policies"), next.body.next_cursor]).toEqual([[["c", 1]], null]);
    const versions = await get("/b/versions?limit=1", own.key);
    expect(seen(versions, "versions")).toEqual([["b", 2]]);
    const older = await get(`/b/versions?limit=1&cursor=${versions.body.next_cursor}`, own.key);
    expect([seen(older, "versions"), older.body.next_cursor]).toEqual([[["b", 1]], null]);
  });

  it("is compared by identity and by class and tool", async () => {
    const name = newName();
    await put(name, RULES);
    await put(name, STRICT);
    await put(name, CEDAR);
    const rules = await get(`/${name}/diff?from=1&to=2`);
    expect(rules.body).toMatchObject({
      from: { version: 1 },
      to: { version: 2 },
      same: false,
      identity: "changed",
      changes: [
        { what: "side_effect", name: "read_only", from: "allow", to: "deny" },
        { what: "tool", name: "t", to: { outcome: "allow" } },
      ],
    });
    expect((await get(`/${name}/diff?from=1&to=1`)).body).toMatchObject({ same: true, changes: [] });
    expect((await get(`/${name}/diff?from=1`)).body).toMatchObject({ to: { version: 3 }, changes: null });
    expect((await get(`/${name}/diff?from=9`)).status).toBe(404);
  });

  it("may be demanded to become a version, and becomes that or nothing", async () => {
    const name = newName();
    expect((await put(name, RULES, "?version=2")).body.type).toBe("urn:runseal:problem:policy-exists");
    expect((await put(name, RULES, "?version=1")).status).toBe(201);
    expect((await put(name, RULES, "?version=1")).status).toBe(200);
    expect((await put(name, STRICT, "?version=1")).status).toBe(409);
    expect(await recorded(name)).toHaveLength(1);
  });

  it.each([
    ["", "json-syntax", 400, ""],
    ["{}", "invalid-policy", 422, ""],
    ['{"rules":{"tools":{"t":{"outcome":"maybe"}}}}', "invalid-policy", 422, "/rules/tools/t/outcome"],
    ['{"rules":{"side_effects":{}},"extra":1}', "invalid-policy", 422, "/extra"],
    ['{"cedar":"permit(principal, action"}', "invalid-policy", 422, "/cedar"],
    [
      '{"cedar":{"policies":"permit(principal, action, resource);","x":1}}',
      "invalid-policy",
      422,
      "/cedar/x",
    ],
    ['{"name":"other"}', "invalid-policy", 422, ""],
    ['{"decisions":[{"seq":1,"error":"e"}]}', "invalid-policy", 422, ""],
    ['{"rules":{"side_effects":{}}} ,', "json-syntax", 400, ""],
  ])("that can't be used is refused, and nothing is stored: %s", async (body, code, status, pointer) => {
    const name = newName();
    const answer = await put(name, body);
    expect([answer.status, answer.body.type, answer.body.pointer]).toEqual([
      status,
      `urn:runseal:problem:${code}`,
      pointer,
    ]);
    expect((await get(`/${name}`)).status).toBe(404);
    expect(await recorded(name)).toEqual([]);
  });

  it("is one version however many put it at once, and no two share a number", async () => {
    const name = newName();
    const bodies = [RULES, STRICT, CEDAR, RULES, STRICT, CEDAR];
    const answers = await Promise.all(bodies.map((body) => put(name, body)));
    const versions = new Map(answers.map(({ body }) => [body.hash, body.version]));
    expect(answers.every(({ status }) => status === 200 || status === 201)).toBe(true);
    expect([...versions.values()].sort()).toEqual([1, 2, 3]);
    const entries = await recorded(name);
    expect(entries.map(({ version, hash }) => versions.get(hash as never) === version)).toEqual([
      true,
      true,
      true,
    ]);
  });
});

describe("a policy whose storing breaks off", () => {
  it("is not there before its entry is durable, and is finished by the same request", async () => {
    const name = newName();
    await put(name, RULES);
    const prepare = env.DB.prepare.bind(env.DB);
    const broken = vi.spyOn(env.DB, "withSession").mockImplementation(
      () =>
        ({
          prepare: (sql: string) => {
            if (sql.startsWith("UPDATE policies SET stored")) throw new Error("D1_ERROR: away");
            return prepare(sql);
          },
          batch: env.DB.batch.bind(env.DB),
        }) as unknown as D1DatabaseSession,
    );
    const failed = await put(name, STRICT);
    broken.mockRestore();
    expect([failed.status, failed.headers.get("retry-after")]).toEqual([503, "1"]);
    expect((await get(`/${name}`)).body.version).toBe(1);
    expect((await get(`/${name}?version=2`)).status).toBe(404);
    const again = await put(name, STRICT);
    expect([again.status, again.body.version]).toEqual([201, 2]);
    expect(await recorded(name)).toHaveLength(2);
  });

  it("keeps the numbers that the system log has, after the database lost them", async () => {
    const name = newName();
    await put(name, RULES);
    await put(name, STRICT);
    await env.DB.prepare("DELETE FROM policies WHERE tenant = ?1").bind(tenant.id).run();
    const strict = await put(name, STRICT);
    expect([strict.status, strict.body.version]).toEqual([201, 2]);
    const cedar = await put(name, CEDAR);
    expect(cedar.body.version).toBe(3);
    expect((await recorded(name)).map(({ version }) => version)).toEqual([1, 2, 3]);
  });
});

describe("policies of tenants", () => {
  it("see nothing of each other, and a foreign one is as good as none", async () => {
    const other = await newTenant("other");
    const name = newName();
    await put(name, RULES);
    for (const path of [`/${name}`, `/${name}?version=1`, `/${name}/versions`, `/${name}/diff?from=1`]) {
      const foreign = await get(path, other.key);
      const absent = await get(path.replace(name, "absent"), other.key);
      const strip = ({ text, status }: Answer) => [status, text.replace(/"request_id":"[^"]*"/, "")];
      expect(strip(foreign)).toEqual(strip(absent));
      expect(foreign.status).toBe(404);
    }
    expect((await get("", other.key)).body.policies).toEqual([]);
    const theirs = await put(name, STRICT, "", other.key);
    expect([theirs.status, theirs.body.version]).toEqual([201, 1]);
    expect((await get(`/${name}`)).body.version).toBe(1);
    expect(await recorded(name, other)).toHaveLength(1);
  });

  it("take the scope policy to store, and read to look at", async () => {
    const reader = await newKey(tenant, ["read"]);
    const writer = await newKey(tenant, ["policy"]);
    const name = newName();
    expect((await put(name, RULES, "", reader)).status).toBe(403);
    expect((await put(name, RULES, "", writer)).status).toBe(201);
    expect((await get(`/${name}`, writer)).status).toBe(403);
    expect((await get(`/${name}`, reader)).status).toBe(200);
  });
});
