import { beforeAll, describe, expect, it } from "vitest";
import { toHex } from "../../shared/bytes.ts";
import type { TestTenant } from "../workers/support.ts";
import { newTenant } from "../workers/support.ts";
import { entries, entry, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

/** A batch as text, made faster than value by value: `count` entries from number `from` on. */
function manyAsText(from: number, count: number): string {
  const one = (i: number) =>
    `{"id":"m-${from + i}","kind":"tool.call.started","run":"r","call":"c-${from + i}","action":{"tool":"t","args":{"n":${i}}}}`;
  return `[${Array.from({ length: count }, (_, i) => one(i)).join(",")}]`;
}

/** The tile that the log answers, past the Worker: hex of its hashes. */
async function tileHashes(log: TestLog, level: number, index: number, width: number): Promise<string[]> {
  const stub = await log.stub();
  const outcome = await stub.tile(await log.identity(), 0, { kind: "hashes", level, index, width });
  if (!outcome.ok || outcome.bytes === null) throw new Error(`no tile ${level}/${index} of ${width}`);
  const hashes: string[] = [];
  for (let at = 0; at < outcome.bytes.length; at += 32)
    hashes.push(toHex(outcome.bytes.subarray(at, at + 32)));
  return hashes;
}

describe("a log whose object lost its memory", () => {
  it("gives a retry the first receipt, and refuses the id with other content", async () => {
    const log = new TestLog(tenant, "retry");
    const sent = entries(5);
    const first = await log.append(sent);
    await log.evict();
    const again = await log.append(sent);
    expect(again.status).toBe(200);
    expect(resultsOf(again)).toEqual(resultsOf(first).map((receipt) => ({ ...receipt, status: "seen" })));
    await log.evict();
    expect((await log.append({ ...sent[2], run: "other" })).status).toBe(409);
    expect((await log.check()).size).toBe(5);
  });

  it("signs the same head, byte for byte, and goes on from it", async () => {
    const log = new TestLog(tenant, "head");
    await log.append(entries(7));
    const { body: before } = await log.get("/head");
    await log.evict();
    expect((await log.get("/head")).body).toEqual({ ...before, ...{ mirrored_size: expect.anything() } });
    expect(resultsOf(await log.append(entry()))[0]?.seq).toBe(8);
    expect((await log.check()).size).toBe(8);
  });

  it("has its partial tile and right edge back at every size around the tiles' ends", async () => {
    const log = new TestLog(tenant, "edges");
    const hashes: string[] = [];
    for (const size of [1, 2, 255, 256, 257, 510, 511, 512, 513, 768]) {
      const answer = await log.append(manyAsText(hashes.length + 1, size - hashes.length));
      expect(answer.status).toBe(201);
      hashes.push(...resultsOf(answer).map(({ hash = "" }) => hash));
      await log.evict();
      const [tile, width] = [Math.floor((size - 1) / 256), ((size - 1) % 256) + 1];
      expect(await tileHashes(log, 0, tile, width)).toEqual(hashes.slice(tile * 256, tile * 256 + width));
    }
    expect((await log.check()).size).toBe(768);
    expect(await tileHashes(log, 1, 0, 3)).toHaveLength(3);
  });

  it("loses nothing when it loses its memory between any two of many small appends", async () => {
    const log = new TestLog(tenant, "often");
    for (let round = 0; round < 8; round++) {
      const answers = await Promise.all(Array.from({ length: 5 }, () => log.append(entries(2))));
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
      await log.evict();
    }
    expect((await log.check()).size).toBe(80);
  });

  it("sets its alarm again where D1 or R2 lack something", async () => {
    const log = new TestLog(tenant, "alarm");
    await log.append(entry());
    await log.inside((state) => state.storage.deleteAlarm());
    await log.evict();
    expect(await log.alarmAt()).not.toBeNull();
  });
});
