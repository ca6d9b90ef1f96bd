import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { startServerProcess } from "../../support/server.ts";
import { createTenant, patiently, SOAK } from "../faults/load.ts";

const KILLS = SOAK ? 20 : 2;
const CLIENTS = SOAK ? 16 : 6;

interface Receipt {
  readonly seq: number;
  readonly hash: string;
}

it(`an Idempotency-Key stores entries without ids once over ${KILLS} kills at random instants`, {
  timeout: SOAK ? 1_800_000 : 300_000,
}, async () => {
  let server = await startServerProcess();
  const tenant = await createTenant(server);
  const path = "/v1/principals/keyed/entries";
  const receipts: Receipt[] = [];
  let stopped = false;
  let answered = 0;

  /** Sends one request under one key until it is answered. */
  async function store(key: string, count: number): Promise<void> {
    const body = Array.from({ length: count }, (_, i) => ({
      kind: "message.delta",
      action: { chunk: `${key}/${i}` },
    }));
    for (;;) {
      try {
        const answer = await server.client(tenant.key).post(path, body, { "idempotency-key": key });
        if (answer.status === 201) {
          receipts.push(...answer.json<{ results: Receipt[] }>().results);
          answered += 1;
          // What an answer that got lost looks like to the client: now and then it asks again.
          if (answered % 5 === 0) {
            const again = await server.client(tenant.key).post(path, body, { "idempotency-key": key });
            if (again.status === 201) expect(again.text).toBe(answer.text);
          }
          return;
        }
        expect([503, 409], answer.text).toContain(answer.status);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      await delay(20);
    }
  }

  const sent = new Map<string, number>();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let n = 0; !stopped; n++) {
      const [key, count] = [`${client}-${n}`, 1 + (n % 3)];
      sent.set(key, count);
      await store(key, count);
    }
  });
  for (let kill = 0; kill < KILLS; kill++) {
    const before = answered;
    while (answered < before + 20) await delay(5);
    await delay(Math.floor(Math.random() * 200));
    await server.killTree();
    server = await server.restart();
  }
  const before = answered;
  while (answered < before + 20) await delay(5);
  stopped = true;
  await Promise.all(clients);

  const chunks: string[] = [];
  const hashes = new Map<number, string>();
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = `?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { status, text } = await patiently(server.client(tenant.key), `${path}${query}`);
    expect(status).toBe(200);
    const page = JSON.parse(text) as {
      entries: (Receipt & { action: { chunk: string } })[];
      next_cursor: string | null;
    };
    for (const { seq, hash, action } of page.entries) {
      chunks.push(action.chunk);
      hashes.set(seq, hash);
    }
    cursor = page.next_cursor;
  }
  const expected = [...sent].flatMap(([key, count]) =>
    Array.from({ length: count }, (_, i) => `${key}/${i}`),
  );
  expect(chunks.length).toBe(expected.length);
  expect([...chunks].sort()).toEqual(expected.sort());
  for (const { seq, hash } of receipts) expect(hashes.get(seq)).toBe(hash);
  // One that was answered before a kill cut off its repetition is there twice.
  expect(new Set(receipts.map(({ seq }) => seq)).size).toBe(expected.length);
  await server.stop();
});
