import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CONTENT_LIMITS } from "../../durable-objects/content/archive.ts";
import { PRUNE_LIMITS } from "../../durable-objects/principal-log/prune.ts";
import { LogStorage } from "../../durable-objects/principal-log/storage.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { entriesPath } from "../../shared/merkle/tiles.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { erase, placesOf, settle } from "./content/support.ts";
import { breakGets, breakIndexWrites, stopClock, strike } from "./faults.ts";
import { copyLog, emptyLog } from "./log-copy.ts";
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
} from "./pruned-log.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
const content = { ...CONTENT_LIMITS };
beforeEach(async () => {
  tenant = await newTenant();
  lowerBounds();
});
afterEach(() => {
  vi.restoreAllMocks();
  restoreBounds();
  Object.assign(CONTENT_LIMITS, content);
});

/** A log of which 700 of 1,000 entries can be pruned; its content is in objects of 100. */
async function readyLog(name: string): Promise<TestLog> {
  CONTENT_LIMITS.entries = 100;
  const log = new TestLog(tenant, name);
  stopPruning();
  for (let i = 0; i < 20; i++) await log.append(entries(50));
  await settle(log);
  lowerBounds();
  return log;
}

async function objectOf(log: TestLog, seq: number): Promise<string> {
  const prefix = await log.prefix();
  const { objects } = await env.MIRROR.list({ prefix: `${prefix}/content/${seq}.` });
  return objects[0]?.key ?? "none";
}

async function bytesAt(key: string): Promise<Uint8Array> {
  const object = await env.MIRROR.get(key);
  if (object === null) throw new Error(`there is no ${key}`);
  return new Uint8Array(await object.arrayBuffer());
}

/** Holds back what R2 answers of content, until told. */
function pauseContent(): { reached(): Promise<void>; end(): void } {
  let reached = false;
  let open = false;
  const get = env.MIRROR.get.bind(env.MIRROR) as (...args: unknown[]) => Promise<unknown>;
  vi.spyOn(env.MIRROR, "get").mockImplementation((async (...args: unknown[]) => {
    const found = await get(...args);
    if (String(args[0]).includes("/content/")) {
      reached = true;
      while (!open) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return found;
  }) as never);
  return {
    reached: () => vi.waitFor(() => expect(reached).toBe(true), 10_000),
    end: () => {
      open = true;
    },
  };
}

/** The events that the service logs from now on. */
function events(): string[] {
  const lines: string[] = [];
  vi.spyOn(console, "log").mockImplementation((line: unknown) => void lines.push(String(line)));
  return lines;
}

const passes = async (log: TestLog) => {
  await log.append(entries(1));
  await settle(log);
  return (await prunedTo(log)).seq;
};

describe("R2 that does not hold what is to be deleted", () => {
  const bundle = async (log: TestLog) => `${await log.prefix()}/${entriesPath(1)}`;
  const object = (log: TestLog) => objectOf(log, 301);
  const flip = (at: number) => (bytes: Uint8Array) => {
    const changed = bytes.slice();
    changed[changed.length - at] = (changed.at(-at) ?? 0) ^ 1;
    return changed;
  };
  it.each([
    ["a bundle is gone", bundle, null, "archive-altered", 250],
    ["a bundle has one bit that is another", bundle, flip(40), "archive-altered", 250],
    ["a bundle is no bundle", bundle, () => new Uint8Array([9]), "archive-altered", 250],
    ["a content object is gone", object, null, "content-lost", 300],
    ["a box has one bit that is another", object, flip(1), "content-lost", 350],
    ["a content object is none", object, () => new Uint8Array([9]), "content-lost", 300],
  ])(
    "%s: nothing of it is deleted, and it is tried again an hour later",
    async (name, keyOf, change, reason, held) => {
      const log = await readyLog(`lacking-${name.replaceAll(" ", "-")}`);
      const key = await keyOf(log);
      const good = await bytesAt(key);
      if (change === null) await env.MIRROR.delete(key);
      else await env.MIRROR.put(key, change(good));
      const told = events();
      expect(await passes(log)).toBe(held);
      expect(told.filter((line) => line.includes("prune-refused")).length).toBe(1);
      expect(told.join("\n")).toContain(`"from":${held + 1},"to":${held + 50},"reason":"${reason}"`);
      expect(await prunedTo(log)).toEqual({ seq: held, segments: held + 1 });
      // The log goes on, and does not ask again and again.
      await env.MIRROR.put(key, good);
      expect(await passes(log)).toBe(held);
      expect(await log.alarm()).toBe(false);
      stopClock(Date.now() + PRUNE_LIMITS.retryMs);
      expect(await passes(log)).toBe(700);
      await log.check();
    },
  );

  it("a segment that is another than what R2 gives back stays", async () => {
    const log = await readyLog("differs");
    await log.inside((state) =>
      state.storage.sql.exec(
        "UPDATE segments SET rows = replace(rows, 'read_file', 'reed_file') WHERE first_seq = 101",
      ),
    );
    await log.evict();
    const told = events();
    expect(await passes(log)).toBe(100);
    expect(told.join("\n")).toContain('"reason":"archive-differs"');
  });

  it("R2 is away: the alarm tries again, and nothing is deleted before", async () => {
    const log = await readyLog("away");
    await log.append(entries(1));
    const broken = breakGets((key) => key.includes("/tile/entries/"));
    expect(await log.alarm()).toBe(true);
    expect([broken.count() > 0, (await prunedTo(log)).seq]).toEqual([true, 0]);
    broken.mend();
    await settle(log);
    expect((await prunedTo(log)).seq).toBe(700);
  });
});

describe("a deletion that breaks off", () => {
  it("leaves all as it was", async () => {
    const log = new TestLog(tenant, "trigger");
    await mixedLog(log);
    lowerBounds();
    const dump = () =>
      log.inside((state) =>
        ["segments", "pruned", "content_keys", "content_left"].map((table) =>
          JSON.stringify(state.storage.sql.exec(`SELECT * FROM ${table} ORDER BY 1`).toArray().slice(0, 12)),
        ),
      );
    await log.append(entries(1));
    const before = await dump();
    await log.inside((state) => {
      state.storage.sql.exec(
        "CREATE TRIGGER broken BEFORE INSERT ON pruned BEGIN SELECT RAISE(ABORT, 'broken'); END",
      );
    });
    await settle(log);
    expect(await dump()).toEqual(before);
    expect((await log.append(entries(1))).status).toBe(201);
    await log.evict();
    await log.check();
    await log.inside((state) => void state.storage.sql.exec("DROP TRIGGER broken"));
    expect(await prune(log)).toBeGreaterThan(500);
    await log.check();
  });

  it.each([
    ["D1 was emptied", (log: TestLog) => emptyIndexOf(log)],
    [
      "an erasure is left undone",
      async (log: TestLog) => {
        const fault = breakIndexWrites("fails");
        expect((await erase(log, { seq: 3 })).status).toBe(202);
        fault.mend();
      },
    ],
    [
      "D1 was found to contradict the log",
      (log: TestLog) =>
        log.inside((state) => {
          new LogStorage(state.storage, nativeCrypto).raiseAlarm("index-conflict", "a test");
        }),
    ],
  ])("is not begun where, while R2 was read, %s", async (name, meanwhile) => {
    const log = await readyLog(`while-${name.replaceAll(" ", "-")}`);
    await log.append(entries(1));
    const pause = pauseContent();
    const alarm = log.alarm();
    await pause.reached();
    await meanwhile(log);
    // The storage that the object itself holds remembers the alarms.
    if (name.startsWith("D1 was found"))
      vi.spyOn(LogStorage.prototype, "standingAlarm").mockReturnValue("a test");
    pause.end();
    await alarm;
    expect((await prunedTo(log)).seq).toBe(0);
  });

  it("keeps what an erasure left that came while R2 was read", async () => {
    const log = new TestLog(tenant, "between");
    stopPruning();
    await log.append([entry({ id: "between", action: { tool: "tool-between", args: "args-between" } })]);
    for (let i = 0; i < 20; i++) await log.append(entries(50));
    await settle(log);
    lowerBounds();
    await log.append(entries(1));
    const pause = pauseContent();
    const alarm = log.alarm();
    await pause.reached();
    expect((await erase(log, { ids: ["between"], fields: ["action.args"] })).status).toBe(200);
    pause.end();
    await alarm;
    await settle(log);
    expect((await prunedTo(log)).seq).toBeGreaterThan(500);
    expect(await placesOf(log, "args-between")).toEqual([]);
    const before = await indexOf(log);
    await emptyIndexOf(log);
    await readUntilFilled(log);
    expect(await indexOf(log)).toEqual(before);
    expect(await placesOf(log, "args-between")).toEqual([]);
    expect((await log.get("/entries/1")).text).toContain("tool-between");
  });
});

describe("a pruned log whose storage is set back", () => {
  const later = async (log: TestLog) => {
    for (let i = 0; i < 6; i++) await log.append(entries(50));
    await log.append(entries(1), "?wait=mirrored");
    await settle(log);
  };

  it.each(["before it was pruned", "after it was pruned"])("to a copy of %s", async (when) => {
    const log = new TestLog(tenant, "set-back");
    const sent = await mixedLog(log);
    const copyBefore = await copyLog(log);
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    const setBack = when.startsWith("before") ? copyBefore : await copyLog(log);
    await later(log);
    const [index, answered] = [await indexOf(log), await answers(log)];
    await setBack();
    await vi.waitFor(async () => expect((await log.get("/head")).status).toBe(200), 10_000);
    await settle(log);
    expect(await answers(log)).toEqual(answered);
    expect(await prune(log)).toBeGreaterThan(600);
    expect((await log.append(sent[0])).status).toBe(200);
    await emptyIndexOf(log);
    await readUntilFilled(log);
    // One entry more than then; the log's own row, the last, says so.
    expect((await indexOf(log)).slice(0, index.length - 4)).toEqual(index.slice(0, index.length - 4));
    await log.check();
  });

  it("to nothing: it takes all of it back, and prunes it again", async () => {
    const log = new TestLog(tenant, "emptied");
    const sent = await mixedLog(log);
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    await later(log);
    const answered = await answers(log);
    await emptyLog(log);
    await vi.waitFor(async () => expect((await log.get("/head")).status).toBe(200), 10_000);
    expect((await prunedTo(log)).seq).toBe(0);
    stopPruning();
    await settle(log);
    expect(await answers(log)).toEqual(answered);
    // From its segments once more: a refill does not take over which fields an entry had that was erased as a whole.
    await emptyIndexOf(log);
    await readUntilFilled(log);
    await log.append(entries(1));
    await settle(log);
    const before = await indexOf(log);
    lowerBounds();
    await log.inside((state) => state.storage.setAlarm(Date.now()));
    await settle(log);
    expect((await prunedTo(log)).seq).toBeGreaterThan(600);
    expect((await log.get("/tile/entries/000")).text).toEqual((answered["/tile/entries/000"] as string[])[1]);
    await emptyIndexOf(log);
    await readUntilFilled(log);
    expect(await indexOf(log)).toEqual(before);
    expect(resultsOf(await log.append(sent))[0]).toMatchObject({ seq: 1 });
    await log.check();
  });
});

describe("a pruned log of which R2 loses something", () => {
  it("fills D1 up to there, calls nothing erased that was not, and goes on once it is back", async () => {
    const log = await readyLog("lost");
    expect(await passes(log)).toBe(700);
    const before = await indexOf(log);
    for (const [key, upTo] of [
      [await objectOf(log, 301), 300],
      [`${await log.prefix()}/${entriesPath(1)}`, 256],
    ] as const) {
      const good = await bytesAt(key);
      await env.MIRROR.delete(key);
      await emptyIndexOf(log);
      const told = events();
      for (let i = 0; i < 3; i++) expect((await log.get("/entries?limit=1")).status).toBe(503);
      vi.restoreAllMocks();
      const detail = upTo === 300 ? "content-lost" : "archive-altered";
      expect(told.join("\n")).toContain(`"detail":"${detail}"`);
      expect((await log.progress()).flushed).toBe(upTo);
      expect((await log.get("/health")).body).toMatchObject({ persisted: upTo, lost: 0 });
      await env.MIRROR.put(key, good);
      await readUntilFilled(log);
      expect(await indexOf(log)).toEqual(before);
    }
    await log.check();
  });

  it("takes an erasure of what is lost for it, and answers a bundle that is gone with 503", async () => {
    const log = await readyLog("given-up");
    expect(await passes(log)).toBe(700);
    await env.MIRROR.delete(await objectOf(log, 301));
    await emptyIndexOf(log);
    expect((await log.get("/entries?limit=1")).status).toBe(503);
    const field = await erase(log, { from: 301, to: 301, fields: ["action.args"] });
    expect([field.status, field.body.pending]).toEqual([202, ["log", "index", "record"]]);
    await erase(log, { from: 301, to: 400 });
    await readUntilFilled(log);
    expect((await log.get("/entries/301")).text).toContain('"$erased":true');
    expect((await log.get("/entries/401")).text).toContain("read_file");
    expect((await log.get("/verify")).body.verdict).toBe("intact");
    await env.MIRROR.delete(`${await log.prefix()}/${entriesPath(0)}`);
    const tile = await log.get("/tile/entries/000");
    expect([tile.status, problemOf(tile)]).toEqual([503, "mirror-unavailable"]);
    expect((await log.get("/tile/0/000")).status).toBe(200);
  });
});

describe("a pruned log that is stopped and sealed", () => {
  it("is exported as it was: the evidence is in R2, and the values as far as they are there", async () => {
    CONTENT_LIMITS.entries = 100;
    const log = new TestLog(tenant, "sealed");
    await mixedLog(log);
    lowerBounds();
    expect(await prune(log)).toBeGreaterThan(500);
    const lines = ({ text }: Answer) =>
      text.split("\n").filter((line) => /^\{"t":"(leaf|content)"/.test(line));
    const before = lines(await log.get("/export?anchors=false"));
    const tile = await log.get("/tile/entries/001");
    const key = `${await log.prefix()}/checkpoint`;
    const text = (await (await env.MIRROR.get(key))?.text()) ?? "";
    await env.MIRROR.put(key, text.replace(/\n(\d+)\n.+\n/, `\n$1\n${btoa("\u0007".repeat(32))}\n`));
    await log.evict();
    expect(problemOf(await log.get("/head"))).toBe("log-stopped");
    const path = `/v1/tenants/${tenant.id}/principals/sealed/recover`;
    const recovered = await call(env.RUNSEAL_OPERATOR_TOKEN, "POST", path, { generation: 1, reason: "test" });
    expect(recovered.status).toBe(200);
    const page = () => log.get("/export?generation=1&anchors=false");
    expect(lines(await page())).toEqual(before);
    expect((await log.get("/tile/entries/001?generation=1")).text).toBe(tile.text);
    expect((await log.get("/verify?generation=1&from=1")).body.verdict).toBe("intact");
    // Still erased, if only now.
    const erased = await call(tenant.key, "POST", `${log.path}/erasures?generation=1`, {
      seq: 1,
      reason: "late",
    });
    expect([erased.status, erased.body.pending]).toEqual([200, []]);
    expect((await page()).text).not.toContain("é😀");
    const lost = String(
      (await env.MIRROR.list({ prefix: key.replace("checkpoint", "content/101.") })).objects[0]?.key,
    );
    const good = await bytesAt(lost);
    await env.MIRROR.delete(lost);
    const told = events();
    const without = await page();
    vi.restoreAllMocks();
    expect(without.text.match(/"t":"leaf"/g)?.length).toBe(
      before.filter((line) => line.includes('"t":"leaf"')).length,
    );
    expect(told.filter((line) => line.includes("content-lost")).length).toBe(100);
    expect(without.text).toContain('"t":"checkpoint"');
    await env.MIRROR.put(lost, good);
    const others = (all: string[]) => all.filter((line) => !line.includes('"seq":1,'));
    expect(others(lines(await page()))).toEqual(others(before));
  });
});

describe("pruning under load", () => {
  it("loses nothing while every part strikes now and then, and D1 is emptied", {
    timeout: 120_000,
  }, async () => {
    CONTENT_LIMITS.entries = 100;
    const log = new TestLog(tenant, "load");
    const insist = async (work: () => Promise<Answer>): Promise<Answer> => {
      for (let attempt = 0; attempt < 80; attempt++) {
        const answer = await work();
        if (answer.status < 300) return answer;
        if (answer.status !== 503) throw new Error(answer.text);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error("never got through");
    };
    await log.append(entries(300));
    const faults = [
      strike(env.DB, "batch", "fails but persisted"),
      strike(env.MIRROR, "put", "fails"),
      strike(env.MIRROR, "get", "fails"),
    ];
    const erased: number[] = [];
    for (let round = 0; round < 12; round++) {
      const some = [
        entry({ action: { tool: `secret-tool-${round}`, args: `secret-args-${round}` } }),
        ...entries(99),
      ];
      const [{ body }] = await Promise.all([insist(() => log.append(some)), log.alarm()]);
      erased.push((body.results as unknown as { seq: number }[])[0]?.seq ?? 0);
      if (round % 3 === 2) await erase(log, { seq: erased[round - 1] ?? 0 });
      if (round % 5 === 4) await log.evict();
      if (round === 8) await emptyIndexOf(log).catch(() => {});
      for (let pass = 0; pass < 3; pass++) await log.alarm();
    }
    for (const fault of faults) fault.mend();
    await readUntilFilled(log);
    await settle(log);
    expect(await prune(log)).toBeGreaterThan(900);
    for (const round of [1, 4, 7, 10]) {
      const answer = await erase(log, { seq: erased[round] ?? 0 });
      expect([answer.status, answer.body.pending]).toEqual([200, []]);
    }
    await emptyIndexOf(log);
    await readUntilFilled(log);
    for (const round of [1, 4, 7, 10]) expect(await placesOf(log, `secret-args-${round}"`)).toEqual([]);
    expect((await log.get(`/entries/${erased[0]}`)).text).toContain("secret-args-0");
    await log.check();
  });
});
