import { env } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ContentKeys } from "../../../durable-objects/content/content-keys.ts";
import { MIRROR_PACE } from "../../../durable-objects/tile-store/mirror-keeper.ts";
import type { Answer, TestTenant } from "../../workers/support.ts";
import { breakGets, breakIndex, breakIndexWrites, breakPuts, strike } from "../faults.ts";
import { entries, entry, newTenant, problemOf, TestLog } from "../support.ts";
import { erase, placesOf, settle, systemEntries } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 1;
});
afterEach(() => {
  vi.restoreAllMocks();
});

const secret = (text: string, overrides: Record<string, unknown> = {}) =>
  entry({ action: { tool: `tool-${text}`, args: { of: `args-${text}` } }, ...overrides });
const done = (answer: Answer) => [answer.status, answer.body.pending];

describe("an erasure", () => {
  it("of an entry that is not flushed yet", async () => {
    const log = new TestLog(tenant, "outbox");
    const sent = secret("outbox-1");
    await log.append([entry(), sent, secret("outbox-2")]);
    expect(await placesOf(log, "outbox-1")).not.toEqual([]);
    const answer = await erase(log, { seq: 2 });
    expect(done(answer)).toEqual([200, []]);
    expect(answer.body.entries).toBe(1);
    await settle(log);
    expect(await placesOf(log, "outbox-1")).toEqual([]);
    expect(await placesOf(log, "args-outbox-2")).toEqual([
      "segments",
      "D1 entries",
      "/entries?limit=1000",
      "/export",
    ]);
    await log.check();
  });

  it("of entries that are sealed in R2: their keys are gone, and no other's", async () => {
    const log = new TestLog(tenant, "boxed");
    await log.append(entries(100));
    await log.append([secret("boxed-1"), secret("boxed-2"), secret("boxed-3")]);
    await log.append(entries(160));
    await settle(log);
    const keysOf = () =>
      log.inside((state) => new Set(new ContentKeys(state.storage.sql).chunkOf(1)?.keys.keys()));
    expect((await keysOf()).size).toBe(256);
    expect(done(await erase(log, { from: 101, to: 102 }))).toEqual([200, []]);
    const keys = await keysOf();
    expect([keys.has(100), keys.has(101), keys.has(102), keys.size]).toEqual([false, false, true, 254]);
    expect(await placesOf(log, "boxed-1")).toEqual([]);
    expect(await placesOf(log, "boxed-2")).toEqual([]);
    expect(await placesOf(log, "args-boxed-3")).not.toEqual([]);
    await log.check();
  });

  it("of one field leaves the others, wherever the entry is", async () => {
    const log = new TestLog(tenant, "field");
    await log.append([secret("field-1", { id: "field-boxed" }), ...entries(255)]);
    await settle(log);
    await log.append(secret("field-2", { id: "field-outbox" }));
    const answer = await erase(log, { ids: ["field-boxed", "field-outbox"], fields: ["action.args"] });
    expect(done(answer)).toEqual([200, []]);
    expect(answer.body.entries).toBe(2);
    for (const text of ["args-field-1", "args-field-2"]) expect(await placesOf(log, text)).toEqual([]);
    for (const seq of [1, 257]) {
      const { body } = await log.get(`/entries/${seq}`);
      expect(body.action).toEqual({
        tool: seq === 1 ? "tool-field-1" : "tool-field-2",
        args: { $erased: true, $commitment: expect.stringMatching(/^[0-9a-f]{64}$/) },
      });
    }
    // The tool's column is still there, and goes with its field.
    expect(((await log.get("/entries?tool=tool-field-1")).body.entries as unknown as unknown[]).length).toBe(
      1,
    );
    expect(done(await erase(log, { seq: 1, fields: ["action.tool"] }))).toEqual([200, []]);
    expect(await placesOf(log, "tool-field-1")).toEqual([]);
    expect(((await log.get("/entries?tool=tool-field-1")).body.entries as unknown as unknown[]).length).toBe(
      0,
    );
    await log.check();
  });

  it.each([
    ["quotes", '"'],
    ["wide characters", "\u3042"],
  ])(
    "of one of two large values, of %s, leaves the other to the last character",
    async (_name, character) => {
      const log = new TestLog(tenant, `large-${character.charCodeAt(0)}`);
      const bytes = character === '"' ? 2 : 3;
      const text = character.repeat(Math.floor(700_000 / bytes));
      const large = entry({
        action: { tool: "t", args: `gone-large ${text}`, extra: { kept: `kept-large ${text}` } },
      });
      expect((await log.append([large, ...entries(255)])).status).toBe(201);
      await settle(log);
      expect(done(await erase(log, { from: 1, to: 256, fields: ["action.args"] }))).toEqual([200, []]);
      const { body } = await log.get("/entries/1");
      expect((body.action as unknown as { extra: { kept: string } }).extra.kept).toBe(`kept-large ${text}`);
      expect(await placesOf(log, "gone-large")).toEqual([]);
      await log.check();
    },
  );

  it("reads what is left of an entry whose segment is pruned from its box", async () => {
    const log = new TestLog(tenant, "pruned");
    await log.append([secret("pruned-1"), secret("pruned-2"), secret("pruned-3"), ...entries(253)]);
    await settle(log);
    await log.append(entry());
    await settle(log);
    await log.inside((state) => state.storage.sql.exec("DELETE FROM segments WHERE first_seq <= 256"));
    await log.evict();
    // A key that is gone takes no reading; a single field does.
    const broken = breakGets((key) => key.includes("/content/"));
    const whole = await erase(log, { seq: 1 });
    expect(done(whole)).toEqual([200, []]);
    const field = await erase(log, { seq: 2, fields: ["action.args"] });
    expect(done(field)).toEqual([202, ["log", "index", "record"]]);
    expect(field.body.recoverable_until).toBe(null);
    broken.mend();
    await settle(log);
    expect(done(await erase(log, { seq: 2, fields: ["action.args"] }))).toEqual([200, []]);
    for (const text of ["pruned-1", "args-pruned-2"]) expect(await placesOf(log, text)).toEqual([]);
    const { body } = await log.get("/entries/2");
    expect(body.action).toMatchObject({ tool: "tool-pruned-2", args: { $erased: true } });
    expect((await log.get("/entries/3")).text).toContain("args-pruned-3");
    expect((await log.get("/verify")).body.verdict).toBe("intact");
  });

  it("is the same again: one record, one count; and nothing is erased of an entry that has nothing", async () => {
    const log = new TestLog(tenant, "again");
    await log.append([
      secret("again-1"),
      entry({ action: { tool: { $commitment: "ab".repeat(32) }, args: { $commitment: "ab".repeat(32) } } }),
    ]);
    const [first, second] = [await erase(log, { from: 1, to: 2 }), await erase(log, { from: 1, to: 2 })];
    expect(second.body).toEqual(first.body);
    expect(first.body.entries).toBe(1);
    const { action } = (await log.get("/entries/2")).body as unknown as { action: unknown };
    expect(action).toEqual({
      tool: { $commitment: "ab".repeat(32) },
      args: { $commitment: "ab".repeat(32) },
    });
    const other = await erase(log, { from: 1, to: 2, reason: "another one" });
    expect([other.body.entries, other.body.id === first.body.id]).toEqual([0, false]);
    const logId = first.body.recorded;
    expect(logId).not.toBe(null);
    const records = (await systemEntries(log, "erasure.done")).filter(({ id }) =>
      id.endsWith(String(first.body.id)),
    );
    expect(records.length).toBe(1);
    expect(records[0]?.action).toMatchObject({
      from: 1,
      to: 2,
      count: 1,
      reason: "the person asked for it",
      request_entry: first.body.requested,
      recoverable_until: first.body.recoverable_until,
    });
  });
});

describe("while a part is away", () => {
  it.each(["fails", "fails but persisted"] as const)(
    "D1 %s: the log forgets at once, and D1 follows",
    async (fault) => {
      const text = `away-${fault.length}-`;
      const log = new TestLog(tenant, `index-${fault.length}`);
      await log.append([secret(text), entry()]);
      await settle(log);
      await log.append(secret(`${text}-late`));
      const injected = breakIndexWrites(fault);
      const answer = await erase(log, { from: 1, to: 3 });
      expect([answer.status, answer.body.done, answer.body.recoverable_until]).toEqual([202, ["log"], null]);
      expect(injected.count()).toBeGreaterThan(0);
      expect(
        await log.inside((state) =>
          JSON.stringify(state.storage.sql.exec("SELECT rows FROM segments").toArray()),
        ),
      ).not.toContain(text);
      await log.evict();
      injected.mend();
      const [requested] = (await systemEntries(log, "erasure.requested")).slice(-1);
      expect(requested?.action).toMatchObject({ from: 1, to: 3 });
      await settle(log);
      expect(await placesOf(log, text)).toEqual([]);
      const after = await erase(log, { from: 1, to: 3 });
      expect(done(after)).toEqual([200, []]);
      expect(after.body.entries).toBe(3);
      await log.check();
    },
  );

  it("the system log takes no request: nothing is erased", async () => {
    const log = new TestLog(tenant, "refused");
    await log.append(secret("unrecorded-1"));
    const original = env.PRINCIPAL_LOG.getByName.bind(env.PRINCIPAL_LOG);
    const own = await log.stub();
    const spy = vi.spyOn(env.PRINCIPAL_LOG, "getByName").mockImplementation(((name: string) => {
      const stub = original(name);
      if (stub.id.equals(own.id)) return stub;
      return { append: async () => ({ ok: false, code: "storage-failed", detail: "away", retryAfter: 1 }) };
    }) as never);
    const answer = await erase(log, { seq: 1 });
    expect([answer.status, problemOf(answer)]).toEqual([503, "storage-failed"]);
    spy.mockRestore();
    expect((await log.get("/entries/1")).text).toContain("unrecorded-1");
  });

  it("the system log takes no record of what is done: it gets it later, from the log itself", async () => {
    const log = new TestLog(tenant, "unrecorded-later");
    await log.append(secret("record-later"));
    const original = env.PRINCIPAL_LOG.getByName.bind(env.PRINCIPAL_LOG);
    const own = await log.stub();
    let appends = 0;
    const spy = vi.spyOn(env.PRINCIPAL_LOG, "getByName").mockImplementation(((name: string) => {
      const stub = original(name);
      if (stub.id.equals(own.id)) return stub;
      appends += 1;
      if (appends === 1) return stub;
      return { append: async () => ({ ok: false, code: "storage-failed", detail: "away", retryAfter: 1 }) };
    }) as never);
    const answer = await erase(log, { seq: 1 });
    expect([answer.status, answer.body.pending, answer.body.recorded]).toEqual([202, ["record"], null]);
    expect(answer.body.recoverable_until).not.toBe(null);
    spy.mockRestore();
    expect(await placesOf(log, "record-later")).toEqual([]);
    await settle(log);
    expect((await systemEntries(log, "erasure.done")).at(-1)?.id).toBe(`erasure.done.${answer.body.id}`);
  });

  it("R2 has not taken a box yet: it never gets what was erased", async () => {
    const log = new TestLog(tenant, "unboxed");
    await log.append([secret("unboxed-1"), ...entries(255)]);
    const injected = breakPuts("fails but persisted", (key) => key.includes("/content/"));
    await log.alarm();
    expect(injected.count()).toBe(1);
    expect(done(await erase(log, { seq: 1 }))).toEqual([200, []]);
    injected.mend();
    await settle(log);
    const keys = await log.inside((state) => new ContentKeys(state.storage.sql).chunkOf(1)?.keys.has(0));
    expect(keys).toBe(false);
    expect(await placesOf(log, "unboxed-1")).toEqual([]);
  });

  /** Sets D1 back to where it is now. */
  async function snapshot(log: TestLog): Promise<() => Promise<void>> {
    const named = await env.DB.prepare("SELECT log_id FROM logs WHERE name = ?").bind(log.name).first();
    const logId = named?.log_id;
    const where = "log = (SELECT log FROM logs WHERE log_id = ?1)";
    const { results: rows } = await env.DB.prepare(`SELECT * FROM entries WHERE ${where}`).bind(logId).all();
    const head = await env.DB.prepare("SELECT last_seq, last_hash FROM logs WHERE log_id = ?")
      .bind(logId)
      .first();
    return async () => {
      for (const { content, salts, tool, seq } of rows) {
        await env.DB.prepare(
          `UPDATE entries SET content = ?2, salts = ?3, tool = ?4 WHERE ${where} AND seq = ?5`,
        )
          .bind(logId, content, salts, tool, seq)
          .run();
      }
      await env.DB.prepare(`DELETE FROM entries WHERE ${where} AND seq > ?2`).bind(logId, rows.length).run();
      await env.DB.prepare("UPDATE logs SET last_seq = ?2, last_hash = ?3 WHERE log_id = ?1")
        .bind(logId, head?.last_seq, head?.last_hash)
        .run();
    };
  }

  it("D1 is set back behind what it confirmed: what was erased there is erased again", async () => {
    const log = new TestLog(tenant, "rewound");
    await log.append([secret("set-back-1"), secret("set-back-2")]);
    await settle(log);
    const setBack = await snapshot(log);
    await log.append(entry());
    await settle(log);
    const first = await erase(log, { from: 1, to: 2 });
    expect(done(first)).toEqual([200, []]);
    await setBack();
    // A reader notices it.
    await log.get("/entries");
    await settle(log);
    expect(await placesOf(log, "set-back-")).toEqual([]);
    expect((await erase(log, { from: 1, to: 2 })).body).toEqual(first.body);
    await log.check();
  });

  it("D1 is set back between two batches of an erasure, and filled again before the second", async () => {
    const log = new TestLog(tenant, "set-back-between");
    // What is left of two takes more than one batch.
    const large = (text: string) => entry({ action: { tool: `tool-${text}`, args: "a".repeat(300_000) } });
    await log.append(large("between-1"));
    await settle(log);
    const setBack = await snapshot(log);
    await log.append(large("between-2"));
    await settle(log);
    const batch = env.DB.batch.bind(env.DB);
    let erasing = 0;
    const spy = vi.spyOn(env.DB, "batch").mockImplementation((async (statements) => {
      if (JSON.stringify(statements).includes("UPDATE entries SET content") && ++erasing === 2) {
        await setBack();
        const stub = await log.stub();
        expect(await stub.reindex(await log.identity(), 0)).toMatchObject({ ok: true });
      }
      return batch(statements);
    }) as D1Database["batch"]);
    await erase(log, { from: 1, to: 2, fields: ["action.tool"] });
    expect(erasing).toBeGreaterThanOrEqual(2);
    spy.mockRestore();
    await settle(log);
    expect(await placesOf(log, "tool-between-")).toEqual([]);
    expect(await systemEntries(log, "erasure.done")).not.toEqual([]);
    await log.check();
  });

  it("D1 is set back, and nothing shows it: the same request erases again", async () => {
    const log = new TestLog(tenant, "restored");
    await log.append([secret("unseen-1"), secret("unseen-2")]);
    await settle(log);
    const setBack = await snapshot(log);
    const first = await erase(log, { from: 1, to: 2 });
    await setBack();
    expect(await placesOf(log, "unseen-1")).toContain("D1 entries");
    expect((await erase(log, { from: 1, to: 2 })).body).toEqual(first.body);
    expect(await placesOf(log, "unseen-")).toEqual([]);
  });

  it("every part strikes now and then, under load: what was erased is gone for good", {
    timeout: 120_000,
  }, async () => {
    const log = new TestLog(tenant, "load");
    await log.append(entry());
    const faults = [
      strike(env.DB, "batch", "fails but persisted"),
      strike(env.MIRROR, "put", "fails"),
      strike(env.MIRROR, "get", "slow"),
    ];
    const erased: string[] = [];
    const insist = async (work: () => Promise<Answer>): Promise<Answer> => {
      for (let attempt = 0; attempt < 50; attempt++) {
        const answer = await work();
        if (answer.status < 300) return answer;
        if (answer.status !== 503) throw new Error(answer.text);
      }
      throw new Error("never answered");
    };
    const clients = Array.from({ length: 6 }, async (_, client) => {
      for (let round = 0; round < 6; round++) {
        const text = `load-${client}-${round}-`;
        const sent = [...entries(20), secret(text), ...entries(5)];
        const answer = await insist(() => log.append(sent));
        const { seq } = (answer.body.results as unknown as { seq: number }[])[20] ?? { seq: 0 };
        if (client % 2 === 0) await log.alarm();
        if (round % 2 === 0) {
          await insist(() => erase(log, { seq }));
          erased.push(text);
        }
      }
    });
    await Promise.all(clients);
    await log.evict();
    for (const fault of faults) {
      expect(fault.count()).toBeGreaterThan(0);
      fault.mend();
    }
    await log.append(entries(2));
    await settle(log);
    expect(erased.length).toBe(18);
    for (const text of erased) expect([text, await placesOf(log, text)]).toEqual([text, []]);
    expect(await placesOf(log, "args-load-0-1-")).toContain("/export");
    const requested = (await systemEntries(log, "erasure.requested")).map(({ id }) =>
      id.slice("erasure.requested.".length),
    );
    const recorded = (await systemEntries(log, "erasure.done")).map(({ id }) =>
      id.slice("erasure.done.".length),
    );
    for (const id of requested.slice(-18)) expect(recorded).toContain(id);
    await log.check();
  });

  it("D1 is away when ids are looked up: nothing is done", async () => {
    const log = new TestLog(tenant, "look-up");
    await log.append(secret("look-up", { id: "look-up-1" }));
    const injected = breakIndex();
    const answer = await erase(log, { ids: ["never-sent"] });
    injected.mend();
    expect([answer.status, problemOf(answer)]).toEqual([503, "index-unavailable"]);
    expect((await log.get("/entries/1")).text).toContain("args-look-up");
  });
});
