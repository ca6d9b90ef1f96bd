import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { FileJournal } from "../../../sdk/file-journal.ts";
import { EntryQueue } from "../../../sdk/queue.ts";
import { startServerProcess, type TestServer, temporaryFolder } from "../../support/server.ts";
import { createTenant, patiently, SOAK, type Tenant } from "../faults/load.ts";

const PER_PRINCIPAL = SOAK ? 5000 : 200;
const KILLS = SOAK ? 10 : 1;
const PRINCIPALS = ["queued-a", "queued-b", "queued-c"];

let server: TestServer;
let tenant: Tenant;
beforeAll(async () => {
  server = await startServerProcess();
  tenant = await createTenant(server);
});
afterAll(async () => {
  await server.stop();
});

let requests = 0;

/** The network: it reaches whichever server runs now, and now and then does what networks and proxies do. */
const network: typeof fetch = async (input, init) => {
  requests += 1;
  const url = String(input).replace("http://service.test", server.url);
  if (requests % 7 === 0) return new Response("{}", { status: 503, headers: { "retry-after": "0" } });
  if (requests % 11 === 0) return new Response("{}", { status: 429, headers: { "retry-after": "0" } });
  const response = await fetch(url, init);
  // The answer gets lost after the server has done its work.
  if (requests % 5 === 0) {
    await response.arrayBuffer();
    throw new TypeError("fetch failed");
  }
  return response;
};

interface Entry {
  readonly kind: string;
  readonly action: { chunk?: string; reason?: string; calls?: { count: number } };
}

async function stored(principal: string): Promise<Entry[]> {
  const out: Entry[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const path: string = `/v1/principals/${principal}/entries?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { status, text } = await patiently(server.client(tenant.key), path);
    expect(status).toBe(200);
    const page = JSON.parse(text) as { entries: Entry[]; next_cursor: string | null };
    out.push(...page.entries);
    cursor = page.next_cursor;
  }
  return out;
}

it("loses nothing silently, doubles nothing and keeps the order while servers are killed and answers are lost", {
  timeout: 600_000,
}, async () => {
  const path = join(temporaryFolder(), "queue.json");
  const options = {
    url: "http://service.test",
    apiKey: tenant.key,
    fetch: network,
    maxBackoffMs: 200,
    batchEntries: 20,
    maxEntries: 200,
    journal: new FileJournal(path),
  };
  const queue = await EntryQueue.open(options);
  const taken = new Map<string, string[]>(PRINCIPALS.map((name) => [name, []]));
  const dropped = new Map<string, number>();
  let kills = 0;
  for (let n = 0; n < PER_PRINCIPAL; n++) {
    for (const name of PRINCIPALS) {
      if (queue.add(name, { kind: "message.delta", action: { chunk: String(n) } }))
        taken.get(name)?.push(String(n));
      else dropped.set(name, (dropped.get(name) ?? 0) + 1);
    }
    if (n % 3 === 0) await delay(2);
    if (n >= ((kills + 1) * PER_PRINCIPAL) / (KILLS + 1)) {
      kills += 1;
      await server.killTree();
      server = await server.restart();
    }
  }
  expect(kills).toBe(KILLS);
  await queue.flush();
  for (const name of PRINCIPALS) {
    const entries = await stored(name);
    expect(entries.flatMap(({ action }) => action.chunk ?? [])).toEqual(taken.get(name));
    const losses = entries.filter(({ kind }) => kind === "host.loss");
    expect(losses.reduce((sum, { action }) => sum + (action.calls?.count ?? 0), 0)).toBe(
      dropped.get(name) ?? 0,
    );
    expect(new Set(losses.map(({ action }) => action.reason))).toEqual(
      new Set(losses.length > 0 ? ["queue_full"] : []),
    );
    const { text } = await patiently(server.client(tenant.key), `/v1/principals/${name}/verify`);
    expect(JSON.parse(text)).toMatchObject({ verdict: "intact" });
  }
  // While a server starts the queue fills: what was dropped then is what was declared.
  expect([...dropped.values()].reduce((a, b) => a + b, 0)).toBeGreaterThan(0);

  // The sender is gone without a close: the next one says so, once for each log.
  const next = await EntryQueue.open({ ...options, journal: new FileJournal(path) });
  next.add("queued-a", { kind: "message.delta", action: { chunk: "after" } });
  expect(await next.close()).toEqual({ unsent: 0 });
  for (const name of PRINCIPALS) {
    const gaps = (await stored(name)).filter(({ kind }) => kind === "host.gap");
    expect(gaps.map(({ action }) => action.reason)).toEqual(["unclean_shutdown"]);
  }
  expect(await new FileJournal(path).read()).toBeNull();
});
