import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { buildBatch } from "../../durable-objects/head-log/batch.ts";
import {
  FIRST_PAUSE_MS,
  LONGEST_PAUSE_MS,
  nextBatchAt,
  nextInterval,
  REPUBLISH_MS,
} from "../../durable-objects/head-log/schedule.ts";
import type { StoredReport } from "../../durable-objects/head-log/storage.ts";
import type {
  HeadLogIdentity,
  HeadLogView,
  HeadReport,
  ReportOutcome,
} from "../../durable-objects/head-log/types.ts";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { concat, fromHex, toHex } from "../../shared/bytes.ts";
import { decodeHeadsLeaf, MAX_HEADS } from "../../shared/heads/leaf.ts";
import { HeadsWalker } from "../../shared/heads/walk.ts";
import { decodeEntryBundle } from "../../shared/merkle/bundle.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { leafHash } from "../../shared/merkle/hash.ts";
import { consistencyNodes, foldProof } from "../../shared/merkle/proof.ts";

import { openCheckpoint, parseCheckpoint, signCheckpoint } from "../../shared/note/checkpoint.ts";
import { reported } from "../workers/heads-support.ts";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakGets, breakPuts, stopClock } from "./faults.ts";
import { entries, newTenant, problemOf, TestLog } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The hash of a made-up log's leaf. */
const made = (log: string, index: number) => nativeCrypto.sha256(new TextEncoder().encode(`${log}/${index}`));

/** Root of a made-up log at a size. */
function rootAt(log: string, size: number): Uint8Array {
  const edge = new RightEdge(nativeCrypto);
  for (let i = 0; i < size; i++) edge.append(made(log, i));
  return edge.root();
}

function pathOf(log: string, from: number, to: number): Uint8Array {
  if (from === 0 || from === to) return new Uint8Array();
  const plan = consistencyNodes(from, to);
  const nodes = plan.nodes.map(({ level, index }) => {
    const edge = new RightEdge(nativeCrypto);
    for (let i = index * 2 ** level; i < (index + 1) * 2 ** level; i++) edge.append(made(log, i));
    return edge.root();
  });
  return concat(...foldProof(nativeCrypto, plan, nodes));
}

/** A tenant's log of heads under test. */
class TestHeads {
  readonly tenant: TestTenant;
  readonly identity: HeadLogIdentity;

  constructor(tenant: TestTenant) {
    this.tenant = tenant;
    this.identity = { host: "runseal.local", owner: tenant.id };
  }

  static async create(): Promise<TestHeads> {
    const tenant = await newTenant();
    // The tenant's own system log has entries already: its report is not to come in between.
    await reported(tenant);
    return new TestHeads(tenant);
  }

  get stub() {
    return env.HEAD_LOG.getByName(this.identity.owner);
  }

  /** Reports a head of a made-up log, by default with the proof that belongs to it. */
  report(name: string, from: number, size: number, change: Partial<HeadReport> = {}): Promise<ReportOutcome> {
    return this.stub.report(this.identity, {
      logId: toHex(made(name, -1)),
      name,
      generation: 1,
      size,
      root: toHex(rootAt(name, size)),
      epoch: 0,
      from,
      path: from <= size ? pathOf(name, from, size) : new Uint8Array(),
      ...change,
    });
  }

  async alarm(): Promise<boolean> {
    return runDurableObjectAlarm(this.stub);
  }

  async evict(): Promise<void> {
    await runInDurableObject(this.stub, () => {});
    await evictDurableObject(this.stub);
  }

  inside<R>(work: (state: DurableObjectState) => R | Promise<R>): Promise<R> {
    return runInDurableObject(this.stub, (_log, state) => work(state));
  }

  async view(): Promise<HeadLogView> {
    const outcome = await this.stub.view(this.identity);
    if (!outcome.ok) throw new Error(outcome.code);
    return outcome.view;
  }

  async leaves(): Promise<Uint8Array[]> {
    const { size } = await this.view();
    const leaves: Uint8Array[] = [];
    while (leaves.length < size) {
      const outcome = await this.stub.leaves(this.identity, leaves.length, size);
      if (!outcome.ok) throw new Error(outcome.code);
      leaves.push(...outcome.leaves);
    }
    return leaves;
  }

  /** Walks the whole log and demands that nothing is wrong with it. */
  async check(): Promise<HeadsWalker> {
    const walker = new HeadsWalker(nativeCrypto, {
      registryId: fromHex(this.tenant.registryId, 32),
      withRecords: true,
    });
    for (const leaf of await this.leaves()) walker.add(leaf);
    const view = await this.view();
    walker.end(view.checkpoint, view.origin);
    expect(walker.issues).toEqual([]);
    return walker;
  }

  async sizeOf(name: string): Promise<number | undefined> {
    return (await this.check()).heads.get(toHex(made(name, -1)))?.size;
  }
}

describe("a reported head", () => {
  it("is taken with the proof that it goes on from the last one, and not twice", async () => {
    const heads = await TestHeads.create();
    expect(await heads.report("a", 0, 3)).toEqual({ status: "taken" });
    await heads.alarm();
    expect(await heads.sizeOf("a")).toBe(3);
    for (const [from, size] of [
      [3, 4],
      [4, 4],
      [4, 300],
    ] as const) {
      expect(await heads.report("a", from, size)).toEqual({ status: "taken" });
    }
    await heads.alarm();
    const { batch, pending } = await heads.view();
    expect([batch, pending, await heads.sizeOf("a")]).toEqual([2, 0, 300]);
    await heads.report("a", 300, 300);
    expect((await heads.view()).pending).toBe(0);
  });

  it("from another size than the last one is told so, and contradicts nothing", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 5);
    for (const [from, size] of [
      [0, 9],
      [0, 2],
      [4, 5],
      [6, 7],
    ] as const) {
      expect(await heads.report("a", from, size)).toEqual({ status: "behind", size: 5 });
    }
    expect((await heads.view()).alarms).toEqual([]);
  });

  it.each<[string, string, number, Partial<HeadReport>]>([
    ["smaller", "lowered", 4, {}],
    ["of the same size with another root", "forked", 5, { root: "00".repeat(32) }],
    ["larger, of another log", "inconsistent", 8, { root: toHex(rootAt("b", 8)), path: pathOf("b", 5, 8) }],
    ["larger, without its proof", "inconsistent", 8, { path: new Uint8Array() }],
    ["of an earlier epoch", "epoch-regression", 8, { epoch: 0 }],
  ])(
    "that is %s is refused, raises an alarm that stands, and changes nothing",
    async (_what, reason, size, change) => {
      const heads = await TestHeads.create();
      await heads.report("a", 0, 5, { epoch: reason === "epoch-regression" ? 1 : 0 });
      const [before] = await heads.inside((state) => state.storage.sql.exec("SELECT * FROM heads").toArray());
      const epoch = Number(before?.epoch);
      expect(await heads.report("a", 5, size, { epoch, ...change })).toEqual({ status: "refused", reason });
      await heads.evict();
      const { alarms } = await heads.view();
      expect(alarms).toEqual([
        {
          name: "head-refused",
          logId: toHex(made("a", -1)),
          detail: expect.stringContaining(reason),
          atMs: expect.any(Number),
        },
      ]);
      const [after] = await heads.inside((state) => state.storage.sql.exec("SELECT * FROM heads").toArray());
      expect(after).toEqual(before);
    },
  );

  it("of another host or owner is refused before anything is stored", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await runInDurableObject(heads.stub, async (log) => {
      for (const other of [{ host: "elsewhere" }, { owner: SERVICE }]) {
        await expect(log.view({ ...heads.identity, ...other })).rejects.toThrow("another log of heads");
      }
    });
  });
});

describe("a log", () => {
  it("that was rewound is refused at its next report, and the listed head stays", async () => {
    const tenant = await newTenant();
    const heads = new TestHeads(tenant);
    const log = new TestLog(tenant, "rewound");
    await log.append(entries(5));
    await log.alarm();
    const logId = (
      await heads.inside((state) =>
        state.storage.sql.exec("SELECT log_id FROM heads WHERE name = 'rewound'").toArray(),
      )
    )[0];
    await heads.alarm();
    // All that the log's object and mirror had is gone; it begins anew under the same name.
    await log.inside((state) => state.storage.deleteAll());
    const prefix = await log.prefix();
    await env.MIRROR.delete(`${prefix}/checkpoint`);
    await log.evict();
    await env.DB.batch([env.DB.prepare("DELETE FROM entries"), env.DB.prepare("DELETE FROM logs")]);
    await log.append(entries(2));
    await log.alarm();
    const { alarms } = await heads.view();
    expect(alarms.map((alarm) => [alarm.name, alarm.logId, alarm.detail.split(": ").at(-1)])).toEqual([
      ["head-refused", logId?.log_id, "lowered"],
    ]);
    await heads.alarm();
    expect((await heads.check()).heads.get(String(logId?.log_id))?.size).toBe(5);
  });

  it("appends while its log of heads is away, and reports once it is back, without another append", async () => {
    const tenant = await newTenant();
    const heads = new TestHeads(tenant);
    const log = new TestLog(tenant, "patient");
    const away = vi.spyOn(env.HEAD_LOG, "getByName").mockImplementation(() => {
      throw new Error("Durable Object is overloaded");
    });
    expect((await log.append(entries(3))).status).toBe(201);
    await log.alarm();
    expect(away.mock.calls.length).toBeGreaterThan(0);
    expect(await log.progress()).toMatchObject({ flushed: 3, mirrored: 3 });
    expect(await log.alarmAt()).not.toBeNull();
    away.mockRestore();
    await log.alarm();
    await heads.alarm();
    const sizes = [...(await heads.check()).heads.values()].map(({ size }) => size);
    expect(sizes).toContain(3);
    expect(await log.alarmAt()).toBeNull();
  });

  it("goes on reporting after it and its log of heads lost their memory", async () => {
    const tenant = await newTenant();
    const heads = new TestHeads(tenant);
    const log = new TestLog(tenant, "forgetful");
    for (const count of [1, 2, 300]) {
      await log.append(entries(count));
      await log.evict();
      await log.alarm();
      await heads.evict();
      await heads.alarm();
    }
    const sizes = [...(await heads.check()).heads.values()].map(({ size }) => size);
    expect(sizes).toContain(303);
    expect((await heads.view()).alarms).toEqual([]);
  });
});

describe("a batch", () => {
  it("lists at most 700 heads a leaf, each log once, in order", async () => {
    const heads = await TestHeads.create();
    const root = toHex(made("x", 0));
    const count = 2 * MAX_HEADS + 1;
    await heads.inside((state) => {
      for (let i = 0; i < count; i++) {
        const logId = toHex(made(`many/${i}`, 0));
        state.storage.sql.exec(
          "INSERT INTO heads VALUES (?, ?, 1, 1, ?, 0, ?, 1)",
          logId,
          `p${i}`,
          root,
          i + 2,
        );
      }
    });
    await heads.evict();
    await heads.report("a", 0, 1);
    await heads.alarm();
    const lists = (await heads.leaves()).map(decodeHeadsLeaf).filter((leaf) => leaf !== null);
    // With `a`, and perhaps with the tenant's system log.
    const total = lists.reduce((sum, { heads: listed }) => sum + listed.length, 0);
    expect(lists.map(({ heads: listed }) => listed.length)).toEqual([700, 700, total - 1400]);
    expect(total).toBeGreaterThan(count);
    expect((await heads.check()).heads.size).toBe(total);
  });

  const report = (n: number, epoch: number): StoredReport => ({
    logId: toHex(made(String(n), -1)),
    name: `p${n}`,
    generation: 1,
    size: n,
    root: toHex(made(String(n), 0)),
    epoch,
    report: n,
    reportedAtMs: 0,
  });
  const record = (epoch: number) => ({ epoch, bytes: new TextEncoder().encode(`record ${epoch}`) });
  const build = (recordEpoch: number | null, records: ReturnType<typeof record>[], list: StoredReport[]) => {
    const common = { registryId: new Uint8Array(32), batch: 10, time: 1n };
    const { leaves, ...rest } = buildBatch({ ...common, heads: list, records, recordEpoch });
    const shown = leaves.map((leaf) => {
      const text = new TextDecoder().decode(leaf);
      if (text.startsWith("record")) return text;
      const read = decodeHeadsLeaf(leaf);
      return [read?.batch, ...(read?.heads.map(({ size }) => size) ?? [])];
    });
    return { shown, ...rest };
  };

  it("puts a record after the heads of earlier epochs, and before those of its own", () => {
    const list = [report(1, 1), report(2, 0), report(3, 2)];
    expect(build(2, [record(1), record(2)], list)).toEqual({
      shown: [[11, 2], "record 1", [12, 1], "record 2", [13, 3]],
      batch: 13,
      firstWaiting: null,
    });
  });

  it("lets a head wait whose record is not known yet", () => {
    expect(build(0, [], [report(1, 0), report(2, 1), report(3, 1)])).toEqual({
      shown: [[11, 1]],
      batch: 11,
      firstWaiting: 2,
    });
    expect(build(null, [], [report(1, 5)])).toMatchObject({ shown: [[11, 1]], firstWaiting: null });
  });

  it("is due soon after news, later and later while news goes on, and always within ten minutes", () => {
    const cadence = { signedAtMs: 1_000_000, fullAtMs: 1_000_000, intervalMs: FIRST_PAUSE_MS };
    const news = { news: true, heads: true };
    expect(nextBatchAt({ ...cadence, signedAtMs: 0, fullAtMs: 0 }, 2_000_000, news)).toBe(
      2_000_000 + FIRST_PAUSE_MS,
    );
    expect(nextBatchAt({ ...cadence, intervalMs: 40_000 }, 1_001_000, news)).toBe(1_040_000);
    expect(nextBatchAt(cadence, 1_001_000, { news: false, heads: true })).toBe(1_000_000 + REPUBLISH_MS);
    expect(nextBatchAt(cadence, 1_001_000, { news: false, heads: false })).toBeNull();
    const late = 1_000_000 + REPUBLISH_MS - 1000;
    expect(nextBatchAt({ ...cadence, signedAtMs: late, intervalMs: LONGEST_PAUSE_MS }, late, news)).toBe(
      late + 1000,
    );
    expect(REPUBLISH_MS).toBeLessThan(600_000);
    let state = { signedAtMs: 0, fullAtMs: 0, intervalMs: FIRST_PAUSE_MS };
    const pauses: number[] = [];
    for (let now = 1_000_000, i = 0; i < 6; i++) {
      state = { ...state, intervalMs: nextInterval(state, now), signedAtMs: now };
      pauses.push(state.intervalMs);
      now += state.intervalMs;
    }
    expect(pauses).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    expect(nextInterval(state, state.signedAtMs + 120_000)).toBe(FIRST_PAUSE_MS);
  });

  it("sets its alarm by that, and lists every head again when ten minutes are over", async () => {
    const heads = await TestHeads.create();
    // Ahead, so that no alarm goes off by itself.
    const start = Date.now() + 3_600_000;
    const clock = stopClock(start);
    await heads.report("a", 0, 1);
    await heads.report("b", 0, 1);
    await heads.alarm();
    const { size } = await heads.view();
    clock.set(start + 60_000);
    await heads.report("a", 1, 2);
    const due = () => heads.inside((state) => state.storage.getAlarm());
    expect(await due()).toBe(start + 60_000 + FIRST_PAUSE_MS);
    await heads.alarm();
    const [news] = (await heads.leaves()).slice(size).map(decodeHeadsLeaf);
    expect(news?.heads.map(({ logId }) => toHex(logId))).toEqual([toHex(made("a", -1))]);
    expect(await due()).toBe(start + REPUBLISH_MS);
    clock.set(start + REPUBLISH_MS);
    await heads.alarm();
    const again = (await heads.leaves()).slice(size + 1).map(decodeHeadsLeaf);
    const ids = again.flatMap((leaf) => leaf?.heads.map(({ logId }) => toHex(logId)) ?? []);
    expect(ids).toEqual(expect.arrayContaining([toHex(made("a", -1)), toHex(made("b", -1))]));
    expect(await due()).toBe(start + 2 * REPUBLISH_MS);
    expect((await heads.view()).fullAtMs).toBe(start + REPUBLISH_MS);
    await heads.check();
  });
});

describe("the key of a log of heads", () => {
  it("follows the registry: heads, the record, and one head that both keys sign", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await heads.alarm();
    const before = await heads.view();
    const registry = env.KEY_REGISTRY.getByName(heads.tenant.id);
    expect(await registry.rotate(heads.tenant.id, "00".repeat(16), "log")).toMatchObject({ ok: true });
    await heads.report("a", 1, 2);
    await heads.alarm();
    expect((await heads.view()).key).toBe(before.key);
    // A rotation takes effect two minutes after it was published.
    stopClock(Date.now() + 3_600_000);
    await heads.report("a", 2, 3);
    await heads.report("b", 0, 1, { epoch: 1 });
    await heads.alarm();
    const after = await heads.view();
    expect(after.key).not.toBe(before.key);
    const keys = [after.key, before.key].map((key) => fromHex(key, 32));
    expect(openCheckpoint(nativeCrypto, after.checkpoint, after.origin, keys).keys).toHaveLength(2);
    const walker = await heads.check();
    expect(walker.epoch).toBe(1);
    const at = (name: string) => walker.heads.get(toHex(made(name, -1)))?.firstIndex ?? Number.NaN;
    expect(at("b") - at("a")).toBe(2);
    await heads.report("a", 3, 4);
    await heads.alarm();
    const last = await heads.view();
    expect(parseCheckpoint(last.checkpoint).signatures).toHaveLength(1);
    expect(last.key).toBe(after.key);
    await heads.check();
  });

  it("signs on while the registry is away", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await heads.alarm();
    const away = vi.spyOn(env.KEY_REGISTRY, "getByName").mockImplementation(() => {
      throw new Error("Durable Object is overloaded");
    });
    await heads.evict();
    await heads.report("a", 1, 2);
    await heads.alarm();
    expect(away.mock.calls.length).toBeGreaterThan(0);
    expect(await heads.sizeOf("a")).toBe(2);
  });

  it("of the service is made once and kept wrapped", async () => {
    const service = env.HEAD_LOG.getByName(SERVICE);
    const identity = { host: "runseal.local", owner: SERVICE };
    const [first, second] = await Promise.all([service.view(identity), service.view(identity)]);
    await evictDurableObject(service);
    const third = await service.view(identity);
    if (!first.ok || !second.ok || !third.ok) throw new Error("no view");
    expect([second.view.key, third.view.key]).toEqual([first.view.key, first.view.key]);
    const rows = await runInDurableObject(service, (_log, state) =>
      state.storage.sql.exec("SELECT * FROM log_keys").toArray(),
    );
    expect(rows.map(({ public_key }) => public_key)).toEqual([first.view.key]);
    expect(Object.keys(JSON.parse(String(rows[0]?.wrapped))).sort()).toEqual([
      "box",
      "nonce",
      "publicKey",
      "role",
      "version",
    ]);
  });
});

describe("the cost of a log of heads", () => {
  it("is one row a report, and four rows, one get and one put a batch of one leaf", async () => {
    const heads = await TestHeads.create();
    stopClock(Date.now() + 3_600_000);
    await heads.report("a", 0, 1);
    await heads.alarm();
    let rows = 0;
    await heads.inside((state) => {
      const { sql } = state.storage;
      const exec = sql.exec.bind(sql);
      sql.exec = ((...args: Parameters<typeof exec>) => {
        const cursor = exec(...args);
        rows += cursor.rowsWritten;
        return cursor;
      }) as typeof sql.exec;
    });
    await heads.report("a", 1, 2);
    expect(rows).toBe(1);
    rows = 0;
    const [put, get] = [vi.spyOn(env.MIRROR, "put"), vi.spyOn(env.MIRROR, "get")];
    await heads.alarm();
    const own = (spy: { mock: { calls: unknown[][] } }) =>
      spy.mock.calls.filter(([key]) => String(key).startsWith(`t/${heads.tenant.id}/log/`)).length;
    // The leaf, the state, and what is mirrored; the alarm is the fourth.
    expect([rows, own(put), own(get)]).toEqual([3, 1, 1]);
  });
});

describe("the mirror of a log of heads", () => {
  const keyOf = (heads: TestHeads, path: string) => `t/${heads.tenant.id}/log/${path}`;

  it("holds its head, and full tiles and bundles of leaves, over losses of memory at every size around a tile's end", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await heads.alarm();
    // The mirror takes one put a second: it is away until the log is long enough.
    const breakMirror = () => breakGets((key) => key === keyOf(heads, "checkpoint"));
    let fault = breakMirror();
    for (let size = 1; size < 262; size++) {
      await heads.report("a", size, size + 1);
      await heads.alarm();
      if (size > 250) {
        fault.mend();
        await heads.evict();
        await heads.view();
        fault = breakMirror();
      }
    }
    fault.mend();
    await heads.report("a", 262, 263);
    await heads.alarm();
    const leaves = await heads.leaves();
    expect(leaves.length).toBeGreaterThan(260);
    const mirrored = await env.MIRROR.get(keyOf(heads, "checkpoint"));
    expect(await mirrored?.text()).toBe((await heads.view()).checkpoint);
    const bundle = await env.MIRROR.get(keyOf(heads, "tile/entries/000"));
    const bundled = decodeEntryBundle(
      new Uint8Array((await bundle?.arrayBuffer()) ?? new ArrayBuffer()),
      256,
    );
    expect(bundled.map(toHex)).toEqual(leaves.slice(0, 256).map(toHex));
    const tile = await env.MIRROR.get(keyOf(heads, "tile/0/000"));
    const hashes = concat(...leaves.slice(0, 256).map((leaf) => leafHash(nativeCrypto, leaf)));
    expect(toHex(new Uint8Array((await tile?.arrayBuffer()) ?? new ArrayBuffer()))).toBe(toHex(hashes));
    expect(await heads.sizeOf("a")).toBe(263);
  });

  it("that holds another head of the same size stops the log, loudly", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await heads.alarm();
    const { origin, size, checkpoint } = await heads.view();
    const forged = { origin, size, root: made("fork", 0) };
    const note = signCheckpoint(nativeCrypto, origin, [nativeCrypto.signer(new Uint8Array(32))], forged);
    await env.MIRROR.put(keyOf(heads, "checkpoint"), note);
    await heads.report("a", 1, 2);
    await heads.alarm();
    const answer = await call(heads.tenant.key, "GET", "/v1/log/checkpoint");
    expect([answer.status, problemOf(answer)]).toEqual([503, "log-stopped"]);
    const shown = await call(heads.tenant.key, "GET", "/v1/heads");
    expect(shown.status).toBe(200);
    const { log } = shown.body as unknown as { log: { alarms: { name: string }[]; size: number } };
    expect(log.alarms.map(({ name }) => name)).toEqual(["stopped"]);
    // What was signed before the mirror was read stays; nothing is signed from then on.
    const stoppedAt = log.size;
    await heads.report("a", 2, 3);
    await heads.alarm();
    expect(await env.MIRROR.get(keyOf(heads, "checkpoint")).then((object) => object?.text())).toBe(note);
    const rows = await heads.inside((state) => state.storage.sql.exec("SELECT size FROM state").toArray());
    expect(rows).toEqual([{ size: stoppedAt }]);
    expect(checkpoint).not.toBe(note);
  });

  it("that is ahead stops a log that lost its storage, before it signs anything", async () => {
    const heads = await TestHeads.create();
    await heads.report("a", 0, 1);
    await heads.alarm();
    await heads.inside((state) => state.storage.deleteAll());
    await heads.evict();
    await heads.report("a", 0, 1);
    await heads.alarm();
    const outcome = await heads.stub.view(heads.identity);
    expect(outcome).toMatchObject({ ok: false, code: "log-stopped" });
    const [state] = await heads.inside((s) => s.storage.sql.exec("SELECT size FROM state").toArray());
    expect(state?.size).toBe(0);
  });

  it("that fails is tried again, also where its answer alone got lost", async () => {
    for (const fault of ["fails", "fails but persisted"] as const) {
      const heads = await TestHeads.create();
      const broken = breakPuts(fault, (key) => key.startsWith(`t/${heads.tenant.id}/log/`));
      await heads.report("a", 0, 1);
      await heads.alarm();
      expect(broken.count()).toBeGreaterThan(0);
      expect((await heads.view()).mirroredSize).toBe(0);
      broken.mend();
      expect(await heads.alarm()).toBe(true);
      const { mirroredSize, size } = await heads.view();
      expect([fault, mirroredSize]).toEqual([fault, size]);
    }
  });
});
