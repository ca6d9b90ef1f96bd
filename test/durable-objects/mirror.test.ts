import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ALARM_PACE } from "../../durable-objects/principal-log/flush-alarm.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import type { Answer, TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import type { Fault } from "./faults.ts";
import { breakGets, breakPuts, isFlushOf, nextArrival, stopClock } from "./faults.ts";
import { entries, entry, newTenant, problemOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 20;
});
afterEach(() => {
  vi.restoreAllMocks();
});

const isCheckpoint = (key: string) => key.endsWith("/checkpoint");
const isTile = (key: string) => key.includes("/tile/");
const stored = (answer: Answer) => answer.status === 201;

async function mirrored(log: TestLog): Promise<string | null> {
  const object = await env.MIRROR.get(`${await log.prefix()}/checkpoint`);
  return object === null ? null : object.text();
}

const sizeOf = (checkpoint: string | null) => Number(checkpoint?.split("\n")[1] ?? 0);

/** The log is stopped: it answers nobody, it signs nothing, and a restart changes nothing. */
async function isStopped(log: TestLog): Promise<void> {
  const before = await log.inside((state) =>
    state.storage.sql.exec("SELECT size, checkpoint FROM head").toArray(),
  );
  for (let restart = 0; restart < 2; restart++) {
    const answers = await Promise.all([
      log.append(entry()),
      log.append(entries(3), "?wait=mirrored"),
      ...["/head", "/checkpoint", "/entries", "/verify", "/proof/consistency?from=1", "/tile/0/000.p/1"].map(
        (path) => log.get(path),
      ),
    ]);
    for (const answer of answers) expect([answer.status, problemOf(answer)]).toEqual([503, "log-stopped"]);
    await log.alarm();
    await log.evict();
  }
  expect(
    await log.inside((state) => state.storage.sql.exec("SELECT size, checkpoint FROM head").toArray()),
  ).toEqual(before);
}

/** Sets the log's storage back to what it was when `take` was called: a restored copy. */
async function snapshot(log: TestLog): Promise<() => Promise<void>> {
  const head = await log.inside((state) => state.storage.sql.exec("SELECT * FROM head").toArray()[0]);
  return async () => {
    await log.inside((state) => {
      state.storage.sql.exec("DELETE FROM segments WHERE first_seq > ?", Number(head?.size));
      state.storage.sql.exec(
        "UPDATE head SET size = ?, last_hash = ?, recorded_at = ?, edge = ?, checkpoint = ?",
        ...(["size", "last_hash", "recorded_at", "edge", "checkpoint"].map(
          (name) => head?.[name],
        ) as SqlStorageValue[]),
      );
      state.storage.sql.exec("UPDATE progress SET flushed_seq = ?1, mirrored_size = ?1", Number(head?.size));
    });
    await log.evict();
  };
}

describe("R2 that does not take the mirror", () => {
  const faults: [Fault, string, (key: string) => boolean][] = [
    ["fails", "checkpoint", isCheckpoint],
    ["fails but persisted", "checkpoint", isCheckpoint],
    ["fails", "tile", isTile],
    ["fails but persisted", "tile", isTile],
  ];
  it.each(faults)(
    "%s on each put of a %s: appends go on, and the mirror catches up later",
    async (fault, what, matches) => {
      const log = new TestLog(tenant, `put-${what}-${fault.replaceAll(" ", "-")}`);
      await log.append(entries(2), "?wait=mirrored");
      const injected = breakPuts(fault, matches);
      for (let round = 0; round < 3; round++) {
        expect(stored(await log.append(entries(200)))).toBe(true);
        await log.alarm();
      }
      const waiting = await log.append(entry(), "?wait=mirrored");
      expect([waiting.status, problemOf(waiting)]).toEqual([503, "mirror-unavailable"]);
      await log.evict();
      expect(stored(await log.append(entry()))).toBe(true);
      expect(injected.count()).toBeGreaterThan(1);
      injected.mend();
      // The entry that was answered 503 while it waited for the mirror is stored all the same.
      expect((await log.check()).size).toBe(604);
      expect(stored(await log.append(entry(), "?wait=mirrored"))).toBe(true);
      expect(sizeOf(await mirrored(log))).toBe(605);
      expect(await log.progress()).toMatchObject({ archived: 512, mirrored: 605 });
      expect((await log.check()).size).toBe(605);
    },
  );

  it("never has a checkpoint mirrored over a tile that is missing", async () => {
    const log = new TestLog(tenant, "tiles-first");
    await log.append(entries(2), "?wait=mirrored");
    const injected = breakPuts("fails", (key) => key.endsWith("/tile/0/000"));
    await log.append(entries(300));
    await log.alarm();
    expect(sizeOf(await mirrored(log))).toBe(2);
    injected.mend();
    await log.append(entry(), "?wait=mirrored");
    expect(sizeOf(await mirrored(log))).toBe(303);
  });

  it("takes the tiles one after the other, and what it took is not sent again", async () => {
    const log = new TestLog(tenant, "one-by-one");
    await log.append(entries(2), "?wait=mirrored");
    await log.append(entries(1000));
    const injected = breakPuts("fails", (key) => key.endsWith("/tile/0/002"));
    await log.alarm();
    expect((await log.progress()).archived).toBe(512);
    injected.mend();
    const put = vi.spyOn(env.MIRROR, "put");
    await log.append(entry(), "?wait=mirrored");
    const keys = put.mock.calls.map(([key]) => key.slice(key.indexOf("/tile/")));
    expect(keys).not.toContain("/tile/0/000");
    expect(keys).toContain("/tile/0/002");
  });
});

describe("R2 that can't be read", () => {
  it("does not stop a log that is running", async () => {
    const log = new TestLog(tenant, "running");
    await log.append(entry());
    const injected = breakGets(isCheckpoint);
    await log.append(entry());
    await log.alarm();
    expect(injected.count()).toBeGreaterThan(0);
    expect(stored(await log.append(entry()))).toBe(true);
    injected.mend();
    expect((await log.check()).size).toBe(3);
  });

  it("keeps a log that starts from answering until it can be read: it might have been rewound", async () => {
    const log = new TestLog(tenant, "starting");
    await log.append(entry());
    const injected = breakGets(isCheckpoint);
    await log.evict();
    for (const answer of [await log.append(entry()), await log.get("/head")]) {
      expect([answer.status, problemOf(answer), answer.headers.get("retry-after")]).toEqual([
        503,
        "mirror-unavailable",
        "2",
      ]);
    }
    injected.mend();
    expect(stored(await log.append(entry()))).toBe(true);
    expect((await log.check()).size).toBe(2);
  });

  it("keeps a log from starting, and from mirroring, over a checkpoint that is no checkpoint", async () => {
    const log = new TestLog(tenant, "unreadable");
    await log.append(entry(), "?wait=mirrored");
    const good = (await mirrored(log)) ?? "";
    const key = `${await log.prefix()}/checkpoint`;
    await env.MIRROR.put(key, "not a checkpoint");
    await log.append(entry());
    await expect(log.alarm()).resolves.toBe(true);
    expect(await mirrored(log)).toBe("not a checkpoint");
    await log.evict();
    const answer = await log.append(entry());
    expect([answer.status, problemOf(answer)]).toEqual([503, "mirror-unavailable"]);
    await env.MIRROR.put(key, good);
    expect((await log.check()).size).toBe(2);
  });
});

describe("a mirror that contradicts the log", () => {
  it("stops a log whose storage was set back, where neither D1 nor R2 has what it lost", async () => {
    const log = new TestLog(tenant, "rewound");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await snapshot(log);
    await log.append(entries(2), "?wait=mirrored");
    await log.get("/entries");
    await env.DB.prepare(
      "DELETE FROM entries WHERE seq > 3 AND log = (SELECT log FROM logs WHERE name = ? AND tenant = ?)",
    )
      .bind(log.name, tenant.id)
      .run();
    await restore();
    await isStopped(log);
    expect(sizeOf(await mirrored(log))).toBe(5);
  });

  it("does not take a rewind into what was never mirrored for one", async () => {
    const log = new TestLog(tenant, "gap");
    await log.append(entries(3), "?wait=mirrored");
    const { body } = await log.append(entry());
    expect(body.mirrored_size).toBe(3);
    await log.evict();
    expect(stored(await log.append(entry()))).toBe(true);
    expect((await log.check()).size).toBe(5);
  });

  const forgeries: [string, (checkpoint: string) => string][] = [
    ["another root", (text) => text.replace(/\n(\d+)\n.+\n/, `\n$1\n${btoa("\u0007".repeat(32))}\n`)],
    ["another log's origin", (text) => text.replace(/\/p\/[0-9a-f]{32}/, `/p/${"ab".repeat(16)}`)],
    ["a size that it never had", (text) => text.replace(/\n3\n/, "\n4000\n")],
  ];
  it.each(forgeries)("stops a log that starts and finds %s", async (name, forge) => {
    const log = new TestLog(tenant, `start-${name.replaceAll(" ", "-").replaceAll("'", "")}`);
    await log.append(entries(3), "?wait=mirrored");
    await env.MIRROR.put(`${await log.prefix()}/checkpoint`, forge((await mirrored(log)) ?? ""));
    await log.evict();
    await isStopped(log);
  });

  it.each(forgeries)("stops a running log at its next pass: %s", async (name, forge) => {
    const log = new TestLog(tenant, `run-${name.replaceAll(" ", "-").replaceAll("'", "")}`);
    await log.append(entries(3), "?wait=mirrored");
    const forged = forge((await mirrored(log)) ?? "");
    await env.MIRROR.put(`${await log.prefix()}/checkpoint`, forged);
    await log.append(entry());
    await log.alarm();
    await isStopped(log);
    expect(await mirrored(log)).toBe(forged);
  });

  it("stops a log that finds another object where its tile belongs", async () => {
    const log = new TestLog(tenant, "tile");
    await log.append(entries(2), "?wait=mirrored");
    await env.MIRROR.put(`${await log.prefix()}/tile/0/000`, new Uint8Array(256 * 32));
    await log.append(entries(300));
    await log.alarm();
    await isStopped(log);
  });

  it("lets nothing be committed that already waits when the log is stopped", async () => {
    const log = new TestLog(tenant, "waiting");
    await log.append(entries(3), "?wait=mirrored");
    const forged = ((await mirrored(log)) ?? "").replace(/\n3\n/, "\n4000\n");
    const key = `${await log.prefix()}/checkpoint`;
    await env.MIRROR.put(key, forged);
    await log.append(entry());
    // The pass reads the forged checkpoint while an append waits for its commit.
    const arrival = nextArrival();
    const original = env.MIRROR.get.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2ObjectBody | null>;
    let sent: Promise<Answer> | undefined;
    vi.spyOn(env.MIRROR, "get").mockImplementation((async (...args: unknown[]) => {
      if (args[0] !== key || sent !== undefined) return original(...args);
      sent = log.append(entry());
      await arrival;
      return { etag: "any", text: async () => forged };
    }) as never);
    await log.alarm();
    expect(problemOf((await sent) as Answer)).toBe("log-stopped");
    await isStopped(log);
  });

  it("leaves no alarm behind that wakes a stopped log for ever", async () => {
    const log = new TestLog(tenant, "asleep");
    await log.append(entries(3), "?wait=mirrored");
    await env.MIRROR.put(
      `${await log.prefix()}/checkpoint`,
      ((await mirrored(log)) ?? "").replace(/\n3\n/, "\n4000\n"),
    );
    await log.append(entry());
    await log.alarm();
    expect(await log.progress()).toMatchObject({ size: 4, flushed: 4, mirrored: 3 });
    expect(await log.alarmAt()).toBeNull();
    await log.evict();
    expect(await log.alarmAt()).toBeNull();
  });
});

/** Has the tenant's audit key rotated, in force at once. */
async function rotate(other: TestTenant): Promise<void> {
  const answer = await call(other.key, "POST", "/v1/registry/rotations", { role: "audit" });
  expect(answer.status).toBe(201);
  await runInDurableObject(env.KEY_REGISTRY.getByName(other.id), (_instance, state) => {
    state.storage.sql.exec("UPDATE records SET effective_at = ? WHERE epoch >= 1", Date.now() - 1);
  });
}

/** The checkpoint that the log answers who knows of the rotation. */
async function restated(log: TestLog): Promise<string> {
  const outcome = await (await log.stub()).head(await log.identity(), 1);
  if (!outcome.ok) throw new Error(outcome.code);
  expect(outcome.head.epoch).toBe(1);
  return outcome.head.checkpoint;
}

describe("a head that is signed anew after a rotation", () => {
  it("is mirrored where an older one of its size was on its way to R2", async () => {
    const other = await newTenant();
    const log = new TestLog(other, "restated");
    await log.append(entries(256));
    await rotate(other);
    const put = env.MIRROR.put.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2Object | null>;
    let checkpoint = "";
    vi.spyOn(env.MIRROR, "put").mockImplementation((async (...args: unknown[]) => {
      if (isTile(String(args[0])) && checkpoint === "") checkpoint = await restated(log);
      return put(...args);
    }) as never);
    await log.alarm();
    expect(checkpoint).not.toBe("");
    await vi.waitFor(async () => {
      await log.alarm();
      expect(await mirrored(log)).toBe(checkpoint);
    }, 10_000);
    expect((await log.progress()).mirrored).toBe(256);
  });

  it("is mirrored where the log lost its memory before", async () => {
    const other = await newTenant();
    const log = new TestLog(other, "restated-and-lost");
    await log.append(entries(3), "?wait=mirrored");
    await rotate(other);
    const broken = breakPuts("fails", isCheckpoint);
    const checkpoint = await restated(log);
    await log.alarm();
    await log.evict();
    broken.mend();
    await vi.waitFor(async () => {
      await log.get("/head");
      await log.alarm();
      expect(await mirrored(log)).toBe(checkpoint);
    }, 10_000);
    expect((await log.progress()).mirrored).toBe(3);
  });
});

describe("the mirrored head", () => {
  it("follows the log while D1 takes its time", async () => {
    const log = new TestLog(tenant, "slow-index");
    const pace = { ...ALARM_PACE };
    await log.append(entry());
    const batch = env.DB.batch.bind(env.DB);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    vi.spyOn(env.DB, "batch").mockImplementation((async (statements) => {
      if (isFlushOf(statements, log.name)) await held;
      return batch(statements);
    }) as D1Database["batch"]);
    ALARM_PACE.delayMs = 20;
    const pass = log.alarm();
    for (let size = 2; size <= 4; size++) {
      await log.append(entry());
      await vi.waitFor(async () => expect((await log.progress()).mirrored).toBe(size), 10_000);
    }
    expect((await log.progress()).flushed).toBe(0);
    release();
    await pass;
    Object.assign(ALARM_PACE, pace);
    expect((await log.check()).size).toBe(4);
  });

  it("is put once for many that wait for it", async () => {
    const log = new TestLog(tenant, "shared");
    const put = vi.spyOn(env.MIRROR, "put");
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => log.append(entry(), "?wait=mirrored")),
    );
    for (const { status, body } of answers) {
      expect(status).toBe(201);
      expect(Number(body.mirrored_size)).toBeGreaterThanOrEqual(
        (body as unknown as { results: { seq: number }[] }).results[0]?.seq ?? 99,
      );
    }
    const puts = put.mock.calls.filter(([key]) => isCheckpoint(key)).length;
    expect(puts).toBeLessThanOrEqual(5);
    expect(sizeOf(await mirrored(log))).toBe(30);
  });

  it("is put at most once in its interval", async () => {
    stopClock(Date.now() + 3_600_000);
    const log = new TestLog(tenant, "pace");
    await log.append(entry(), "?wait=mirrored");
    const original = globalThis.setTimeout;
    const waits: (number | undefined)[] = [];
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, delay?: number) => {
      waits.push(delay);
      return original(run, 0);
    }) as never);
    await log.append(entry());
    await log.alarm();
    // By a clock that stands still all of the interval is left.
    expect(waits).toContain(MIRROR_PACE.minPutInterval);
    expect(sizeOf(await mirrored(log))).toBe(2);
  });

  it("is not replaced by a pass that did not see what another wrote meanwhile", async () => {
    const log = new TestLog(tenant, "cas");
    await log.append(entry(), "?wait=mirrored");
    const old = (await mirrored(log)) ?? "";
    await log.append(entry(), "?wait=mirrored");
    const key = `${await log.prefix()}/checkpoint`;
    const original = env.MIRROR.get.bind(env.MIRROR) as (...args: unknown[]) => Promise<R2ObjectBody | null>;
    let times = 0;
    vi.spyOn(env.MIRROR, "get").mockImplementation((async (...args: unknown[]) => {
      const object = await original(...args);
      if (args[0] === key && times++ === 0) await env.MIRROR.put(key, old);
      return object;
    }) as never);
    await log.append(entry());
    await log.alarm();
    expect(await mirrored(log)).toBe(old);
    expect((await log.progress()).mirrored).toBe(2);
    await log.alarm();
    expect(sizeOf(await mirrored(log))).toBe(3);
  });

  it("is what R2 holds when the log starts, not what the log remembers: a restored older one is replaced", async () => {
    const log = new TestLog(tenant, "older");
    await log.append(entries(2), "?wait=mirrored");
    const old = (await mirrored(log)) ?? "";
    await log.append(entries(3), "?wait=mirrored");
    await env.MIRROR.put(`${await log.prefix()}/checkpoint`, old);
    await log.evict();
    expect((await log.get("/head")).body.mirrored_size).toBe(2);
    expect(sizeOf(await mirrored(log))).toBe(2);
    await log.append(entry(), "?wait=mirrored");
    expect(sizeOf(await mirrored(log))).toBe(6);
  });

  it("is what R2 holds: where an older R2 was restored, the tiles that it lacks are put again", async () => {
    const log = new TestLog(tenant, "older-tiles");
    const keys = async () =>
      (await env.MIRROR.list({ prefix: await log.prefix() })).objects.map(({ key }) => key);
    await log.append(entries(300), "?wait=mirrored");
    const [old, before] = [(await mirrored(log)) ?? "", await keys()];
    await log.append(entries(300), "?wait=mirrored");
    await log.alarm();
    const all = await keys();
    const lost = all.filter((key) => isTile(key) && !before.includes(key));
    expect(lost).toHaveLength(2);
    await env.MIRROR.delete(lost);
    await env.MIRROR.put(`${await log.prefix()}/checkpoint`, old);
    await log.evict();
    expect((await log.get("/head")).body.mirrored_size).toBe(300);
    expect((await log.progress()).archived).toBe(256);
    await log.append(entry(), "?wait=mirrored");
    expect(await keys()).toEqual(all);
    expect(await log.progress()).toMatchObject({ archived: 512, mirrored: 601 });
    expect((await log.check()).size).toBe(601);
  });

  it("counts as mirrored where its put's answer got lost with the log's memory", async () => {
    const log = new TestLog(tenant, "answer-lost");
    await log.append(entries(2), "?wait=mirrored");
    const injected = breakPuts("fails but persisted", isCheckpoint);
    await log.append(entry());
    await log.alarm();
    expect((await log.progress()).mirrored).toBe(2);
    await log.evict();
    injected.mend();
    const put = vi.spyOn(env.MIRROR, "put");
    expect((await log.get("/head")).body.mirrored_size).toBe(3);
    expect(put.mock.calls.filter(([key]) => isCheckpoint(key))).toEqual([]);
  });
});
