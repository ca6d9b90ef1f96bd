import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startServerProcess } from "../../support/server.ts";
import { createTenant, Load, LoadedLog, SOAK } from "../faults/load.ts";

const KILLS = SOAK ? 25 : 5;
const CLIENTS = SOAK ? 16 : 8;
const PRINCIPALS = SOAK ? 5 : 3;

describe("a server that is killed while it works", () => {
  it(`has everything that it acknowledged, once and in order, after each of ${KILLS} kills at random instants`, {
    timeout: SOAK ? 1_800_000 : 180_000,
  }, async () => {
    let server = await startServerProcess();
    const tenant = await createTenant(server);
    const logs = Array.from({ length: PRINCIPALS }, (_, i) => new LoadedLog(`agent-${i}`));
    const load = new Load(server.client(tenant.key), logs, CLIENTS);
    for (let kill = 1; kill <= KILLS; kill++) {
      await load.progress(1);
      const after = Math.floor(Math.random() * 1200);
      await delay(after);
      await server.killTree();
      server = await server.restart();
      load.client = server.client(tenant.key);
      // The load goes on meanwhile: what is told before the check must be in the log that is checked.
      if (SOAK || kill === 2) {
        for (const log of logs) {
          await expect(
            log.check(server.client(tenant.key), tenant, 10),
            `kill ${kill} after ${after} ms`,
          ).resolves.toBeDefined();
        }
      }
    }
    await load.progress(50);
    await load.stop();
    let stored = 0;
    for (const log of logs) {
      const { size } = await log.check(server.client(tenant.key), tenant, SOAK ? 200 : 40);
      expect(size).toBeGreaterThanOrEqual(log.told.receipts.size);
      stored += size;
    }
    expect(stored).toBeGreaterThan(KILLS);
    await server.stop();
  });
});
