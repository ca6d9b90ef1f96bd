import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "../../support/client.ts";
import { startServerProcess, type TestServer } from "../../support/server.ts";
import { createTenant, Load, LoadedLog, newEntry, SOAK, type Tenant } from "./load.ts";
import { lockPart, type Part } from "./state-files.ts";

const CLIENTS = SOAK ? 16 : 6;
const ROUNDS = SOAK ? 6 : 1;
/** How long a fault holds, in milliseconds; nothing depends on it but how much happens meanwhile. */
const HOLD = SOAK ? 4000 : 800;

let server: TestServer;
let tenant: Tenant;
beforeAll(async () => {
  server = await startServerProcess();
  tenant = await createTenant(server);
});
afterAll(async () => {
  await server.stop();
});

/** What a fault is seen by while it holds: the status and problem of a request that needs the part. */
type Probe = (path: string) => Promise<readonly [number, string]>;

async function answerOf(answer: Promise<Answer>): Promise<readonly [number, string]> {
  const { status, text } = await answer;
  return [status, (JSON.parse(text) as { type?: string }).type?.replace("urn:runseal:problem:", "") ?? ""];
}

const probes: Record<Part, { readonly ask: Probe; readonly expected: readonly [number, RegExp] }> = {
  index: {
    ask: (path) => answerOf(server.client(tenant.key).get(`${path}/entries`)),
    expected: [503, /^index-rebuilding$/],
  },
  mirror: {
    ask: (path) =>
      answerOf(server.client(tenant.key).post(`${path}-probe/entries?wait=mirrored`, newEntry())),
    expected: [503, /^mirror-unavailable$/],
  },
  logs: {
    ask: (path) =>
      answerOf(server.client(tenant.key).post(`${path}/entries`, { ...newEntry(), id: "refused" })),
    expected: [503, /./],
  },
  directories: {
    ask: () => answerOf(server.client(tenant.key).post("/v1/principals", { name: `new-${Date.now()}` })),
    expected: [503, /./],
  },
};

describe("under load, while another process holds a part's files", () => {
  const parts: [string, Part, { appends: boolean }][] = [
    ["D1 takes no writes: appends go on", "index", { appends: true }],
    ["R2 takes no writes: appends go on", "mirror", { appends: true }],
    ["the logs take no writes: appends are refused, and nothing is half done", "logs", { appends: false }],
    ["the tenant's directory takes no writes", "directories", { appends: false }],
  ];
  it.each(parts)("%s", { timeout: SOAK ? 600_000 : 120_000 }, async (_name, part, { appends }) => {
    const logs = Array.from({ length: 2 }, (_, i) => new LoadedLog(`locked-${part}-${i}`));
    const load = new Load(server.client(tenant.key), logs, CLIENTS, part !== "mirror");
    const { ask, expected } = probes[part];
    for (let round = 0; round < ROUNDS; round++) {
      await load.progress(20);
      const release = lockPart(server, part);
      try {
        if (appends) await load.progress(20);
        const [status, problem] = await ask(logs[0]?.path ?? "");
        expect([status, problem]).toEqual([expected[0], expect.stringMatching(expected[1])]);
        await delay(HOLD);
      } finally {
        release();
      }
      await load.progress(40);
    }
    await load.stop();
    for (const log of logs) await log.check(server.client(tenant.key), tenant, 20);
  });

  it("the whole server stands still for a while and goes on", { timeout: 120_000 }, async () => {
    const logs = [new LoadedLog("paused")];
    const load = new Load(server.client(tenant.key), logs, CLIENTS);
    await load.progress(20);
    for (const pid of server.workerd()) process.kill(pid, "SIGSTOP");
    await delay(HOLD);
    for (const pid of server.workerd()) process.kill(pid, "SIGCONT");
    await load.progress(40);
    await load.stop();
    for (const log of logs) await log.check(server.client(tenant.key), tenant, 20);
  });
});
