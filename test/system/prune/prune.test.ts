import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startServerProcess } from "../../support/server.ts";
import { createTenant, LoadedLog, newEntry, patiently } from "../faults/load.ts";
import { removeIndex } from "../faults/state-files.ts";

/** The bounds of a built service can't be lowered: a log is pruned beyond its newest 100,000 entries. */
const COMMITS = 106;
const KILLS = 6;

// In the long form only (see vitest.config.ts): it writes what takes minutes. test/durable-objects/prune*.test.ts have the same in small.
describe("a log of more than 100,000 entries", () => {
  it("lets go of the old ones while it is killed, has them all the same, and fills an empty D1 with them", {
    timeout: 1_800_000,
  }, async () => {
    let server = await startServerProcess();
    const tenant = await createTenant(server);
    const log = new LoadedLog("long");
    const client = () => server.client(tenant.key);
    const first = Array.from({ length: 1000 }, newEntry);
    expect(await log.append(client, first, "", () => false)).toBe(true);
    for (let sent = 1; sent < COMMITS; sent += 5) {
      const batches = Array.from({ length: 5 }, () => Array.from({ length: 1000 }, newEntry));
      await Promise.all(batches.map((batch) => log.append(client, batch, "", () => false)));
    }
    // A log that was busy a moment ago remembers more, and keeps it. After a start it remembers the newest 50,000.
    await server.killTree();
    server = await server.restart();
    await log.append(client, [newEntry()], "", () => false);
    const pruned = async (): Promise<number> => {
      const { status, text } = await patiently(client(), `${log.path}/health`);
      expect(status).toBe(200);
      const health = JSON.parse(text) as { pruned: number; lost: number };
      expect(health.lost).toBe(0);
      return health.pruned;
    };
    for (let kills = 0; (await pruned()) < 5000; ) {
      await delay(500);
      if ((await pruned()) === 0 || kills >= KILLS) continue;
      // It has begun: from here on it is killed at random instants.
      kills += 1;
      await delay(Math.random() * 1500);
      await server.killTree();
      server = await server.restart();
      await log.append(client, [newEntry()], "", () => false);
    }
    const again = async (): Promise<void> => {
      // Sent once more it has its first receipts: `told` throws where it gets others.
      expect(await log.append(client, first, "", () => false)).toBe(true);
      expect((await log.check(client(), tenant, 10)).size).toBeGreaterThan(COMMITS * 1000 - 1);
    };
    await again();
    const page = async () => {
      const { status, text } = await patiently(client(), `${log.path}/entries?from=900&limit=1000`);
      expect(status).toBe(200);
      return JSON.parse(text).entries as unknown[];
    };
    const before = await page();
    await server.stop();
    removeIndex(server);
    server = await server.restart();
    expect(await page()).toEqual(before);
    expect(await pruned()).toBeGreaterThanOrEqual(5000);
    await again();
    await server.stop();
  });
});
