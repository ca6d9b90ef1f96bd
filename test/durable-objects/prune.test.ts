import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ContentArchive } from "../../durable-objects/content/archive.ts";
import { Erasures } from "../../durable-objects/content/erasures.ts";
import { PASS_LIMITS } from "../../durable-objects/content/pass.ts";
import { Outbox } from "../../durable-objects/principal-log/outbox.ts";
import { PRUNE_LIMITS } from "../../durable-objects/principal-log/prune.ts";
import { Mirror } from "../../durable-objects/tile-store/mirror-keeper.ts";
import type { TestTenant } from "../workers/support.ts";
import { erase, settle } from "./content/support.ts";
import { breakIndex, breakIndexWrites } from "./faults.ts";
import { clearIndex, readIndex, restoreIndex } from "./index-copy.ts";
import {
  answers,
  emptyIndexOf,
  indexOf,
  lowerBounds,
  mixedLog,
  prune,
  prunedTo,
  readUntilFilled,
  restoreBounds,
  stopPruning,
  textOf,
} from "./pruned-log.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});
beforeEach(lowerBounds);
afterEach(() => {
  vi.restoreAllMocks();
  restoreBounds();
});

const segmentCount = (log: TestLog) =>
  log.inside((state) => state.storage.sql.exec("SELECT count(*) AS n FROM segments").one().n);

/** A log of which 700 of 1,000 entries can be pruned. */
async function readyLog(name: string): Promise<TestLog> {
  const log = new TestLog(tenant, name);
  stopPruning();
  for (let i = 0; i < 20; i++) await log.append(entries(50));
  await settle(log);
  lowerBounds();
  return log;
}

/** Passes of nothing but the pruning; up to which entry they get. */
async function pruneAlone(log: TestLog): Promise<number> {
  const spies = [
    vi.spyOn(ContentArchive.prototype, "run").mockResolvedValue(),
    vi.spyOn(Erasures.prototype, "run").mockResolvedValue(true),
    vi.spyOn(Mirror.prototype, "run").mockResolvedValue(),
    vi.spyOn(Mirror.prototype, "compareOnce").mockResolvedValue(),
    vi.spyOn(Outbox.prototype, "flush").mockResolvedValue({ ok: true }),
    vi.spyOn(Outbox.prototype, "lag", "get").mockReturnValue(0),
  ];
  for (let pass = 0; pass < 10; pass++) {
    await log.inside((state) => state.storage.setAlarm(Date.now() + 60_000));
    await log.alarm();
  }
  for (const spy of spies) spy.mockRestore();
  return (await prunedTo(log)).seq;
}

describe("which segments leave a log", () => {
  it("none of a log that remembers all its ids", async () => {
    restoreBounds();
    PRUNE_LIMITS.entries = 64;
    const log = new TestLog(tenant, "small");
    for (let i = 0; i < 4; i++) await log.append(entries(256));
    expect(await prune(log)).toBe(0);
  });

  it("those with neither an id that it remembers nor one of the newest 256 entries, in whole steps", async () => {
    const log = new TestLog(tenant, "tail");
    for (let i = 0; i < 40; i++) await log.append(entries(25));
    const pruned = await prune(log);
    const { size, archived } = await log.progress();
    expect([size, archived]).toEqual([1001, 768]);
    // 744 may go (the 745th is one of the newest 256 and one), in segments of 25, of which two make a step.
    expect(await prunedTo(log)).toEqual({ seq: 700, segments: 701 });
    expect(pruned).toBe(700);
    const health = await log.get("/health");
    expect(health.body).toMatchObject({ status: "ok", accepted: 1001, pruned: 700, lost: 0 });
    // The same again changes nothing, and a log at rest rests.
    await settle(log);
    expect(await log.alarm()).toBe(false);
    await log.check();
  });

  it.each([
    ["in D1", "progress", "flushed_seq", 260],
    ["in bundles", "progress", "archived_seq", 260],
    ["under a mirrored head", "progress", "mirrored_size", 260],
    ["in boxes", "content_progress", "boxed_seq", 260],
  ])("only what is %s", async (_, table, column, value) => {
    const log = await readyLog(`behind-${column.replace("_", "-")}`);
    await log.inside((state) => state.storage.sql.exec(`UPDATE ${table} SET ${column} = ${value}`));
    await log.evict();
    expect(await pruneAlone(log)).toBe(200);
  });

  it.each([
    ["an erasure is open", "INSERT INTO erasures VALUES (1, 'x', '{}', 0, 0, 0, NULL, NULL)"],
    ["D1 contradicts it", "INSERT INTO alarms VALUES ('index-conflict', 'a test')"],
    ["it is stopped", "INSERT INTO alarms VALUES ('stopped', 'a test')"],
  ])("none while %s", async (name, statement) => {
    const log = await readyLog(`none-${name.replaceAll(" ", "-")}`);
    await log.inside((state) => state.storage.sql.exec(statement));
    await log.evict();
    expect(await pruneAlone(log)).toBe(0);
  });

  it("none whose id it remembers, which a restart makes fewer", async () => {
    const log = new TestLog(tenant, "remembered");
    restoreBounds();
    stopPruning();
    const old = entry({ id: "remembered" });
    await log.append([old, ...entries(49)]);
    for (let i = 0; i < 19; i++) await log.append(entries(50));
    await settle(log);
    // The ids of all are in memory: nothing was committed since the bound is lower.
    lowerBounds();
    expect(await pruneAlone(log)).toBe(0);
    const fault = breakIndex();
    expect((await log.append(old)).status).toBe(200);
    fault.mend();
    await log.evict();
    expect(await pruneAlone(log)).toBe(700);
    expect((await log.append(old)).status).toBe(200);
  });

  it("none while the log is at work, up to a backlog", async () => {
    const log = await readyLog("at-work");
    const fault = breakIndexWrites("fails");
    await log.append(entries(1));
    PRUNE_LIMITS.backlog = 750;
    await log.alarm();
    expect((await prunedTo(log)).seq).toBe(0);
    // More in a pass than at rest: it would else only grow.
    Object.assign(PRUNE_LIMITS, { backlog: 740, steps: 1, busySteps: 3 });
    await log.alarm();
    expect((await prunedTo(log)).seq).toBe(150);
    fault.mend();
    await settle(log);
    expect((await prunedTo(log)).seq).toBe(700);
  });

  it("a bounded number in a pass, and the rest in the next ones", async () => {
    const log = await readyLog("steps");
    Object.assign(PRUNE_LIMITS, { entries: 64, steps: 2 });
    await log.append(entries(1));
    expect(await log.alarm()).toBe(true);
    // A segment of 50 is a step: the next one does not fit beside it.
    expect((await prunedTo(log)).seq).toBe(100);
    expect(await log.alarm()).toBe(true);
    expect((await prunedTo(log)).seq).toBe(200);
    // None is begun once the pass has taken its time: the mirror waits for its end.
    const { ms } = PASS_LIMITS;
    PASS_LIMITS.ms = 0;
    expect(await log.alarm()).toBe(true);
    PASS_LIMITS.ms = ms;
    expect((await prunedTo(log)).seq).toBe(250);
    await settle(log);
    expect((await prunedTo(log)).seq).toBe(700);
    expect(await segmentCount(log)).toBe(7);
  });
});

describe("a pruned log", () => {
  it("answers every reader as before, and each sender", async () => {
    const log = new TestLog(tenant, "answers");
    const sent = await mixedLog(log);
    await log.append(entries(1));
    await settle(log);
    const before = await answers(log);
    const receipts = resultsOf(await log.append(sent)).map(({ seq, hash, error }) => ({ seq, hash, error }));
    const index = await indexOf(log);
    lowerBounds();
    // Nothing is new: an erasure of what is erased has the alarm go off.
    await log.inside((state) => state.storage.setAlarm(Date.now()));
    await settle(log);
    expect((await prunedTo(log)).seq).toBeGreaterThan(500);
    const check = async () => {
      expect(await answers(log)).toEqual(before);
      const again = await log.append(sent);
      expect(resultsOf(again).map(({ seq, hash, error }) => ({ seq, hash, error }))).toEqual(receipts);
      const [conflict] = resultsOf(await log.append([{ ...sent[0], action: { tool: "t", args: 1 } }]));
      expect(conflict?.error).toMatchObject({ status: 409, differs: ["/action/args"] });
      await log.check();
    };
    await check();
    await log.evict();
    await check();
    expect(await indexOf(log)).toEqual(index);
  });

  it("fills a D1 that was emptied from R2, row by row what it was", async () => {
    const log = new TestLog(tenant, "emptied");
    const sent = await mixedLog(log);
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    const before = await indexOf(log);
    const answered = await answers(log);
    await emptyIndexOf(log);
    const { results } = await env.DB.prepare(
      "SELECT count(*) AS n FROM logs l JOIN entries e ON e.log = l.log WHERE l.name = 'emptied'",
    ).all();
    expect(results).toEqual([{ n: 0 }]);
    // What D1 lacks is no backlog, and not lost; it is as old as it is.
    const health = await log.get("/health");
    expect(health.body).toMatchObject({ persisted: 0, lost: 0, outbox: { entries: 901 } });
    expect(
      Number((health.body.outbox as unknown as { oldest_age_seconds: number }).oldest_age_seconds),
    ).toBeGreaterThan(0);
    await readUntilFilled(log);
    expect(await indexOf(log)).toEqual(before);
    expect(await answers(log)).toEqual(answered);
    expect((await log.append(sent[0])).status).toBe(200);
    await log.check();
  });

  it("knows no id that it can't know after a restart with an empty D1, and every id once that is filled", async () => {
    const log = new TestLog(tenant, "restart");
    const old = entry({ id: "old-id" });
    const first = await log.append([old, ...entries(49)]);
    for (let i = 0; i < 20; i++) await log.append(entries(50));
    expect(await prune(log)).toBeGreaterThan(500);
    await emptyIndexOf(log);
    await log.evict();
    const refused = await log.append(old);
    expect([refused.status, problemOf(refused)]).toEqual([503, "index-unavailable"]);
    await readUntilFilled(log);
    const again = await log.append(old);
    expect([again.status, resultsOf(again)[0]?.seq]).toEqual([200, resultsOf(first)[0]?.seq]);
    await log.check();
  });

  it("fills a D1 that was set back, and one that is gone while the tenant is read", async () => {
    const log = new TestLog(tenant, "set-back");
    for (let i = 0; i < 5; i++) await log.append(entries(50));
    await log.get("/entries?limit=1");
    const older = await readIndex();
    for (let i = 0; i < 15; i++) await log.append(entries(50));
    expect(await prune(log)).toBeGreaterThan(500);
    const before = await indexOf(log);
    for (const setBack of [() => restoreIndex(older), clearIndex]) {
      await setBack();
      await readUntilFilled(log);
      expect(await indexOf(log)).toEqual(before);
      await log.check();
    }
  });
});

describe("what is erased of a pruned log", () => {
  it("does not come back from a box, whenever it was erased, nor from a D1 that is set back", async () => {
    const log = new TestLog(tenant, "erased");
    await mixedLog(log);
    const setBack = await readIndex();
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    const [whole, field] = [
      await erase(log, { ids: ["digits"] }),
      await erase(log, { ids: ["some", "outcome"], fields: ["action.tool"] }),
    ];
    expect([whole.status, whole.body.entries, field.status, field.body.entries]).toEqual([200, 1, 200, 2]);
    const texts = ["args-secret", "tool-secret", "args-late", "tool-late", "é😀", '"named"'];
    const gone = async () => {
      const text = await textOf(log);
      expect(texts.filter((one) => text.includes(one))).toEqual([]);
      for (const kept of ["tool-kept-2", "args-kept-3", "tool-kept-late"]) expect(text).toContain(kept);
    };
    await gone();
    const before = await indexOf(log);
    await emptyIndexOf(log);
    await readUntilFilled(log);
    await settle(log);
    await gone();
    expect(await indexOf(log)).toEqual(before);
    // An older copy holds what was erased since: the log erases it again.
    await restoreIndex(setBack);
    await log.get("/entries?limit=1");
    await settle(log);
    await readUntilFilled(log);
    await gone();
    await log.check();
  });

  it("does not come back from a D1 of before the first erasure", async () => {
    const log = new TestLog(tenant, "unsealed");
    stopPruning();
    await log.append([
      entry({ id: "u-all", action: { tool: "tool-unsealed-1", args: "args-unsealed-1" } }),
      entry({ id: "u-args", action: { tool: "tool-unsealed-kept", args: "args-unsealed-2" } }),
    ]);
    await settle(log);
    const setBack = await readIndex();
    // Before anything is sealed: the box will be of what is left.
    await erase(log, { ids: ["u-all"] });
    await erase(log, { ids: ["u-args"], fields: ["action.args"] });
    for (let i = 0; i < 18; i++) await log.append(entries(50));
    await settle(log);
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    await restoreIndex(setBack);
    expect(JSON.stringify(await readIndex())).toContain("args-unsealed-1");
    await log.get("/entries?limit=1");
    await settle(log);
    await readUntilFilled(log);
    const text = await textOf(log);
    for (const gone of ["tool-unsealed-1", "args-unsealed-1", "args-unsealed-2"])
      expect(text).not.toContain(gone);
    expect((await log.get("/entries/2")).text).toContain("tool-unsealed-kept");
    await log.check();
  });
});
