import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { MIRROR_PACE } from "../../../durable-objects/tile-store/mirror-keeper.ts";
import type { TestTenant } from "../../workers/support.ts";
import { call } from "../../workers/support.ts";
import { entry, newTenant, problemOf, TestLog } from "../support.ts";
import { settle } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 1;
});

describe("a log that is stopped, and recovered", () => {
  it("erases nothing while it is stopped, and from the sealed generation when it is asked for that", async () => {
    const log = new TestLog(tenant, "sealed");
    await log.append([entry({ action: { tool: "t", args: "sealed-secret" } }), entry()], "?wait=mirrored");
    await settle(log);
    const key = `${await log.prefix()}/checkpoint`;
    const text = (await (await env.MIRROR.get(key))?.text()) ?? "";
    await env.MIRROR.put(key, text.replace(/\n(\d+)\n.+\n/, `\n$1\n${btoa("\u0007".repeat(32))}\n`));
    await log.evict();
    const erase = (query: string) =>
      call(tenant.key, "POST", `${log.path}/erasures${query}`, { seq: 1, reason: "asked for" });
    expect(problemOf(await erase(""))).toBe("log-stopped");
    const recovered = await call(
      env.RUNSEAL_OPERATOR_TOKEN,
      "POST",
      `/v1/tenants/${tenant.id}/principals/sealed/recover`,
      { generation: 1, reason: "restored" },
    );
    expect(recovered.status).toBe(200);
    const page = () => call(tenant.key, "GET", `${log.path}/export?generation=1&anchors=false`);
    expect((await page()).text).toContain("sealed-secret");
    const answer = await erase("?generation=1");
    expect([answer.status, answer.body.pending, answer.body.entries]).toEqual([200, [], 1]);
    const bundle = await page();
    expect([bundle.status, bundle.text.includes("sealed-secret"), bundle.text.includes("read_file")]).toEqual(
      [200, false, true],
    );
    const { results } = await env.DB.prepare(
      "SELECT content FROM entries WHERE content LIKE '%sealed-secret%'",
    ).all();
    expect(results).toEqual([]);
    // The current generation has one entry of its own: its head evidence.
    expect((await call(tenant.key, "GET", `${log.path}/entries/1`)).text).not.toContain("$erased");
    expect((await erase("?generation=7")).status).toBe(404);
  });
});
