import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoundedMap } from "../../../shared/audit/bounded-map.ts";
import { RunFindings } from "../../../shared/audit/findings.ts";
import { NumberRanges } from "../../../shared/audit/number-ranges.ts";
import type { EntryView, FieldViews } from "../../../shared/entry/view.ts";
import { hashOf, TestLog } from "./support.ts";

const H = "cd".repeat(32);

describe("a bounded map", () => {
  it("holds what was set last, forgets the oldest, and tells what it forgot", () => {
    const operations = fc.array(fc.record({ key: fc.nat(6), isDelete: fc.boolean() }), { maxLength: 60 });
    fc.assert(
      fc.property(operations, fc.integer({ min: 1, max: 5 }), (all, max) => {
        const forgotten: number[] = [];
        const expected: number[] = [];
        const map = new BoundedMap<number, number>(max, (key, value) => {
          expect(value).toBe(key);
          forgotten.push(key);
        });
        const model = new Map<number, number>();
        for (const { key, isDelete } of all) {
          if (isDelete) {
            map.delete(key);
            model.delete(key);
            continue;
          }
          if (!model.has(key) && model.size >= max) {
            const oldest = [...model.keys()][0] ?? -1;
            model.delete(oldest);
            expected.push(oldest);
          }
          map.set(key, key);
          model.set(key, key);
        }
        expect([...map.values()]).toEqual([...model.values()]);
        for (let key = 0; key <= 6; key += 1) expect(map.get(key)).toBe(model.get(key));
        expect(forgotten).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("number ranges", () => {
  it("know which numbers were added, as a set does, and hold them as few ranges", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40)), (numbers) => {
        const ranges = new NumberRanges<number>();
        const set = new Set<number>();
        for (const number of numbers) {
          expect(ranges.add(number, number)).toBe(!set.has(number));
          set.add(number);
        }
        for (let number = 0; number <= 41; number += 1) expect(ranges.has(number)).toBe(set.has(number));
        const starts = [...set].filter((number) => !set.has(number - 1)).sort((a, b) => a - b);
        expect(ranges.ranges.map(({ from }) => from)).toEqual(starts);
        for (const { from, to, low, high } of ranges.ranges) expect([low, high]).toEqual([from, to]);
      }),
    );
  });
});

/** Entries of one kind whose fields are those of the first, but for one that counts. */
function* many(first: EntryView, count: number, field: (n: number) => FieldViews): Generator<EntryView> {
  for (let n = 0; n < count; n += 1) {
    const seq = first.seq + n;
    yield { ...first, seq, hash: hashOf(seq), call: `c${n}`, step: null, action: field(n) };
  }
}

function numbered(entry: EntryView, field: string, value: (n: number) => string): (n: number) => FieldViews {
  return (n) => new Map([...entry.action, [field, { text: value(n) }]]);
}

function findingsOf(entries: Iterable<EntryView>) {
  const findings = new RunFindings("r1", { context: "log" });
  for (const entry of entries) findings.add(entry);
  return findings.finish();
}

describe("what is held of a run is bounded, and what was not held is said", () => {
  const sample = (): EntryView =>
    new TestLog().add("http.request", {
      action: {
        sequence: 1,
        method: "GET",
        host: "h",
        port: 1,
        path_hash: H,
        headers_hash: H,
        body_hash: H,
        body_len: 0,
        redirect_hop: 0,
      },
    });

  it("for open HTTP requests", () => {
    const request = sample();
    const list = findingsOf(
      many(
        request,
        20_000,
        numbered(request, "sequence", (n) => String(n + 1)),
      ),
    );
    expect(list.notCheckedList.map(({ why }) => why)).toEqual(["limit"]);
    expect(list.counts).toEqual({ http_request_without_response: 16_384 });
  });

  it("for HTTP sequence numbers without order", () => {
    const request = sample();
    const list = findingsOf(
      many(
        request,
        40_000,
        numbered(request, "sequence", (n) => String(2 * n + 1)),
      ),
    );
    expect(list.notCheckedList.map(({ what }) => what)).toContain(
      "HTTP sequence numbers out of order, beyond 16384 ranges",
    );
  });

  it("for approvals", () => {
    const request = new TestLog().add("approval.requested", {
      action: { approval_id: "a", kind: "k", capability: {}, presentation: {}, hash: H },
    });
    const list = findingsOf(
      many(
        request,
        5000,
        numbered(request, "approval_id", (n) => `"a${n}"`),
      ),
    );
    expect(list.notCheckedList).toEqual([{ what: "approvals beyond 4096", why: "limit" }]);
  });

  it("for the text of approvals", () => {
    const capability = { note: "x".repeat(1_000_000) };
    const request = new TestLog().add("approval.requested", {
      action: { approval_id: "a", kind: "k", capability, presentation: {}, hash: H },
    });
    const list = findingsOf(
      many(
        request,
        6,
        numbered(request, "approval_id", (n) => `"a${n}"`),
      ),
    );
    expect(list.notCheckedList).toEqual([{ what: "text of approvals beyond 4194304", why: "limit" }]);
  });

  it("for denied evaluations; those that allow are forgotten without a word", () => {
    for (const [outcome, limits] of [
      ["deny", ["limit"]],
      ["allow", []],
    ] as const) {
      const evaluation = new TestLog().add("policy.evaluated", {
        action: { tool: "t", args: {}, decision: { outcome } },
      });
      const list = findingsOf(many(evaluation, 66_000, () => evaluation.action));
      expect(list.notCheckedList.map(({ why }) => why)).toEqual(limits);
    }
  });

  it("for capabilities that are used before their grant", () => {
    const use = new TestLog().add("file.read", {
      action: { path: "/x" },
      authorization: { type: "capability", token_id: "t" },
    });
    const list = findingsOf(many(use, 5000, () => use.action));
    expect(list.notCheckedList.map(({ why }) => why)).toEqual(["limit"]);
    expect(list.counts).toEqual({ capability_not_granted: 4096 });
  });
});
