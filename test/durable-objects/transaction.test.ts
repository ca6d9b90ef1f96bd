import { beforeAll, describe, expect, it } from "vitest";
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

/** Makes the log's storage refuse what the condition matches, in the middle of its transaction. */
async function breakStorage(log: TestLog, event: string, condition: string): Promise<void> {
  await log.inside((state) => {
    state.storage.sql.exec(
      `CREATE TRIGGER broken BEFORE ${event} WHEN ${condition} BEGIN SELECT RAISE(ABORT, 'broken'); END`,
    );
  });
}

async function mendStorage(log: TestLog): Promise<void> {
  await log.inside((state) => {
    state.storage.sql.exec("DROP TRIGGER broken");
  });
}

const refusedAs503 = (answer: Answer) =>
  answer.status === 503 &&
  problemOf(answer) === "storage-failed" &&
  answer.headers.get("retry-after") !== null;

describe("a request that fails in its transaction", () => {
  it("costs its neighbours in the group nothing", async () => {
    const log = new TestLog(tenant, "neighbours");
    await log.append(entry());
    await breakStorage(log, "INSERT ON segments", "NEW.rows LIKE '%poison%'");
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => log.append(entries(3))),
      log.append([entry(), entry({ id: "poison" }), entry()]),
      ...Array.from({ length: 10 }, () => log.append(entries(3))),
    ]);
    const poisoned = answers.splice(10, 1)[0] as Answer;
    expect(refusedAs503(poisoned)).toBe(true);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    const { size, ids } = await log.check();
    expect(size).toBe(61);
    expect(ids).not.toContain("poison");
    await mendStorage(log);
    const again = await log.append(entry({ id: "poison" }));
    expect(resultsOf(again)[0]).toMatchObject({ seq: 62, status: "stored" });
    expect((await log.check()).size).toBe(62);
  });

  it("costs its neighbours nothing where its leaf is too large", async () => {
    const log = new TestLog(tenant, "large-leaf");
    await log.append(entry());
    const stub = await log.stub();
    const oversized = {
      log: await log.identity(),
      epoch: 0,
      atomic: false,
      ids: ["oversized"],
      frame: encodeFrame([
        { bytes: new Uint8Array(17 * 1024), row: '{"i":"oversized","k":"x"}\u0001\u0001' },
      ]),
    };
    const [large, ...answers] = await Promise.all([
      stub.append(oversized),
      ...Array.from({ length: 10 }, () => log.append(entry())),
    ]);
    expect(large).toMatchObject({ ok: false, code: "storage-failed" });
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect((await log.check()).size).toBe(11);
  });
});

describe("a transaction that throws", () => {
  // Each breaks the transaction after more of it was done.
  const places: [string, string, string][] = [
    ["writing the segment", "INSERT ON segments", "1"],
    ["writing a full tile", "INSERT ON tiles", "NEW.level = 0"],
    ["writing an upper tile", "INSERT ON tiles", "NEW.level = 1"],
    ["writing the head", "UPDATE ON head", "1"],
  ];
  it.each(places)("leaves nothing behind, in memory or storage: %s", async (name, event, condition) => {
    const log = new TestLog(tenant, `t-${name.replaceAll(" ", "-")}`);
    await log.append(entries(250));
    const { body: before } = await log.get("/head");
    await breakStorage(log, event, condition);
    const lost = entries(10);
    const answers = await Promise.all([log.append(lost), log.append(entries(12))]);
    expect(answers.map(refusedAs503)).toEqual([true, true]);
    expect((await log.get("/head")).body.checkpoint).toBe(before.checkpoint);
    expect((await log.check()).size).toBe(250);
    await mendStorage(log);
    // The same entries, sent again, are new: nothing of the first attempt is remembered.
    const again = await log.append(lost);
    expect(resultsOf(again).map(({ seq, status }) => [seq, status])).toEqual(
      lost.map((_, i) => [251 + i, "stored"]),
    );
    expect((await log.append(entries(300))).status).toBe(201);
    expect((await log.check()).size).toBe(560);
    await log.evict();
    expect((await log.append(entry())).status).toBe(201);
    expect((await log.check()).size).toBe(561);
  });

  it("is answered with 503 to everyone while storage refuses everything, and forgotten when it no longer does", async () => {
    const log = new TestLog(tenant, "all-refused");
    await log.append(entry());
    await breakStorage(log, "UPDATE ON head", "1");
    const answers = await Promise.all(Array.from({ length: 20 }, () => log.append(entry())));
    expect(answers.map(refusedAs503)).toEqual(answers.map(() => true));
    await mendStorage(log);
    expect((await log.append(entry())).status).toBe(201);
    expect((await log.check()).size).toBe(2);
  });
});

describe("a new log whose storage refuses its first head", () => {
  it("answers 503, and opens when storage takes it", async () => {
    const log = new TestLog(tenant, "unopened");
    expect((await call(tenant.key, "POST", "/v1/principals", { name: "unopened" })).status).toBe(201);
    await breakStorage(log, "INSERT ON head", "1");
    expect(refusedAs503(await log.append(entry()))).toBe(true);
    expect(refusedAs503(await log.get("/head"))).toBe(true);
    await mendStorage(log);
    expect((await log.append(entry())).status).toBe(201);
    expect((await log.check()).size).toBe(1);
  });
});

describe("entries at the limits", () => {
  // Canonical text of these is several times longer than what was sent, and stored text longer still.
  const fillers: [string, string][] = [
    ["quotes", '\\"'],
    ["angle brackets", "<"],
    ["wide characters", "\u6f22"],
  ];
  it.each(fillers)("are stored, found and verified: values of %s", async (name, filler) => {
    const log = new TestLog(tenant, `filled-${name.replaceAll(" ", "-")}`);
    const canonical = filler === "<" ? 6 : new TextEncoder().encode(filler).length;
    const repeated = filler.repeat(Math.floor((1024 * 1024 - 2) / canonical));
    const half = filler.repeat(Math.floor((512 * 1024 - 100) / canonical));
    const text = `{"id":"big","kind":"tool.call.completed","call":"c","action":{"tool":"t"},"outcome":{"status":"success","result":"${repeated}","error":"${half}"}}`;
    const answer = await log.append(`[${JSON.stringify(entry())},${text},${JSON.stringify(entry())}]`);
    expect([answer.status, resultsOf(answer).map(({ seq, error }) => seq ?? error)]).toEqual([
      201,
      [1, 2, 3],
    ]);
    expect((await log.check()).ids[1]).toBe("big");
    expect((await log.append(text)).status).toBe(200);
    const read = (await log.get("/entries/2")).text;
    expect(read.includes(repeated.replaceAll("<", "\\u003c"))).toBe(true);
    expect((await log.progress()).flushed).toBe(3);
  });
});
