import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONTENT_LIMITS } from "../../durable-objects/content/archive.ts";
import { ID_LIMITS } from "../../durable-objects/principal-log/id-index.ts";
import { PRUNE_LIMITS } from "../../durable-objects/principal-log/prune.ts";
import { erase, settle } from "./content/support.ts";
import {
  emptyIndexOf,
  indexOf,
  lowerBounds,
  prunedTo,
  readUntilFilled,
  restoreBounds,
  stopPruning,
} from "./pruned-log.ts";
import { entries, entry, newTenant, TestLog } from "./support.ts";

const content = { ...CONTENT_LIMITS };
beforeEach(lowerBounds);
afterEach(() => {
  restoreBounds();
  Object.assign(CONTENT_LIMITS, content);
});

const Value = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constant({ $commitment: "ab".repeat(32) }),
);
const Tool = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
  fc.constantFrom("read_file", '<&>\u2028\u0007"\\', { $commitment: "cd".repeat(32) }),
);
const Started = fc.record({ kind: fc.constant("tool.call.started"), tool: Tool, args: Value });
const Ended = fc.record({
  kind: fc.constant("tool.call.completed"),
  tool: Tool,
  status: fc.constantFrom("success", "failure", "unknown"),
  result: Value,
});
const Envelope = fc.record(
  {
    session: fc.constantFrom("s1", "s2"),
    run: fc.constantFrom("r1", "r2"),
    step: fc.constantFrom("p1", "p2"),
  },
  { requiredKeys: [] },
);
const Entry = fc.tuple(fc.oneof(Started, Ended), Envelope);

/** Which entry, as a part of the way to the last one. */
const Erasure = fc.record({
  erase: fc.double({ min: 0, max: 1, noNaN: true }),
  fields: fc.constantFrom(null, ["action.args"], ["action.tool"], ["outcome.result", "action.tool"]),
});

/** What is done to the log, in this order. */
const Step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ append: fc.array(Entry, { minLength: 1, maxLength: 60 }) }) },
  { weight: 3, arbitrary: Erasure },
  { weight: 1, arbitrary: fc.constant("settle" as const) },
  { weight: 1, arbitrary: fc.constant("restart" as const) },
);

function entryOf([one, envelope]: [Record<string, unknown>, Record<string, unknown>]): Record<
  string,
  unknown
> {
  const { kind, tool, args, status, result } = one;
  const sections =
    kind === "tool.call.started"
      ? { action: { tool, args } }
      : { action: { tool }, outcome: { status, result } };
  const { run: _run, step: _step, ...plain } = entry({ kind, ...sections });
  return { ...plain, ...envelope };
}

describe("any log", () => {
  it("gives D1 the same rows from R2 as from its segments", { timeout: 300_000 }, async () => {
    const tenant = await newTenant();
    let runs = 0;
    const steps = fc.array(Step, { minLength: 25, maxLength: 40 });
    const bounds = fc.record({
      objects: fc.integer({ min: 20, max: 300 }),
      step: fc.integer({ min: 1, max: 120 }),
    });
    await fc.assert(
      fc.asyncProperty(
        steps,
        bounds,
        fc.array(Erasure, { maxLength: 4 }),
        async (todo, { objects, step }, late) => {
          runs += 1;
          stopPruning();
          CONTENT_LIMITS.entries = objects;
          const log = new TestLog(tenant, `random-${runs}`);
          let size = 0;
          const eraseOne = async (one: { erase: number; fields: readonly string[] | null }) => {
            const seq = 1 + Math.floor(one.erase * (size - 1));
            const answer = await erase(log, { seq, ...(one.fields === null ? {} : { fields: one.fields }) });
            expect([200, 202]).toContain(answer.status);
          };
          for (const one of todo) {
            if (one === "settle") {
              if (size > 0) await settle(log);
            } else if (one === "restart") {
              if (size > 0) await log.evict();
            } else if ("append" in one) {
              const sent = one.append.map((each) => entryOf(each as never));
              const { status, body } = await log.append(sent);
              expect([201, 207, 422]).toContain(status);
              size = Math.max(size, (body.head as unknown as { size?: number } | undefined)?.size ?? 0);
            } else if (size > 0) {
              await eraseOne(one);
            }
          }
          // As many as have all that came before in full bundles, and behind what stays.
          for (let i = 0; i < 4; i++) await log.append(entries(130));
          await settle(log);
          for (const one of size > 0 ? late.slice(0, 2) : []) await eraseOne(one);
          await settle(log);
          lowerBounds();
          ID_LIMITS.remembered = 10;
          PRUNE_LIMITS.entries = step;
          await log.evict();
          await log.inside((state) => state.storage.setAlarm(Date.now()));
          for (let round = 0; round < 5; round++) await settle(log);
          const { seq } = await prunedTo(log);
          expect(seq).toBeGreaterThanOrEqual(size);
          for (const one of size > 0 ? late.slice(2) : []) await eraseOne(one);
          await settle(log);
          // What D1 has come to hold so far it has from the segments, and from erasures.
          const before = await indexOf(log);
          await emptyIndexOf(log);
          await readUntilFilled(log);
          await settle(log);
          expect(await indexOf(log)).toEqual(before);
          await log.check();
        },
      ),
      { numRuns: 4, endOnFailure: true },
    );
  });
});
