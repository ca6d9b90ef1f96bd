import { beforeAll, describe, expect, it } from "vitest";
import type { TestTenant } from "../workers/support.ts";
import { entries, entry, newTenant, problemOf, resultsOf, TestLog } from "./support.ts";

let tenant: TestTenant;
beforeAll(async () => {
  tenant = await newTenant();
});

/** What the log's object holds, read past its memory. */
async function segments(log: TestLog): Promise<{ first: number; count: number }[]> {
  return log.inside((state) =>
    state.storage.sql
      .exec("SELECT first_seq, count FROM segments ORDER BY first_seq")
      .toArray()
      .map((row) => ({ first: Number(row.first_seq), count: Number(row.count) })),
  );
}

describe("one order", () => {
  it("numbers 200 concurrent appends without a gap, and shares commits between them", async () => {
    const log = new TestLog(tenant, "concurrent");
    await log.append(entry());
    const answers = await Promise.all(Array.from({ length: 200 }, () => log.append(entry())));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    const seqs = answers.map((answer) => resultsOf(answer)[0]?.seq ?? 0).sort((a, b) => a - b);
    expect(seqs).toEqual(Array.from({ length: 200 }, (_, i) => i + 2));
    expect((await log.check()).size).toBe(201);
    const stored = await segments(log);
    expect(stored.reduce((sum, { count }) => sum + count, 0)).toBe(201);
    // A commit for each would make 201.
    expect(stored.length).toBeLessThan(100);
  });

  it("keeps the batches of concurrent requests whole and in input order", async () => {
    const log = new TestLog(tenant, "batches");
    const answers = await Promise.all(Array.from({ length: 40 }, () => log.append(entries(25))));
    for (const answer of answers) {
      const seqs = resultsOf(answer).map(({ seq = 0 }) => seq);
      expect(seqs).toEqual(Array.from({ length: 25 }, (_, i) => (seqs[0] ?? 0) + i));
    }
    expect((await log.check()).size).toBe(1000);
  });

  it("answers each append with a head that holds it", async () => {
    const log = new TestLog(tenant, "heads");
    const answers = await Promise.all(Array.from({ length: 50 }, () => log.append(entry())));
    for (const answer of answers) {
      const { head } = answer.body as unknown as { head: { size: number } };
      expect(head.size).toBeGreaterThanOrEqual(resultsOf(answer)[0]?.seq ?? Number.POSITIVE_INFINITY);
    }
    await log.check();
  });
});

describe("exactly once", () => {
  it("stores one entry for 50 equal requests at once, and gives all of them its receipt", async () => {
    const log = new TestLog(tenant, "equal");
    const one = entry({ id: "same" });
    const answers = await Promise.all(Array.from({ length: 50 }, () => log.append(one)));
    const receipts = answers.map((answer) => resultsOf(answer)[0]);
    expect(receipts.filter((receipt) => receipt?.status === "stored")).toHaveLength(1);
    expect(receipts.filter((receipt) => receipt?.status === "seen")).toHaveLength(49);
    expect(new Set(receipts.map((receipt) => `${receipt?.seq}:${receipt?.hash}`)).size).toBe(1);
    expect((await log.check()).size).toBe(1);
  });

  it("lets one of 50 requests with one id and different contents win, and refuses the others", async () => {
    const log = new TestLog(tenant, "unequal");
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => log.append(entry({ id: "same", run: `run-${i}`, call: "c" }))),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(
      answers.filter((answer) => answer.status === 409 && problemOf(answer) === "conflict"),
    ).toHaveLength(49);
    expect((await log.check()).size).toBe(1);
  });

  it("stores each entry of overlapping batches once", async () => {
    const log = new TestLog(tenant, "overlapping");
    const all = entries(60);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => log.append(all.slice(i, i + 40))));
    expect(answers.every(({ status }) => status < 300)).toBe(true);
    expect(new Set((await log.check()).ids)).toEqual(new Set(all.slice(0, 59).map(({ id }) => id)));
  });

  it("refuses an atomic batch whole when a neighbour in its group took one of its ids, and stores nothing of it", async () => {
    const log = new TestLog(tenant, "atomic");
    const one = entry({ id: "taken" });
    const [first, second] = await Promise.all([
      log.append(one),
      log.append([entry({ id: "beside" }), { ...one, run: "other" }], "?atomic=true"),
    ]);
    // Whichever came first, one of the two is refused and the log holds only the other.
    const { ids } = await log.check();
    expect([first.status, second.status].filter((status) => status === 201)).toHaveLength(1);
    expect(ids).toEqual(first.status === 201 ? ["taken"] : ["beside", "taken"]);
  });
});
