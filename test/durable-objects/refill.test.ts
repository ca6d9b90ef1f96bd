import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { REFILL_LIMITS } from "../../durable-objects/principal-log/refill.ts";
import { MIRROR_PACE } from "../../durable-objects/tile-store/mirror-keeper.ts";
import { fromBase64, fromHex, toBase64, toHex } from "../../shared/bytes.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import type { TestTenant } from "../workers/support.ts";
import { call } from "../workers/support.ts";
import { breakPuts } from "./faults.ts";
import { copyLog, emptyLog } from "./log-copy.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
const { perCall } = REFILL_LIMITS;
beforeAll(() => {
  MIRROR_PACE.minPutInterval = 20;
});
// A tenant each: its system log is read.
beforeEach(async () => {
  tenant = await newTenant();
});
afterEach(() => {
  vi.restoreAllMocks();
  REFILL_LIMITS.perCall = perCall;
});

type Row = Record<string, unknown>;

/** Entries of the system log about logs. */
async function notices(): Promise<Row[]> {
  const { body } = await call(tenant.key, "GET", "/v1/principals/$system/entries?limit=1000");
  return (body.entries as unknown as { kind: string; action: Row }[])
    .filter(({ kind }) => kind.startsWith("log."))
    .map(({ kind, action }) => ({ kind, ...action }));
}

async function told(log: TestLog): Promise<Row[]> {
  return vi.waitFor(async () => {
    await log.alarm();
    const all = await notices();
    expect(all).not.toEqual([]);
    return all;
  }, 10_000);
}

/** What anybody can read of the log: everything but the index's own order. */
async function everything(log: TestLog): Promise<string> {
  const { body } = await log.get("/entries?limit=1000");
  return JSON.stringify(body.entries);
}

async function changeIndex(log: TestLog, sql: string): Promise<void> {
  const logRow = "(SELECT log FROM logs WHERE name = ?1 AND tenant = ?2)";
  await env.DB.prepare(sql.replace("LOG", logRow)).bind(log.name, tenant.id).run();
}

describe("a log whose storage was set back behind its mirrored head", () => {
  it("takes its entries from D1, with their values, and goes on", async () => {
    const log = new TestLog(tenant, "back");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    const late = entries(5);
    await log.append(late, "?wait=mirrored");
    const before = await everything(log);
    await restore();
    const [again] = late;
    const answer = await log.append([again, entry()]);
    // The one that is sent again gets its old receipt.
    expect(resultsOf(answer).map(({ seq }) => seq)).toEqual([4, 9]);
    expect(await log.check()).toMatchObject({ size: 9 });
    expect((await everything(log)).startsWith(before.slice(0, -1))).toBe(true);
    expect(await told(log)).toMatchObject([
      {
        kind: "log.refilled",
        from: 4,
        to: 8,
        without_content: 0,
        stored_head: { size: 3 },
        head: { size: 8 },
      },
    ]);
    await log.evict();
    expect(await log.check()).toMatchObject({ size: 9 });
  });

  it("is filled from nothing, where nothing is left of it", async () => {
    const log = new TestLog(tenant, "emptied");
    for (let i = 0; i < 3; i++) await log.append(entries(300), i === 2 ? "?wait=mirrored" : "");
    const before = await everything(log);
    await emptyLog(log);
    expect((await log.get("/head")).body).toMatchObject({ size: 900, mirrored_size: 900 });
    expect(await everything(log)).toBe(before);
    await log.append(entries(200), "?wait=mirrored");
    expect(await log.check()).toMatchObject({ size: 1100 });
    expect(await log.progress()).toMatchObject({ size: 1100, flushed: 1100, archived: 1024, mirrored: 1100 });
  });

  it("keeps, too, what was acknowledged after the mirrored head, where D1 has it", async () => {
    const log = new TestLog(tenant, "beyond");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(2), "?wait=mirrored");
    const broken = breakPuts("fails", (key) => key.endsWith("/checkpoint"));
    await log.append(entries(4));
    expect((await log.get("/entries")).status).toBe(200);
    await restore();
    broken.mend();
    await log.append(entry());
    expect(await log.check()).toMatchObject({ size: 10 });
    expect(log.told.heads.has(9)).toBe(true);
  });

  it("takes nothing from D1 after the mirrored head that does not go on from there", async () => {
    const log = new TestLog(tenant, "planted");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(2), "?wait=mirrored");
    await log.get("/entries");
    await restore();
    await changeIndex(
      log,
      "INSERT INTO entries SELECT entry + 1, pos + 1000, tenant, hash, leaf, recorded_at, id || 'x', kind, session, run, step, call, tool, status, content, salts FROM entries WHERE seq = 5 AND log = LOG",
    );
    await changeIndex(log, "UPDATE logs SET last_seq = 6 WHERE log = LOG");
    expect((await log.get("/head")).body.size).toBe(5);
    expect(problemOf(await log.get("/entries"))).toBe("index-conflict");
  });

  it("takes leaves from R2 where D1 has lost them, and says which values are missing", async () => {
    const log = new TestLog(tenant, "bundles");
    await log.append(entries(100), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(156), "?wait=mirrored");
    await log.get("/entries");
    await changeIndex(log, "DELETE FROM entries WHERE log = LOG");
    await changeIndex(log, "DELETE FROM runs WHERE log = LOG");
    await env.DB.prepare("DELETE FROM logs WHERE name = ? AND tenant = ?").bind(log.name, tenant.id).run();
    await restore();
    expect((await log.get("/head")).body.size).toBe(256);
    for (let i = 0; i < 3; i++) await log.get("/entries");
    expect(await log.check()).toMatchObject({ size: 256 });
    const { body } = await log.get("/entries?from=100&to=101");
    const [kept, lost] = body.entries as unknown as { action: Row }[];
    expect(kept?.action.tool).toBe("read_file");
    expect(JSON.stringify(lost)).not.toContain("read_file");
    expect(await told(log)).toMatchObject([
      { kind: "log.refilled", from: 101, to: 256, without_content: 156 },
    ]);
  });

  it("believes R2 over D1 for a leaf, and a value only where its leaf commits to it", async () => {
    const log = new TestLog(tenant, "altered");
    await log.append(entries(10), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(250), "?wait=mirrored");
    await log.get("/entries");
    await changeIndex(log, "UPDATE entries SET leaf = 'AAAA' WHERE seq = 20 AND log = LOG");
    await changeIndex(
      log,
      "UPDATE entries SET content = replace(content, 'read_file', 'drop_table') WHERE seq = 258 AND log = LOG",
    );
    await restore();
    expect((await log.get("/head")).body.size).toBe(260);
    expect(await told(log)).toMatchObject([{ kind: "log.refilled", to: 260, without_content: 2 }]);
    const report = (await log.get("/verify")).body as unknown as { verdict: string; break: { seq: number } };
    // D1 is as altered as it was.
    expect([report.verdict, report.break.seq]).toEqual(["broken", 20]);
  });

  it("works in steps, is nobody's to read in between, and survives a crash in its middle", async () => {
    const log = new TestLog(tenant, "steps");
    await log.append(entries(10), "?wait=mirrored");
    const restore = await copyLog(log);
    for (let i = 0; i < 3; i++) await log.append(entries(300), i === 2 ? "?wait=mirrored" : "");
    await log.get("/entries?limit=1");
    const sizeOf = () =>
      log.inside((state) => {
        const [head] = state.storage.sql.exec("SELECT size FROM head").toArray();
        const [refill] = state.storage.sql.exec("SELECT size FROM refill").toArray();
        return [Number(head?.size), Number(refill?.size ?? 0)];
      });
    REFILL_LIMITS.perCall = 1;
    await restore();
    for (const reached of [256, 512]) {
      const answer = await log.get("/head");
      expect([answer.status, problemOf(answer), answer.headers.get("retry-after")]).toEqual([
        503,
        "log-refilling",
        "2",
      ]);
      expect(await sizeOf()).toEqual([10, reached]);
      // What is behind the head is not the log's: a start takes none of it over.
      await log.evict();
    }
    const failing = vi.spyOn(env.DB, "withSession").mockImplementation(() => {
      throw new Error("D1_ERROR: Network connection lost.");
    });
    expect((await log.get("/head")).status).toBe(503);
    failing.mockRestore();
    await log.evict();
    REFILL_LIMITS.perCall = perCall;
    expect((await log.get("/head")).body.size).toBe(910);
    expect(await sizeOf()).toEqual([910, 0]);
    expect(await log.check()).toMatchObject({ size: 910 });
  });

  it("goes on by its alarm, where nobody asks", async () => {
    const log = new TestLog(tenant, "alarm");
    await log.append(entries(10), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(600), "?wait=mirrored");
    await log.get("/entries?limit=1");
    REFILL_LIMITS.perCall = 1;
    await restore();
    expect(problemOf(await log.get("/head"))).toBe("log-refilling");
    await vi.waitFor(async () => {
      await log.alarm();
      expect((await log.progress()).size).toBe(610);
    }, 10_000);
    expect(await log.check()).toMatchObject({ size: 610 });
  });
});

describe("a log that can't be filled again", () => {
  it("stops, keeps its storage as it was, and says so on the system log with both heads", async () => {
    const log = new TestLog(tenant, "stopped");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(600), "?wait=mirrored");
    await log.get("/entries?limit=1");
    // In the last tile, of which R2 has no bundle.
    await changeIndex(
      log,
      "UPDATE entries SET leaf = (SELECT leaf FROM entries WHERE seq = 589 AND log = LOG) WHERE seq = 590 AND log = (SELECT log FROM logs WHERE name = ?1 AND tenant = ?2)",
    );
    await restore();
    const answer = await log.append(entry());
    expect([answer.status, problemOf(answer)]).toEqual([503, "log-stopped"]);
    const stored = await log.inside((state) => {
      const one = (sql: string) => Number(Object.values(state.storage.sql.exec(sql).toArray()[0] ?? {})[0]);
      return [
        one("SELECT size FROM head"),
        one("SELECT max(first_seq + count - 1) FROM segments"),
        one("SELECT count(*) FROM tiles"),
        one("SELECT count(*) FROM refill"),
      ];
    });
    expect(stored).toEqual([3, 3, 0, 0]);
    const [notice] = await told(log);
    expect(notice).toMatchObject({
      kind: "log.stopped",
      stored_head: { size: 3 },
      mirrored_head: { size: 603 },
    });
    expect(String(notice?.reason)).toContain("entry 590");
    await log.evict();
    expect(problemOf(await log.get("/head"))).toBe("log-stopped");
  });

  it("stops where all goes on from the entry before, and yet is not what was mirrored", async () => {
    const log = new TestLog(tenant, "another-end");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(2), "?wait=mirrored");
    await log.get("/entries");
    // The last entry, of which nobody holds the hash: another commitment in it.
    const logRow = "log = (SELECT log FROM logs WHERE name = ? AND tenant = ?)";
    const last = await env.DB.prepare(`SELECT leaf FROM entries WHERE seq = 5 AND ${logRow}`)
      .bind(log.name, tenant.id)
      .first<{ leaf: string }>();
    const leaf = fromBase64(last?.leaf ?? "");
    const [commitment] = [...decodeLeaf(leaf).action.values()];
    const hex = toHex(commitment ?? new Uint8Array());
    const other = fromHex(toHex(leaf).replace(hex, "00".repeat(32)));
    await env.DB.prepare(`UPDATE entries SET leaf = ? WHERE seq = 5 AND ${logRow}`)
      .bind(toBase64(other), log.name, tenant.id)
      .run();
    await restore();
    const answer = await log.get("/head");
    expect([problemOf(answer), String(answer.body.detail)]).toEqual([
      "log-stopped",
      expect.stringContaining("root"),
    ]);
  });

  it("stops where the mirrored head is nobody's that was registered", async () => {
    const log = new TestLog(tenant, "forged");
    await log.append(entries(3), "?wait=mirrored");
    const restore = await copyLog(log);
    await log.append(entries(2), "?wait=mirrored");
    await restore();
    const key = `${await log.prefix()}/checkpoint`;
    const text = (await (await env.MIRROR.get(key))?.text()) ?? "";
    await env.MIRROR.put(key, text.replace("\n5\n", "\n6\n"));
    const answer = await log.get("/head");
    expect([problemOf(answer), String(answer.body.detail)]).toEqual([
      "log-stopped",
      expect.stringContaining("can't be trusted"),
    ]);
  });
});
