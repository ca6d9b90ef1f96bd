import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Answer, TestClient } from "../../support/client.ts";
import { startServerProcess } from "../../support/server.ts";
import { createTenant, Load, LoadedLog, SOAK } from "../faults/load.ts";

const KILLS = SOAK ? 25 : 3;
/** An erasure takes about this long, in milliseconds: a kill comes somewhere in it, or just before or after. */
const SPAN = 120;

interface SystemEntry {
  readonly id: string;
  readonly kind: string;
}

async function systemEntries(client: TestClient): Promise<SystemEntry[]> {
  const { text } = await client.get(
    "/v1/principals/$system/entries?kind=erasure.requested,erasure.done&limit=1000",
  );
  return (JSON.parse(text) as { entries: SystemEntry[] }).entries;
}

/** Asks until it is answered for good. */
async function insist(ask: () => Promise<Answer>): Promise<Answer> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answer = await ask().catch(() => null);
    if (answer?.status === 200) return answer;
    if (answer !== null && answer.status !== 202 && answer.status !== 503) throw new Error(answer.text);
    await delay(100);
  }
  throw new Error("never answered");
}

describe("an erasure during which the server is killed", () => {
  it("is on record before anything is gone, and is made whole by the same request", {
    timeout: SOAK ? 1_800_000 : 300_000,
  }, async () => {
    let server = await startServerProcess();
    const tenant = await createTenant(server);
    const log = new LoadedLog("agent");
    const load = new Load(server.client(tenant.key), [log], 4);
    const erased: string[] = [];
    for (let kill = 1; kill <= KILLS; kill++) {
      await load.progress(20);
      const secret = `secret-${kill}-of-the-test`;
      const sent = {
        id: `erased-${kill}`,
        kind: "tool.call.started",
        call: `c-${kill}`,
        action: { tool: "look_up", args: { name: secret } },
      };
      log.sent.add(sent.id);
      const path = "/v1/principals/agent";
      const stored = await server.client(tenant.key).post(`${path}/entries`, sent);
      expect(stored.status).toBe(201);
      const { seq } = stored.json<{ results: [{ seq: number }] }>().results[0];
      const wish = { seq, reason: `case ${kill}` };
      void server
        .client(tenant.key)
        .post(`${path}/erasures`, wish)
        .catch(() => {});
      await delay(Math.floor(Math.random() * SPAN));
      await server.killTree();
      server = await server.restart();
      const client = server.client(tenant.key);
      load.client = client;

      const requested = (await systemEntries(client)).filter(({ kind }) => kind === "erasure.requested");
      const entry = await insist(() => client.get(`${path}/entries/${seq}`));
      // Nothing is gone that nobody is on record for.
      if (requested.length < kill) expect(entry.text).toContain(secret);

      const answer = await insist(() => client.post(`${path}/erasures`, wish));
      const { id, entries } = answer.json<{ id: string; entries: number }>();
      expect(entries).toBe(1);
      const records = (await systemEntries(client)).filter((one) => one.id.endsWith(id));
      expect(records.map(({ kind }) => kind)).toEqual(["erasure.requested", "erasure.done"]);
      erased.push(secret);
    }
    await load.progress(50);
    await load.stop();
    const client = server.client(tenant.key);
    await log.check(client, tenant, 20);
    const bundle = await insist(() => client.get("/v1/principals/agent/export"));
    for (const secret of erased) expect(bundle.text).not.toContain(secret);
    await server.stop();
  });
});
