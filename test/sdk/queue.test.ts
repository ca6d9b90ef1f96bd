import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { QueueOptions } from "../../sdk/queue.ts";
import { EntryQueue } from "../../sdk/queue.ts";
import type { QueueJournal } from "../../sdk/queue-journal.ts";
import { timeOfId } from "../../shared/ids.ts";
import { HOST_KINDS } from "../../shared/kinds/host.ts";
import { viewOf } from "../shared/audit/support.ts";
import type { Fault } from "./queue-support.ts";
import { declaredIn, FakeService } from "./queue-support.ts";

/** Pauses take no time, and are written down. */
function pauses(): { readonly sleep: (ms: number) => Promise<void>; readonly taken: number[] } {
  const taken: number[] = [];
  return {
    taken,
    sleep: (ms) => {
      taken.push(ms);
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}

function open(service: FakeService, options: Partial<QueueOptions> = {}): Promise<EntryQueue> {
  return EntryQueue.open({
    url: "http://fake.test",
    apiKey: "k",
    fetch: service.fetch,
    sleep: pauses().sleep,
    ...options,
  });
}

const entry = (n: number, kind = "message.delta") => ({ kind, action: { chunk: String(n) } });
const chunks = (service: FakeService, principal: string) =>
  service
    .log(principal)
    .filter(({ kind }) => kind !== "host.loss" && kind !== "host.gap")
    .map(({ action }) => action.chunk);

class MemoryJournal implements QueueJournal {
  text: string | null = null;
  readonly writes: string[] = [];
  failing: "read" | "write" | null = null;

  async read(): Promise<string | null> {
    if (this.failing === "read") throw new Error("disk");
    return this.text;
  }
  async write(text: string): Promise<void> {
    if (this.failing === "write") throw new Error("disk");
    this.text = text;
    this.writes.push(text);
  }
  async clear(): Promise<void> {
    this.text = null;
  }
}

describe("a queue", () => {
  it("sends in order, each principal's apart, in batches, with ids that tell their time", async () => {
    const service = new FakeService();
    const queue = await open(service, { batchEntries: 4 });
    for (let n = 0; n < 10; n++) {
      expect(queue.add("a", entry(n))).toBe(true);
      queue.add("b", JSON.stringify(entry(100 + n), null, 2));
    }
    expect(service.requests).toEqual([]);
    await queue.flush();
    expect(chunks(service, "a")).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    expect(chunks(service, "b").map(Number)).toEqual(Array.from({ length: 10 }, (_, i) => 100 + i));
    expect(Math.max(...service.requests)).toBe(4);
    for (const { id } of service.log("a")) expect(timeOfId(id)).toBeGreaterThan(Date.now() - 60_000);
    expect(queue.stats).toEqual({
      accepted: 20,
      stored: 20,
      refused: 0,
      dropped: 0,
      declared: 0,
      waiting: 0,
    });
  });

  it("loses nothing, doubles nothing and keeps the order, whatever happens to its requests", async () => {
    const faults: Fault[] = [
      "none",
      "no answer, nothing stored",
      "no answer, stored",
      "503",
      "429",
      "torn answer",
      "413 over 2",
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ principal: fc.constantFrom("a", "b"), bad: fc.boolean(), wait: fc.boolean() }), {
          minLength: 1,
          maxLength: 40,
        }),
        fc.array(fc.constantFrom(...faults), { maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        fc.option(fc.record({ entries: fc.integer({ min: 1, max: 6 }), told: fc.boolean() })),
        async (adds, plan, maxEntries, limit) => {
          const service = new FakeService();
          const left = [...plan];
          service.faults = () => left.shift() ?? "none";
          const queue = await open(service, { maxEntries, batchEntries: 5, sleep: service.limit(limit) });
          const expected: Record<string, string[]> = { a: [], b: [] };
          const lost: Record<string, number> = { a: 0, b: 0 };
          for (const [n, { principal, bad, wait }] of adds.entries()) {
            const taken = queue.add(principal, entry(n, bad ? "bad" : "message.delta"));
            if (taken && !bad) expected[principal]?.push(String(n));
            else lost[principal] = (lost[principal] ?? 0) + 1;
            if (wait) await new Promise((resolve) => setImmediate(resolve));
          }
          expect(await queue.close()).toEqual({ unsent: 0 });
          for (const principal of ["a", "b"]) {
            expect(chunks(service, principal)).toEqual(expected[principal]);
            expect(declaredIn(service.log(principal))).toBe(lost[principal]);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it("declares a loss at its place in the order, once however long it lasts, in a form that the log takes", async () => {
    const service = new FakeService();
    let now = 1_790_845_200_000;
    const queue = await open(service, { maxEntries: 2, now: () => now });
    for (let n = 0; n < 5; n++) {
      queue.add("a", entry(n));
      now += 1000;
    }
    await queue.flush();
    queue.add("a", entry(9));
    await queue.close();
    const log = service.log("a");
    expect(log.map(({ kind }) => kind)).toEqual([
      "message.delta",
      "message.delta",
      "host.loss",
      "message.delta",
    ]);
    expect(log[2]?.action).toEqual({
      calls: { count: 3, first_at: "2026-10-01T09:00:02.000Z", last_at: "2026-10-01T09:00:04.000Z" },
      reason: "queue_full",
    });
    expect(HOST_KINDS.some(({ kind }) => kind === "host.loss")).toBe(true);
    viewOf(JSON.stringify(log[2]), 1);
    expect(queue.stats).toMatchObject({ accepted: 3, stored: 3, dropped: 3, declared: 1 });
  });

  it("is bounded whatever is dropped and why, however often it is sent, and declares each reason's count", async () => {
    const service = new FakeService();
    service.faults = () => "503";
    const huge = JSON.stringify({ kind: "message.delta", action: { chunk: "x".repeat(4 * 1024 * 1024) } });
    const fill = async (queue: EntryQueue) => {
      for (let n = 0; n < 60; n++) {
        queue.add("a", n % 3 === 0 ? huge : entry(n));
        if (n % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const stuck = await open(service, { maxEntries: 4 });
    await fill(stuck);
    // What waits: four entries, and behind each at most a loss of either reason that was sent, and one that was not.
    expect((await stuck.close({ timeoutMs: 1 })).unsent).toBeLessThanOrEqual(4 + 2 * 2 * 2);
    const queue = await open(service, { maxEntries: 4 });
    await fill(queue);
    service.faults = () => "none";
    await queue.close();
    const lost = (reason: string) =>
      declaredIn(service.log("a").filter(({ action }) => action.reason === reason));
    expect(queue.stats).toMatchObject({ stored: 4, dropped: 56 });
    expect([lost("too_large"), lost("queue_full")]).toEqual([20, 36]);
  });

  it("is bounded in size as well, and drops an entry that no request takes", async () => {
    const service = new FakeService();
    const queue = await open(service, { maxBytes: 500 });
    const large = { kind: "message.delta", action: { chunk: "x".repeat(300) } };
    expect([queue.add("a", large), queue.add("a", large), queue.add("a", entry(1))]).toEqual([
      true,
      false,
      true,
    ]);
    await queue.flush();
    expect(queue.add("a", large)).toBe(true);
    const huge = { kind: "message.delta", action: { chunk: "é".repeat(2 * 1024 * 1024) } };
    expect(queue.add("a", huge)).toBe(false);
    await queue.close();
    const reasons = service
      .log("a")
      .flatMap(({ action }) => (action.reason === undefined ? [] : [action.reason]));
    expect(reasons).toEqual(["queue_full", "too_large"]);
  });

  it("waits at least as long as the service asks, and longer each time where it does not", async () => {
    const service = new FakeService();
    const { sleep, taken } = pauses();
    const plan: Fault[] = [
      "503",
      "429",
      ...Array.from({ length: 9 }, (): Fault => "no answer, nothing stored"),
    ];
    service.faults = () => plan.shift() ?? "none";
    const retried: number[] = [];
    const queue = await open(service, {
      sleep,
      random: () => 0,
      lingerMs: 1,
      maxBackoffMs: 4000,
      onRetry: (_principal, _error, pauseMs) => {
        retried.push(pauseMs);
        throw new Error("a listener's own affair");
      },
    });
    queue.add("a", entry(1));
    await queue.close();
    expect(taken).toEqual([1, 2000, 3000, 400, 800, 1600, 2000, 2000, 2000, 2000, 2000, 2000]);
    expect(retried).toEqual(taken.slice(1));
    expect(service.log("a").length).toBe(1);
  });

  it.each(["0", new Date(0).toUTCString()])(
    "makes its own pauses where it is asked to send again at once: %s",
    async (atOnce) => {
      const service = new FakeService();
      const { sleep, taken } = pauses();
      service.atOnce = atOnce;
      service.faults = () => (service.requests.length < 4 ? "503, again at once" : "none");
      const queue = await open(service, { sleep, random: () => 0, lingerMs: 1 });
      queue.add("a", entry(1));
      await queue.close();
      expect(taken).toEqual([1, 100, 200, 400]);
    },
  );

  it.each([
    ["told", true],
    ["not told", false],
  ])(
    "sends less at once where a limit that is %s takes no more, and more again later",
    async (_how, told) => {
      const service = new FakeService();
      const queue = await open(service, { batchEntries: 32, sleep: service.limit({ entries: 10, told }) });
      for (let n = 0; n < 40; n++) queue.add("a", entry(n));
      await queue.flush();
      expect(chunks(service, "a").map(Number)).toEqual(Array.from({ length: 40 }, (_, n) => n));
      // Where it is told, one batch is too large: the first, before anything is known of the limit.
      if (told) expect([service.requests[0], Math.max(...service.requests.slice(1))]).toEqual([32, 10]);
      service.limit(null);
      for (let n = 0; n < 80; n++) queue.add("a", entry(n));
      await queue.close();
      expect(service.requests.at(-2)).toBe(32);
    },
  );

  it("keeps to a limit of bytes whatever the script: a request counts in UTF-8", async () => {
    const service = new FakeService();
    const sleep = service.limit({ entries: 1000, bytes: 1000, told: true });
    const queue = await open(service, { batchEntries: 32, sleep });
    for (let n = 0; n < 40; n++)
      queue.add("a", { kind: "message.delta", action: { chunk: "封".repeat(60) } });
    await queue.close();
    expect(service.log("a").length).toBe(40);
    // The first is sent before anything is known of the limit.
    expect(Math.max(...service.bodies.slice(1))).toBeLessThanOrEqual(1000);
  });

  it("declares an entry as lost that is more than a limit ever takes, and sends what is behind it", async () => {
    const service = new FakeService();
    const sleep = service.limit({ entries: 1000, bytes: 500, told: true });
    const refused: unknown[] = [];
    const onRefused = (_principal: string, _text: string, problem: unknown) => refused.push(problem);
    const queue = await open(service, { sleep, onRefused });
    const large = { kind: "message.delta", action: { chunk: "x".repeat(500) } };
    for (const each of [entry(0), large, large, entry(1)]) queue.add("a", each);
    await queue.close();
    expect(chunks(service, "a")).toEqual(["0", "1"]);
    const losses = service.log("a").slice(1, -1);
    expect(losses.map(({ action }) => action.reason)).toEqual(losses.map(() => "too_large"));
    expect(declaredIn(losses)).toBe(2);
    expect(refused).toEqual([{ title: "slow down" }, { title: "slow down" }]);
    expect(queue.stats).toMatchObject({ stored: 2, refused: 2, waiting: 0 });
  });

  it("keeps what waits where a limit lets nothing through", async () => {
    const service = new FakeService();
    let attempts = 0;
    const onRetry = () => {
      attempts += 1;
      if (attempts === 3) service.limit(null);
    };
    const sleep = service.limit({ entries: 0, bytes: 0, told: true });
    const queue = await open(service, { sleep, onRetry });
    queue.add("a", entry(0));
    await queue.close();
    expect([chunks(service, "a"), attempts]).toEqual([["0"], 3]);
  });

  it("spreads its attempts by chance, never to less than what was asked for", async () => {
    for (const [random, expected] of [
      [0, [2000, 200]],
      [1, [2500, 400]],
    ] as const) {
      const service = new FakeService();
      const { sleep, taken } = pauses();
      const plan: Fault[] = ["503", "no answer, nothing stored"];
      service.faults = () => plan.shift() ?? "none";
      const queue = await open(service, { sleep, random: () => random, lingerMs: 1 });
      queue.add("a", entry(1));
      await queue.close();
      expect(taken.slice(1)).toEqual(expected);
    }
  });

  it("tells of a refused entry, and cuts a batch that is too large", async () => {
    const service = new FakeService();
    service.faults = () => "413 over 2";
    const refused: string[] = [];
    const queue = await open(service, {
      onRefused: (principal, text) => refused.push(`${principal} ${text}`),
    });
    for (let n = 0; n < 9; n++) queue.add("a", entry(n, n === 4 ? "bad" : "message.delta"));
    await queue.close();
    expect(chunks(service, "a")).toEqual(["0", "1", "2", "3", "5", "6", "7", "8"]);
    expect(refused.length).toBe(1);
    expect(refused[0]).toContain('"kind":"bad"');
    expect(queue.stats).toMatchObject({ stored: 8, refused: 1, declared: 1 });
  });

  it("closes in a given time with what could not be sent, and takes nothing after that", async () => {
    const service = new FakeService();
    service.faults = () => "503";
    const queue = await open(service);
    queue.add("a", entry(1));
    queue.add("a", entry(2));
    expect(await queue.close({ timeoutMs: 5 })).toEqual({ unsent: 2 });
    expect(() => queue.add("a", entry(3))).toThrow("closed");
  });
});

describe("a queue with a journal", () => {
  it("leaves nothing behind where it ended cleanly", async () => {
    const [service, journal] = [new FakeService(), new MemoryJournal()];
    const queue = await open(service, { journal });
    queue.add("a", entry(1));
    expect(journal.text).not.toBeNull();
    await queue.close();
    expect(journal.text).toBeNull();
    const next = await open(service, { journal });
    await next.close();
    expect(service.log("a").map(({ kind }) => kind)).toEqual(["message.delta"]);
  });

  it("declares a gap for each principal after an unclean end, before anything else, once", async () => {
    const [service, journal] = [new FakeService(), new MemoryJournal()];
    let now = 1_790_845_200_000;
    const first = await open(service, { journal, now: () => now });
    first.add("a", entry(1));
    first.add("b", entry(2));
    await first.flush();
    // It is not closed: the process is gone.
    now += 60_000;
    const second = await open(service, { journal, now: () => now });
    second.add("a", entry(3));
    second.add("c", entry(4));
    await second.flush();
    for (const principal of ["a", "b"]) {
      const gaps = service.log(principal).filter(({ kind }) => kind === "host.gap");
      expect(gaps.map(({ action }) => action)).toEqual([
        { epoch: expect.any(String), opened_at: "2026-10-01T09:00:00.000Z", reason: "unclean_shutdown" },
      ]);
      viewOf(JSON.stringify(gaps[0]), 1);
    }
    expect(service.log("a").map(({ kind }) => kind)).toEqual(["message.delta", "host.gap", "message.delta"]);
    expect(service.log("c").map(({ kind }) => kind)).toEqual(["message.delta"]);
    await second.close();
    expect(journal.text).toBeNull();
  });

  it.each<Fault>(["no answer, stored", "no answer, nothing stored"])(
    "keeps a gap that it could not send, and sends it under the same id: %s",
    async (fault) => {
      const [service, journal] = [new FakeService(), new MemoryJournal()];
      (await open(service, { journal })).add("a", entry(1));
      await new Promise((resolve) => setImmediate(resolve));
      service.log("a").length = 0;
      // The answer never comes; then the process is gone again.
      service.faults = () => fault;
      const second = await open(service, { journal });
      await new Promise((resolve) => setTimeout(resolve, 5));
      await second.close({ timeoutMs: 5 });
      service.faults = () => "none";
      const third = await open(service, { journal });
      await third.close();
      const gaps = service.log("a").filter(({ kind }) => kind === "host.gap");
      // The gap of the first end once; and that of the second, in which the principal was not used, not at all.
      expect(gaps.length).toBe(1);
    },
  );

  it.each([
    ["can't be read", "lane_marker_unavailable"],
    ["is no marker", "lane_marker_unreadable"],
  ])("declares a gap wherever it writes where what the run before left %s", async (how, reason) => {
    const [service, journal] = [new FakeService(), new MemoryJournal()];
    if (how === "is no marker") journal.text = '{"v":1,"epo';
    else journal.failing = "read";
    const queue = await open(service, { journal, principals: ["known"] });
    journal.failing = null;
    queue.add("a", entry(1));
    queue.add("a", entry(2));
    await queue.close();
    for (const principal of ["known", "a"]) {
      expect(service.log(principal)[0]).toMatchObject({
        kind: "host.gap",
        action: { epoch: "unknown", reason },
      });
    }
    expect(service.log("a").length).toBe(3);
  });

  it("sends nothing for a principal before the journal has it, and does not open where it can't be written", async () => {
    const [service, journal] = [new FakeService(), new MemoryJournal()];
    journal.failing = "write";
    await expect(open(service, { journal })).rejects.toThrow("disk");
    journal.failing = null;
    let failures = 0;
    const queue = await open(service, {
      journal,
      onRetry: () => {
        failures += 1;
        if (failures === 3) journal.failing = null;
      },
    });
    journal.failing = "write";
    queue.add("a", entry(1));
    await queue.flush();
    expect(failures).toBe(3);
    expect(journal.writes.at(-1)).toContain('"a"');
    expect(service.log("a").length).toBe(1);
  });
});
