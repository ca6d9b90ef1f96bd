import { describe, expect, it } from "vitest";
import type { CommitResult, KnownEntry, PendingRequest } from "../../durable-objects/principal-log/commit.ts";
import type { CommitQueueContext } from "../../durable-objects/principal-log/commit-queue.ts";
import { CommitQueue } from "../../durable-objects/principal-log/commit-queue.ts";
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import { IdIndex } from "../../durable-objects/principal-log/id-index.ts";
import { unavailable } from "../../durable-objects/principal-log/types.ts";
import { MAX_COMMIT_BYTES, MAX_COMMIT_ENTRIES, MAX_QUEUE_BYTES } from "../../shared/entry/limits.ts";

/** None of these logs has an entry. */
const noIds = (): string => "";

const MIB = 1024 * 1024;

function request(id: string, bytes = 10) {
  return { ids: [id], frame: encodeFrame([{ bytes: new Uint8Array(bytes), row: "" }]), atomic: false };
}

/** Commits whatever it is given, and notes how it was grouped. */
function queue(over: Partial<CommitQueueContext> = {}): { queue: CommitQueue; groups: string[][] } {
  const groups: string[][] = [];
  const ids = new IdIndex(noIds);
  let seq = 0;
  const context: CommitQueueContext = {
    ids: () => ids,
    epoch: () => 0,
    lookUp: async () => new Map(),
    commit: (group: readonly PendingRequest[]) => {
      groups.push(group.flatMap((one) => one.ids));
      const outcomes = group.map((one) =>
        one.ids.map(() => ({ status: "stored" as const, seq: ++seq, hash: "" })),
      );
      return { outcomes } as unknown as CommitResult;
    },
    refusal: () => null,
    reload: () => {},
    ...over,
  };
  return { queue: new CommitQueue(context), groups };
}

describe("the queue of a log", () => {
  it("commits together what arrives together, within the bounds of a commit", async () => {
    const { queue: one, groups } = queue();
    await Promise.all(Array.from({ length: MAX_COMMIT_ENTRIES + 1 }, (_, i) => one.add(request(`a-${i}`))));
    expect(groups.map((group) => group.length)).toEqual([MAX_COMMIT_ENTRIES, 1]);
    const { queue: two, groups: large } = queue();
    await Promise.all(
      Array.from({ length: 10 }, (_, i) => two.add(request(`b-${i}`, MAX_COMMIT_BYTES / 4 - 4))),
    );
    expect(large.map((group) => group.length)).toEqual([4, 4, 2]);
  });

  it("is full at its bound, those that wait for D1 included, and takes more when they are settled", async () => {
    let answer: () => void = () => {};
    const ids = new IdIndex(noIds);
    ids.setCompleteFrom(Number.MAX_SAFE_INTEGER, 1);
    const answered = new Promise<ReadonlyMap<string, KnownEntry>>((resolve) => {
      answer = () => resolve(new Map());
    });
    const { queue: full } = queue({ ids: () => ids, lookUp: () => answered });
    const waiting = Array.from({ length: MAX_QUEUE_BYTES / MIB }, (_, i) =>
      full.add(request(`w-${i}`, MIB - 4)),
    );
    expect(await full.add(request("one-more"))).toMatchObject({ ok: false, code: "overloaded" });
    answer();
    for (const outcome of await Promise.all(waiting)) expect(outcome).toMatchObject([{ status: "stored" }]);
    expect(await full.add(request("one-more"))).toMatchObject([{ status: "stored" }]);
  });

  it("gives its room back where a request is refused", async () => {
    const ids = new IdIndex(noIds);
    ids.setCompleteFrom(Number.MAX_SAFE_INTEGER, 1);
    const failing = async () => {
      throw new Error("D1_ERROR");
    };
    const { queue: one } = queue({ ids: () => ids, lookUp: failing });
    for (let i = 0; i < 40; i++) {
      expect(await one.add(request(`r-${i}`, MIB))).toMatchObject({ ok: false, code: "index-unavailable" });
    }
  });

  it("answers everybody where memory can't be taken over from storage again", async () => {
    const { queue: broken } = queue({
      commit: () => {
        throw new Error("database is locked");
      },
      reload: () => {
        throw new Error("database is locked");
      },
    });
    const outcomes = await Promise.all(["a", "b", "c"].map((id) => broken.add(request(id))));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ ok: false, code: "storage-failed" });
  });

  it("has requests ask again whose ids a reload forgot, before each is committed alone", async () => {
    let ids = new IdIndex(noIds);
    const steps: string[] = [];
    const { queue: one } = queue({
      ids: () => ids,
      lookUp: async (asked) => {
        steps.push(`look up ${asked.join()}`);
        return new Map();
      },
      commit: (group) => {
        steps.push(`commit ${group.flatMap((request) => request.ids).join()}`);
        if (group.length > 1) throw new Error("one of them is at fault");
        return { outcomes: [[{ status: "stored", seq: 1, hash: "" }]] } as unknown as CommitResult;
      },
      reload: () => {
        if (ids.evictions > 0) return;
        ids = new IdIndex(noIds, 0, ids.evictions + 1);
        ids.setCompleteFrom(Number.MAX_SAFE_INTEGER, 1);
      },
    });
    await Promise.all([one.add(request("a")), one.add(request("b"))]);
    expect(steps).toEqual(["commit a,b", "look up a", "look up b", "commit a,b", "commit a", "commit b"]);
  });

  it("commits nothing while the log refuses everything", async () => {
    const { queue: stopped, groups } = queue({ refusal: () => unavailable("log-stopped", "stopped") });
    expect(await stopped.add(request("a"))).toMatchObject({ ok: false, code: "log-stopped" });
    expect(groups).toEqual([]);
  });
});
