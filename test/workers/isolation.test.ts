import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../workers/routes/index.ts";
import type { TestTenant } from "./support.ts";
import { call, entries, entry, newKey, newTenant } from "./support.ts";

let a: TestTenant;
let b: TestTenant;

beforeAll(async () => {
  a = await newTenant("a");
  b = await newTenant("b");
  // The same principal, the same ids, in both tenants.
  const mine = entry({
    id: "shared-id",
    run: "shared-run",
    action: { tool: "a_tool", args: { owner: "a" } },
  });
  await call(a.key, "POST", "/v1/principals/agent/entries", mine);
  await call(b.key, "POST", "/v1/principals/agent/entries", [
    { ...mine, action: { tool: "b_tool", args: { owner: "b" } } },
    entry({ run: "b-run" }),
  ]);
  await call(b.key, "POST", "/v1/principals/only-b/entries", entries(2));
});

/** A path of the route with plausible parameters. */
function pathOf(path: string, principal: string): string {
  return path
    .replace("{p}", principal)
    .replace("{run}", "b-run")
    .replace("{id}", "ab".repeat(16))
    .replace("{seq}", "1")
    .replace("{path+}", "0/000.p/1")
    .replace("{name}", "policy")
    .replace("{prefix}", "acme")
    .replace("{hash}", "ab".repeat(32))
    .replace("{key}", "ab".repeat(16));
}

describe("tenants", () => {
  const byPrincipal = routes.filter(({ path, access }) => path.includes("{p}") && access !== "ingest");

  it.each(byPrincipal.map((route) => [`${route.method} ${route.path}`, route] as const))(
    "%s: a foreign principal and an absent one are answered alike",
    async (_name, route) => {
      const body = route.method === "POST" ? { policy: { rules: { side_effects: {} } } } : undefined;
      const foreign = await call(a.key, route.method, pathOf(route.path, "only-b"), body);
      const absent = await call(a.key, route.method, pathOf(route.path, "nobody"), body);
      const strip = ({ text, status }: { text: string; status: number }) => [
        status,
        text.replace(/"request_id":"[^"]*"/, ""),
      ];
      expect(strip(foreign)).toEqual(strip(absent));
      expect(foreign.status).toBeGreaterThanOrEqual(400);
    },
  );

  it("the same names and ids live side by side and see nothing of each other", async () => {
    const page = await call(a.key, "GET", "/v1/principals/agent/entries");
    expect(page.text).toContain("a_tool");
    expect(page.text).not.toContain("b_tool");
    const wide = await call(a.key, "GET", "/v1/entries");
    expect(wide.text).not.toContain("b_tool");
    const principals = await call(a.key, "GET", "/v1/principals");
    expect(principals.text).not.toContain("only-b");
    expect((await call(a.key, "GET", "/v1/principals/agent/head")).body.size).toBe(1);
    expect((await call(b.key, "GET", "/v1/principals/agent/head")).body.size).toBe(2);
    expect((await call(a.key, "GET", "/v1/principals/agent/runs/b-run")).status).toBe(404);
  });

  it("a cursor of one tenant is refused in another", async () => {
    const first = await call(b.key, "GET", "/v1/entries?limit=1");
    const other = await call(a.key, "GET", `/v1/entries?limit=1&cursor=${first.body.next_cursor}`);
    expect([other.status, other.body.type]).toEqual([400, "urn:runseal:problem:invalid-cursor"]);
  });

  it("every object in the mirror is under its tenant", async () => {
    await call(a.key, "POST", "/v1/principals/agent/entries?wait=mirrored", entries(1));
    const { objects } = await env.MIRROR.list();
    expect(objects.length).toBeGreaterThan(0);
    for (const { key } of objects)
      expect(key.startsWith(`t/${a.id}/`) || key.startsWith(`t/${b.id}/`)).toBe(true);
  });
});

describe("credentials", () => {
  it.each(
    routes
      .filter(({ access }) => access !== "none")
      .map((route) => [`${route.method} ${route.path}`, route] as const),
  )("%s: is refused without one, and with one that is wrong", async (_name, route) => {
    const path = pathOf(route.path, "agent");
    for (const key of [null, "nonsense", `rsk_${"A".repeat(86)}`, `${a.key.slice(0, -2)}AA`]) {
      const answer = await call(key, route.method, path, route.method === "GET" ? undefined : {});
      expect([key, answer.status]).toEqual([key, 401]);
      expect(answer.headers.get("www-authenticate")).toContain("Bearer");
    }
  });

  it.each(
    routes
      .filter(({ access }) => access !== "none" && access !== "operator")
      .map((route) => [`${route.method} ${route.path}`, route] as const),
  )("%s: is refused to a key without its scope", async (_name, route) => {
    const scopes = [
      "create",
      "read",
      "ingest",
      "verify",
      "recheck",
      "policy",
      "keys",
      "admin",
      "anchor",
    ].filter((scope) => scope !== route.access);
    const key = await newKey(a, scopes);
    const answer = await call(
      key,
      route.method,
      pathOf(route.path, "agent"),
      route.method === "GET" ? undefined : {},
    );
    expect([answer.status, answer.body.type]).toEqual([403, "urn:runseal:problem:forbidden"]);
  });

  it("a tenant's key is no operator's token, and the other way round", async () => {
    expect((await call(a.key, "POST", "/v1/tenants", { name: "x" })).status).toBe(401);
    expect((await call(env.RUNSEAL_OPERATOR_TOKEN, "GET", "/v1/principals")).status).toBe(401);
  });

  it("a revoked key is refused at once here, and the act is on the system log", async () => {
    const created = await call(a.key, "POST", "/v1/api-keys", {
      name: "short",
      scopes: ["read"],
      principals: ["*"],
    });
    const key = String(created.body.api_key);
    expect((await call(key, "GET", "/v1/principals")).status).toBe(200);
    expect((await call(a.key, "DELETE", `/v1/api-keys/${created.body.id}`)).status).toBe(200);
    expect((await call(key, "GET", "/v1/principals")).status).toBe(401);
    const log = await call(a.key, "GET", "/v1/principals/$system/entries");
    const kinds = (log.body.entries as unknown as { kind: string }[]).map(({ kind }) => kind);
    expect(kinds).toContain("apikey.created");
    expect(kinds.at(-1)).toBe("apikey.revoked");
  });

  it("keys are listed without their secrets, and nobody writes to the system log", async () => {
    const list = await call(a.key, "GET", "/v1/api-keys");
    expect(list.text).not.toContain("rsk_");
    expect(list.text).not.toContain("secret");
    const answer = await call(a.key, "POST", "/v1/principals/$system/entries", entry());
    expect(answer.status).toBe(403);
  });

  it("a key that is kept to some principals makes no key for others", async () => {
    const narrow = await newKey(a, ["admin"], ["agent"]);
    const make = (principals: string[]) =>
      call(narrow, "POST", "/v1/api-keys", { name: "n", scopes: ["read"], principals });
    for (const principals of [
      ["agent", "*"],
      ["agent", "another"],
      ["agent", "$system"],
    ]) {
      const refused = await make(principals);
      expect([refused.status, refused.body.type, refused.body.pointer]).toEqual([
        403,
        "urn:runseal:problem:forbidden",
        "/principals/1",
      ]);
    }
    expect((await make(["agent"])).status).toBe(201);
  });

  it("a key creates a principal only with the scope for it, and only those that it is for", async () => {
    const writer = await newKey(a, ["ingest"], ["*"]);
    expect((await call(writer, "POST", "/v1/principals/fresh/entries", entry())).status).toBe(404);
    const narrow = await newKey(a, ["ingest", "create"], ["fresh-2"]);
    expect((await call(narrow, "POST", "/v1/principals/fresh-3/entries", entry())).status).toBe(404);
    expect((await call(narrow, "POST", "/v1/principals/fresh-2/entries", entry())).status).toBe(201);
  });

  it("a tenant is created once for an Idempotency-Key, quoted or not", async () => {
    const create = (name: string, key: string) =>
      call(env.RUNSEAL_OPERATOR_TOKEN, "POST", "/v1/tenants", { name }, { "idempotency-key": key });
    const first = await create("once", "key-1");
    const again = await create("once", '"key-1"');
    expect(first.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect((await create("twice", "key-1")).status).toBe(422);
    expect((await call(String(first.body.api_key), "GET", "/v1/principals")).status).toBe(200);
  });
});
