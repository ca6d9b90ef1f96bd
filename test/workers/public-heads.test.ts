import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { listed } from "./heads-support.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call, entries, newKey, newTenant } from "./support.ts";

let tenant: TestTenant;
/** The log's origin and the tenant's, without the host. */
let log: string;
let heads: string;

const get = (path: string) => call(null, "GET", path);
const turn = (enabled: boolean, key = tenant.key) => call(key, "PUT", "/v1/public-heads", { enabled });
const publicPaths = () => [
  `${log}/checkpoint`,
  `${log}/tile/0/000.p/3`,
  `${heads}/checkpoint`,
  `${heads}/tile/0/000.p/1`,
];

beforeAll(async () => {
  tenant = await newTenant("public");
  await call(tenant.key, "POST", "/v1/principals/agent/entries", entries(3));
  await listed(tenant);
  const { text } = await call(tenant.key, "GET", "/v1/principals/agent/checkpoint");
  log = (text.split("\n")[0] ?? "").replace(/^[^/]+/, "");
  heads = `/t/${tenant.id}`;
});

/** What of an answer may tell one thing from another. */
const shown = ({ status, text, headers }: Answer) => [
  status,
  text.replace(/"request_id":"[^"]+"/, ""),
  headers.get("content-type"),
  headers.get("cache-control"),
];

async function expectNotFound(paths: readonly string[]): Promise<void> {
  const nowhere = shown(await get("/v1/nowhere"));
  expect(nowhere[0]).toBe(404);
  for (const path of paths) expect([path, shown(await get(path))]).toEqual([path, nowhere]);
}

describe("heads without a key", () => {
  it("are off at first: like a tenant that is not there", async () => {
    expect((await call(tenant.key, "GET", "/v1/public-heads")).body).toEqual({ enabled: false });
    await expectNotFound(publicPaths());
    await expectNotFound([
      `/t/${"ab".repeat(16)}/checkpoint`,
      `/t/${"ab".repeat(16)}/p/${"cd".repeat(16)}.1/checkpoint`,
    ]);
  });

  it("answer under the origin once an admin turned them on, with what a key gets", async () => {
    expect((await turn(true)).body).toEqual({ enabled: true });
    const [checkpoint, tile, headsCheckpoint, headsTile] = publicPaths();
    const pairs = [
      [checkpoint, "/v1/principals/agent/checkpoint"],
      [tile, "/v1/principals/agent/tile/0/000.p/3"],
      [headsCheckpoint, "/v1/log/checkpoint"],
      [headsTile, "/v1/log/tile/0/000.p/1"],
    ] as const;
    for (const [path = "", keyed] of pairs) {
      const [open, known] = [await get(path), await call(tenant.key, "GET", keyed)];
      expect([path, open.status, open.text]).toEqual([path, 200, known.text]);
    }
  });

  it("never come with entries, content or anything else, and not from another log or tenant", async () => {
    await turn(true);
    const other = await newTenant("private");
    const principal = log.split("/p/")[1] ?? "";
    await expectNotFound([
      `${log}/tile/entries/000.p/3`,
      `${heads}/tile/entries/000.p/1`,
      `${log}/tile/0/000.p/9`,
      `${log}/tile/0/x`,
      `${log}/entries`,
      `${log}/head`,
      `${log}/export`,
      `${heads}/entries`,
      `${heads}/p/${principal.replace(/\.1$/, ".2")}/checkpoint`,
      `${heads}/p/${"cd".repeat(16)}.1/checkpoint`,
      `${heads}/p/${principal.slice(1)}/checkpoint`,
      `/t/${other.id}/checkpoint`,
      `/t/${other.id}/p/${principal}/checkpoint`,
      `/t/${tenant.id.toUpperCase()}/checkpoint`,
    ]);
    // A key does not help, nor does it hurt.
    const answer = await call(other.key, "GET", `${log}/tile/entries/000.p/3`);
    expect(answer.status).toBe(404);
  });

  it("are gone when they are turned off, and a database that says otherwise changes nothing", async () => {
    await turn(true);
    expect((await turn(false)).body).toEqual({ enabled: false });
    await expectNotFound(publicPaths());
    await env.DB.prepare("INSERT INTO public_heads VALUES (?1)").bind(tenant.id).run();
    await expectNotFound(publicPaths());
    await env.DB.prepare("DELETE FROM public_heads WHERE tenant = ?1").bind(tenant.id).run();
  });

  it("are turned by admins alone, and each change is on $system", async () => {
    await turn(false);
    const reader = await newKey(tenant, ["read", "keys", "anchor"]);
    expect((await turn(true, reader)).status).toBe(403);
    const changes = async () => {
      const page = await call(tenant.key, "GET", "/v1/principals/$system/entries?kind=log.changed");
      const found = page.body.entries as unknown as { action: { public_heads: boolean } }[];
      return found.map(({ action }) => action.public_heads);
    };
    const before = (await changes()).length;
    for (const enabled of [true, true, false]) await turn(enabled);
    expect((await changes()).slice(before)).toEqual([true, false]);
    expect((await call(tenant.key, "PUT", "/v1/public-heads", { enabled: 1 })).status).toBe(400);
  });
});
