import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServerProcess, type TestServer } from "../../support/server.ts";
import { createTenant, LoadedLog, newEntry, patiently, SOAK, type Tenant } from "../faults/load.ts";

const CLIENTS = 200;
const APPENDS = SOAK ? 100 : 6;
const PRINCIPALS = SOAK ? 200 : 60;

let server: TestServer;
let tenant: Tenant;
beforeAll(async () => {
  server = await startServerProcess();
  tenant = await createTenant(server);
});
afterAll(async () => {
  await server.stop();
});

/** Appends an entry; answers how much of the log was mirrored by then, which each flush is followed by. */
async function appendOne(log: LoadedLog): Promise<{ seq: number; mirrored: number }> {
  const entry = newEntry();
  log.sent.add(entry.id as string);
  const answer = await server.client(tenant.key).post(`${log.path}/entries`, entry);
  expect([answer.status, answer.status === 201 ? "" : answer.text]).toEqual([201, ""]);
  log.told.take(answer.text);
  const body = answer.json<{ results: { seq: number }[]; mirrored_size: number }>();
  return { seq: body.results[0]?.seq ?? 0, mirrored: body.mirrored_size };
}

describe("200 clients on one principal", () => {
  it("get gap-free numbers in one history, and do not starve its flush", async () => {
    const log = new LoadedLog("crowded");
    const seqs: number[] = [];
    let mirrored = 0;
    let flushedUnderLoad = false;
    let lastSeq = 0;
    const client = async (): Promise<void> => {
      let before = 0;
      // The load does not end before a flush has gone through under it: one that is starved never does.
      for (let i = 0; i < APPENDS || (!flushedUnderLoad && i < 1000); i++) {
        const told = await appendOne(log);
        expect(told.seq).toBeGreaterThan(before);
        before = told.seq;
        seqs.push(told.seq);
        lastSeq = Math.max(lastSeq, told.seq);
        if (told.mirrored > mirrored && mirrored > 0) flushedUnderLoad = true;
        mirrored = Math.max(mirrored, told.mirrored);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    expect(flushedUnderLoad).toBe(true);
    seqs.sort((a, b) => a - b);
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => i + 1));
    const { size } = await log.check(server.client(tenant.key), tenant, 60);
    expect(size).toBe(lastSeq);
  });
});

describe(`${PRINCIPALS} principals at once`, () => {
  it("each get a log of their own without a gap, and a reader of all of them sees all", async () => {
    const logs = Array.from({ length: PRINCIPALS }, (_, i) => new LoadedLog(`one-of-many-${i}`));
    await Promise.all(
      logs.map(async (log) => {
        const told = await Promise.all(Array.from({ length: 5 }, () => appendOne(log)));
        expect(told.map(({ seq }) => seq).sort()).toEqual([1, 2, 3, 4, 5]);
      }),
    );
    // At once after the last answer: whatever D1 does not hold yet is flushed first, or the answer is 503.
    const seen = new Set<string>();
    for (let cursor: string | null = ""; cursor !== null; ) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { status, text } = await patiently(server.client(tenant.key), `/v1/entries?limit=1000${query}`);
      expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
      const page = JSON.parse(text) as { entries: { id: string }[]; next_cursor: string | null };
      for (const { id } of page.entries) seen.add(id);
      cursor = page.next_cursor;
    }
    const missing = logs.flatMap((log) => [...log.told.receipts.keys()].filter((id) => !seen.has(id)));
    expect(missing).toEqual([]);
    for (const log of logs.slice(0, SOAK ? PRINCIPALS : 12)) {
      expect((await log.check(server.client(tenant.key), tenant, 5)).size).toBe(5);
    }
  });
});
