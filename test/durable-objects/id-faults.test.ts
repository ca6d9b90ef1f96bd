import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ID_LIMITS } from "../../durable-objects/principal-log/id-index.ts";
import { ENTRIES_BY_ID } from "../../durable-objects/principal-log/look-up.ts";
import type { TestTenant } from "../workers/support.ts";
import { erase } from "./content/support.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

const limits = { ...ID_LIMITS };
let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
beforeEach(() => {
  Object.assign(ID_LIMITS, { remembered: 20, windowMs: 0 });
});
afterEach(() => {
  Object.assign(ID_LIMITS, limits);
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Has the `nth` allocation of an array of so many numbers fail. */
function failAllocation(length: number, nth: number): void {
  let seen = 0;
  const failing = new Proxy(Uint32Array, {
    construct(target, args: [number]) {
      if (args[0] === length && ++seen === nth) throw new RangeError("Array buffer allocation failed");
      return new target(...args);
    },
  });
  vi.stubGlobal("Uint32Array", failing);
}

describe("the memory of ids", () => {
  it.each([1, 2])("stores nothing twice where it finds no room: allocation %i", async (nth) => {
    ID_LIMITS.remembered = limits.remembered;
    const log = new TestLog(tenant, `no-room-${nth}`);
    await log.append(entries(1000));
    const many = Array.from({ length: 30 }, (_, i) => entry({ id: `x-${i}` }));
    failAllocation(4096, nth);
    const answers = await Promise.all([log.append(many), log.append(many[3])]);
    vi.unstubAllGlobals();
    for (const { status } of answers) expect([200, 201, 207, 503]).toContain(status);
    const again = await log.append(many);
    expect(new Set(resultsOf(again).map(({ seq }) => seq)).size).toBe(30);
    const { size, ids } = await log.check();
    expect(size).toBe(1030);
    expect(new Set(ids).size).toBe(1030);
  });

  it("takes no id for new where a segment does not hold what it should", async () => {
    const log = new TestLog(tenant, "cut");
    const sent = Array.from({ length: 5 }, (_, i) => entry({ id: `cut-${i}` }));
    await log.append(sent);
    const rows = await log.inside((state) => {
      const [stored] = state.storage.sql.exec("SELECT rows FROM segments WHERE first_seq = 1").toArray();
      const text = String(stored?.rows);
      state.storage.sql.exec(
        "UPDATE segments SET rows = ? WHERE first_seq = 1",
        text.slice(0, text.indexOf("\n")),
      );
      return text;
    });
    const refused = await log.append(sent[3]);
    expect([refused.status, problemOf(refused)]).toEqual([503, "storage-failed"]);
    await log.inside((state) => {
      state.storage.sql.exec("UPDATE segments SET rows = ? WHERE first_seq = 1", rows);
    });
    expect((await log.append(sent[3])).status).toBe(200);
    expect((await log.check()).size).toBe(5);
  });

  it("finds each id of a request whose entries came from many requests, in any order", async () => {
    const log = new TestLog(tenant, "mixed");
    ID_LIMITS.remembered = limits.remembered;
    const sent: Record<string, unknown>[] = [];
    for (let i = 0; i < 7; i++) {
      const some = Array.from({ length: 5 }, (_, j) => entry({ id: `mixed-${i}-${j}` }));
      await log.append(some);
      sent.push(...some);
    }
    const order = sent.map((one, i) => ({ one, key: (i * 17) % sent.length })).sort((a, b) => a.key - b.key);
    const again = await log.append(order.map(({ one }) => one));
    expect(again.status).toBe(200);
    expect(resultsOf(again).map(({ seq }) => seq)).toEqual(order.map(({ one }) => sent.indexOf(one) + 1));
  });

  it("keeps what it said of an erasure's ids while D1 is asked for the others", async () => {
    const log = new TestLog(tenant, "erased");
    await log.append(entry({ id: "forgotten", action: { tool: "t", args: "secret-1" } }));
    for (let i = 0; i < 3; i++) await log.append(entries(10));
    await log.get("/entries?limit=1");
    await log.append(entries(10));
    await log.append(entry({ id: "remembered", action: { tool: "t", args: "secret-2" } }));
    await log.get("/entries?limit=1");
    const { batch, prepare } = env.DB;
    let asked = false;
    vi.spyOn(env.DB, "prepare").mockImplementation((sql) => {
      asked ||= sql === ENTRIES_BY_ID;
      return prepare.call(env.DB, sql);
    });
    let evicted = false;
    vi.spyOn(env.DB, "batch").mockImplementation(async (statements) => {
      if (asked && !evicted) {
        evicted = true;
        // The commits that make the log forget go before D1's answer.
        for (let i = 0; i < 2; i++) {
          for (let j = 0; j < 3; j++) await log.append(entries(10));
          await log.get("/entries?limit=1");
        }
        await log.append(entries(10));
      }
      return batch.call(env.DB, statements) as Promise<never>;
    });
    const erased = await erase(log, { ids: ["forgotten", "remembered"] });
    expect([evicted, erased.status, erased.body.entries]).toEqual([true, 200, 2]);
    await log.check();
  });
});
