import { env, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { CONTENT_LIMITS } from "../../../durable-objects/content/archive.ts";
import { ArchivedEntries } from "../../../durable-objects/content/archived-entries.ts";
import { ContentKeys } from "../../../durable-objects/content/content-keys.ts";
import { PASS_LIMITS } from "../../../durable-objects/content/pass.ts";
import { loadPartialTile } from "../../../durable-objects/principal-log/start.ts";
import { LogStorage } from "../../../durable-objects/principal-log/storage.ts";
import { MIRROR_PACE } from "../../../durable-objects/tile-store/mirror-keeper.ts";
import { TileTree } from "../../../durable-objects/tile-store/tile-tree.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex } from "../../../shared/bytes.ts";
import { computeLogId } from "../../../shared/entry/log-id.ts";
import { formatRow } from "../../../shared/entry/row.ts";
import type { TestTenant } from "../../workers/support.ts";
import { breakIndexWrites, breakPuts } from "../faults.ts";
import { entries, entry, newTenant, TestLog } from "../support.ts";
import { erase, settle } from "./support.ts";

let tenant: TestTenant;
const limits = { ...CONTENT_LIMITS };
const passes = { ...PASS_LIMITS };
beforeAll(async () => {
  tenant = await newTenant();
  MIRROR_PACE.minPutInterval = 1;
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.assign(CONTENT_LIMITS, limits);
  Object.assign(PASS_LIMITS, passes);
});

const isContent = (key: string) => key.includes("/content/");

async function contentObjects(log: TestLog): Promise<string[]> {
  const { objects } = await env.MIRROR.list({ prefix: `${await log.prefix()}/content/` });
  return objects.map(({ key }) => key);
}

const boxedSeq = (log: TestLog) => log.inside((state) => new ContentKeys(state.storage.sql).boxedSeq);

/** The rows of the log's segments, and the same rows as they come back from R2. */
async function bothRows(
  log: TestLog,
  first: number,
  last: number,
): Promise<{ stored: string[]; boxed: string[] }> {
  const { registryId, principal, generation } = await log.identity();
  const logId = computeLogId(nativeCrypto, fromHex(registryId), principal, generation);
  const prefix = await log.prefix();
  return runInDurableObject(await log.stub(), async (_instance, state) => {
    const storage = new LogStorage(state.storage, nativeCrypto);
    const size = storage.head()?.size ?? 0;
    const tree = new TileTree(storage.tiles, nativeCrypto);
    tree.load(size, loadPartialTile(nativeCrypto, storage, size));
    const stored: string[] = [];
    for (const { first_seq, rows } of state.storage.sql.exec(
      "SELECT first_seq, rows FROM segments ORDER BY 1",
    )) {
      String(rows)
        .split("\n")
        .forEach((row, i) => {
          const seq = Number(first_seq) + i;
          if (seq >= first && seq <= last) stored.push(row);
        });
    }
    const boxed: string[] = [];
    const keys = new ContentKeys(state.storage.sql);
    const context = { crypto: nativeCrypto, tree, keys, bucket: env.MIRROR, prefix, logId };
    const archived = new ArchivedEntries(context);
    await archived.load(first, last);
    for (const { columns, content } of archived.entries(first, last)) {
      boxed.push(content === null ? "lost" : formatRow({ columns, ...content }));
    }
    return { stored, boxed };
  });
}

describe("content in R2", () => {
  it("is put beside each full bundle, and gives back the rows with every digit", async () => {
    const log = new TestLog(tenant, "rows");
    const special = entry({
      action: { tool: "t", args: { n: 12345678901234567890n.toString(), text: "é😀\u2028" } },
      outcome: undefined,
    });
    await log.append([special, ...entries(300)]);
    await log.append(
      '{"kind":"tool.call.started","call":"c","action":{"tool":"x","args":12345678901234567890}}',
    );
    await log.append(entries(211));
    await settle(log);
    expect(await boxedSeq(log)).toBe(512);
    const { stored, boxed } = await bothRows(log, 1, 512);
    expect(boxed).toEqual(stored);
    expect(stored[301]).toContain("12345678901234567890");
    // One row of keys, however many entries.
    const rows = await log.inside((state) => state.storage.sql.exec("SELECT * FROM content_keys").toArray());
    expect(rows.length).toBe((await contentObjects(log)).length);
    expect(rows.length).toBeLessThanOrEqual(2);
  });

  it("takes at most 1,024 entries and the bytes of a pass an object, and few objects a pass", async () => {
    CONTENT_LIMITS.bytes = 40_000;
    CONTENT_LIMITS.objects = 2;
    const log = new TestLog(tenant, "bounds");
    await log.append(entries(100));
    await log.append(entry({ action: { tool: "t", args: "x".repeat(50_000) } }));
    await log.append(entry({ action: { tool: "t", args: "y".repeat(50_000) } }));
    await log.append(entries(154));
    await log.alarm();
    expect((await contentObjects(log)).length).toBe(2);
    await settle(log);
    const chunks = await log.inside((state) =>
      state.storage.sql.exec("SELECT first_seq, count FROM content_keys ORDER BY 1").toArray(),
    );
    expect(chunks.reduce((sum, { count }) => sum + Number(count), 0)).toBe(256);
    expect(chunks).toEqual(
      expect.arrayContaining([
        { first_seq: 101, count: 1 },
        { first_seq: 102, count: 1 },
      ]),
    );
    for (const key of await contentObjects(log)) {
      expect((await env.MIRROR.head(key))?.size).toBeLessThan(60_000);
    }
    const { stored, boxed } = await bothRows(log, 90, 256);
    expect(boxed).toEqual(stored);
  });

  it("makes, with the rest of the mirror, at most 20 operations of R2 for 1,000 entries, a pass for each bundle", async () => {
    const log = new TestLog(tenant, "operations");
    const spies = (["put", "get", "head", "list", "delete"] as const).map((name) =>
      vi.spyOn(env.MIRROR, name),
    );
    for (let bundle = 0; bundle < 10; bundle++) {
      await log.append(entries(256));
      await settle(log);
    }
    const prefix = await log.prefix();
    const keys = spies.flatMap((spy) => spy.mock.calls.map(([key]) => String(key)));
    const own = keys.filter((key) => key.startsWith(prefix));
    expect(await boxedSeq(log)).toBe(2560);
    expect(own.filter((key) => key.includes("/content/")).length).toBe(10);
    expect(own.length / 2.56).toBeLessThanOrEqual(20);
  });

  it("has no key and no bytes for an entry without values", async () => {
    const log = new TestLog(tenant, "empty");
    const commitments = { tool: { $commitment: "ab".repeat(32) }, args: { $commitment: "cd".repeat(32) } };
    await log.append(Array.from({ length: 255 }, () => entry({ action: commitments })));
    await log.append(entry());
    await settle(log);
    const [row] = await log.inside((state) =>
      state.storage.sql.exec("SELECT keys FROM content_keys").toArray(),
    );
    expect(row?.keys).toHaveProperty("byteLength", 34);
    const { stored, boxed } = await bothRows(log, 255, 256);
    expect(boxed).toEqual(stored);
    expect(boxed[1]).toContain("read_file");
  });

  it.each(["fails", "fails but persisted"] as const)(
    "a put that %s is made again under the same keys",
    async (fault) => {
      const log = new TestLog(tenant, `put-${fault.replaceAll(" ", "-")}`);
      await log.append(entries(256));
      const injected = breakPuts(fault, isContent);
      await log.alarm();
      const keysThen = await log.inside((state) =>
        state.storage.sql.exec("SELECT * FROM content_keys").toArray(),
      );
      await log.evict();
      await log.append(entry());
      await log.alarm();
      expect(injected.count()).toBeGreaterThan(1);
      expect(await boxedSeq(log)).toBe(0);
      // The head is mirrored all the same.
      expect((await log.progress()).mirrored).toBe(257);
      injected.mend();
      await settle(log);
      expect(await boxedSeq(log)).toBe(256);
      expect((await contentObjects(log)).length).toBe(1);
      const keysNow = await log.inside((state) =>
        state.storage.sql.exec("SELECT * FROM content_keys").toArray(),
      );
      expect(keysNow).toEqual(keysThen);
      const { stored, boxed } = await bothRows(log, 1, 256);
      expect(boxed).toEqual(stored);
    },
  );

  it("is caught up with where a log has bundles from before, and says what is lost", async () => {
    const log = new TestLog(tenant, "caught-up");
    CONTENT_LIMITS.entries = 100;
    await log.append(entries(520));
    await settle(log);
    await log.inside((state) => {
      state.storage.sql.exec("DELETE FROM content_keys");
      state.storage.sql.exec("DELETE FROM content_progress");
    });
    const before = await contentObjects(log);
    await env.MIRROR.delete(before);
    await log.append(entry());
    await settle(log);
    const now = await contentObjects(log);
    expect([await boxedSeq(log), now.length]).toEqual([512, 6]);
    const second = now.find((key) => key.includes("/content/101."));
    await env.MIRROR.delete(String(second));
    const first = String(now.find((key) => key.includes("/content/1.")));
    const bytes = new Uint8Array((await (await env.MIRROR.get(first))?.arrayBuffer()) ?? new ArrayBuffer());
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await env.MIRROR.put(first, bytes);
    const { stored, boxed } = await bothRows(log, 99, 201);
    expect(boxed.map((row) => row === "lost")).toEqual(
      Array.from({ length: 103 }, (_, i) => i + 99 >= 100 && i + 99 <= 200),
    );
    expect([boxed[0], boxed.at(-1)]).toEqual([stored[0], stored.at(-1)]);
  });

  it("gives back what an erasure left, whether it came before or after the sealing", async () => {
    const log = new TestLog(tenant, "left");
    await log.append(entries(256));
    expect((await erase(log, { from: 1, to: 2 })).status).toBe(200);
    expect((await erase(log, { seq: 3, fields: ["action.args"] })).status).toBe(200);
    await settle(log);
    expect((await erase(log, { seq: 11 })).status).toBe(200);
    expect((await erase(log, { seq: 12, fields: ["action.tool"] })).status).toBe(200);
    const { stored, boxed } = await bothRows(log, 1, 256);
    expect(boxed).toEqual(stored);
    const erased = stored.flatMap((row, i) => (row.includes("$erased") ? [i + 1] : []));
    expect(erased).toEqual([1, 2, 3, 11, 12]);
    expect(stored[11]).not.toContain("read_file");
  });

  it("is read only as far as it is there", async () => {
    const log = new TestLog(tenant, "partial");
    await log.append(entries(300));
    await settle(log);
    await expect(bothRows(log, 250, 257)).rejects.toThrow("not in R2 yet");
  });
});

describe("a log at work", () => {
  it("seals more objects a pass beyond the backlog than at rest: it would else only grow", async () => {
    Object.assign(CONTENT_LIMITS, { backlog: 300, entries: 32, objects: 1, busyObjects: 4 });
    const log = new TestLog(tenant, "behind");
    const injected = breakIndexWrites("fails");
    await log.append(entries(512));
    await log.alarm();
    expect(await boxedSeq(log)).toBe(128);
    // 384 are left: still too many.
    await log.alarm();
    expect(await boxedSeq(log)).toBe(256);
    await log.alarm();
    expect(await boxedSeq(log)).toBe(256);
    injected.mend();
    await log.alarm();
    expect(await boxedSeq(log)).toBe(288);
  });

  it("begins no further object once a pass has taken its time: the mirror waits for its end", async () => {
    Object.assign(CONTENT_LIMITS, { entries: 32, objects: 4 });
    const log = new TestLog(tenant, "takes-its-time");
    await log.append(entries(256));
    PASS_LIMITS.ms = 0;
    await log.alarm();
    expect(await boxedSeq(log)).toBe(32);
    await log.alarm();
    expect(await boxedSeq(log)).toBe(64);
    Object.assign(PASS_LIMITS, passes);
    await log.alarm();
    expect(await boxedSeq(log)).toBe(192);
  });

  it("puts off the sealing while entries wait for D1, up to a backlog", async () => {
    CONTENT_LIMITS.backlog = 300;
    const log = new TestLog(tenant, "at-work");
    const injected = breakIndexWrites("fails");
    await log.append(entries(256));
    await log.alarm();
    expect((await log.progress()).archived).toBe(256);
    expect(await contentObjects(log)).toEqual([]);
    await log.append(entries(256));
    await log.alarm();
    expect(await boxedSeq(log)).toBe(512);
    await log.append(entries(256));
    await log.alarm();
    expect(await boxedSeq(log)).toBe(512);
    injected.mend();
    await log.alarm();
    expect(await boxedSeq(log)).toBe(768);
  });
});
