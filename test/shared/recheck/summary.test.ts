import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecheckSummary } from "../../../shared/recheck/summary.ts";
import { BoundedGroups, BoundedList } from "../../../shared/recheck/summary-bounded.ts";
import { severityOf } from "../../../shared/recheck/summary-cells.ts";
import { passesSummaryGate } from "../../../shared/recheck/summary-gate.ts";
import { summaryJson } from "../../../shared/recheck/summary-json.ts";
import { runLine } from "../../../shared/recheck/summary-line.ts";
import { summaryText } from "../../../shared/recheck/summary-text.ts";
import { empty, POLICY, runOf, someRuns, summaryOf } from "./summary-support.ts";

const WHOLE = { ended: true, withoutRuns: [] };

describe("a summary", () => {
  it("is the same in any order of its runs, and however they are put together", () => {
    fc.assert(
      fc.property(someRuns, fc.infiniteStream(fc.nat()), fc.nat(8), (runs, keys, at) => {
        const whole = summaryOf(runs);
        const keyed = runs.map((run) => ({ run, key: keys.next().value as number }));
        const shuffled = keyed.sort((a, b) => a.key - b.key).map(({ run }) => run);
        expect(summaryOf(shuffled).state()).toEqual(whole.state());
        const [left, right] = [summaryOf(runs.slice(0, at)), summaryOf(runs.slice(at))];
        const untouched = right.state();
        right.merge(left);
        expect(right.state()).toEqual(whole.state());
        const again = summaryOf(runs.slice(0, at));
        again.merge(new RecheckSummary(JSON.parse(JSON.stringify(untouched))));
        expect(again.state()).toEqual(whole.state());
      }),
    );
  });

  it("has totals that add up: of the matrix, of the tools and of the principals", () => {
    fc.assert(
      fc.property(someRuns, (runs) => {
        const json = summaryJson(summaryOf(runs));
        const all = runs.flatMap(({ report }) => report.evaluations);
        const { totals } = json;
        expect(totals.evaluated).toBe(all.length);
        expect(totals.same + totals.different).toBe(json.rechecked);
        expect(
          totals.same + totals.different + totals.not_a_policy_evaluation + totals.not_recheckable.total,
        ).toBe(totals.evaluated);
        const reasons = Object.values(totals.not_recheckable.by_reason);
        expect(reasons.reduce((a, b) => a + b, 0)).toBe(totals.not_recheckable.total);
        const sums = (cells: readonly { same: number; different: number }[]) =>
          cells.reduce<readonly number[]>(
            ([same = 0, different = 0], cell) => [same + cell.same, different + cell.different],
            [0, 0],
          );
        expect(sums(json.transitions)).toEqual([totals.same, totals.different]);
        for (const groups of [json.by_tool, json.by_principal]) {
          expect(groups.others).toBeNull();
          expect(sums(groups.groups)).toEqual([totals.same, totals.different]);
          const skipped = groups.groups.reduce((sum, group) => sum + group.not_recheckable, 0);
          expect(skipped).toBe(totals.not_recheckable.total);
        }
        const newly = all.filter(
          ({ result, recorded, rechecked }) =>
            result === "different" &&
            rechecked?.outcome === "allow" &&
            ["deny", "abort", "require_approval"].includes(recorded.outcome),
        );
        expect(json.new_allows).toMatchObject({ total: newly.length, cut: 0 });
        expect(json.new_allows.groups.reduce((sum, { count }) => sum + count, 0)).toBe(newly.length);
        expect(json.worst.differences.length + json.worst.cut).toBe(totals.different);
      }),
    );
  });

  it("shows deny to allow where there is none, and before everything else where there is", () => {
    const none = summaryJson(summaryOf([runOf("p", "r", [{}])]));
    expect(none.transitions[0]).toEqual({ recorded: "deny", rechecked: "allow", same: 0, different: 0 });
    const differ = (recorded: string, rechecked: string | null, tool = "t") =>
      ({ recorded, rechecked, tool, result: "different" }) as const;
    const summary = summaryOf([
      runOf("p", "r1", [
        differ("allow", "deny"),
        differ("require_approval", "allow"),
        differ("allow", null),
        differ("require_approval", "require_approval"),
        differ("deny", "require_approval"),
        differ("abort", "allow"),
      ]),
      runOf("q", "r2", [{}, differ("deny", "allow", "wipe")]),
    ]);
    const json = summaryJson(summary);
    const moves = json.worst.differences.map(({ recorded, rechecked }) => `${recorded}>${rechecked}`);
    expect(moves).toEqual([
      "deny>allow",
      "abort>allow",
      "require_approval>allow",
      "deny>require_approval",
      "allow>none",
      "require_approval>require_approval",
      "allow>deny",
    ]);
    expect(json.by_principal.groups.map(({ name }) => name)).toEqual(["q", "p"]);
    expect(json.new_allows.groups[0]).toEqual({
      recorded: "deny",
      principal: "q",
      tool: "wipe",
      count: 1,
      run: "r2",
      seq: 2,
    });
    expect(summaryText(json).split("\n").slice(0, 3)).toEqual([
      `7 of 8 re-checked evaluations differ in 2 runs; policy unchanged: "${POLICY}"; recorded specs`,
      "NEW ALLOW deny -> allow q wipe: 1, the first in run r2 at seq 2",
      "NEW ALLOW abort -> allow p t: 1, the first in run r1 at seq 6",
    ]);
  });

  it("never cuts what is newly allowed for the sake of other differences, and counts what it cuts", () => {
    const summary = empty();
    const stricter = Array.from(
      { length: 300 },
      () => ({ recorded: "allow", rechecked: "deny", result: "different" }) as const,
    );
    for (let i = 0; i < 10; i++) summary.add(runOf(`a${i}`, "r", stricter));
    for (let i = 0; i < 1200; i++)
      summary.add(runOf("many", `r${i}`, [{ tool: `tool-${String(i).padStart(4, "0")}` }]));
    const wiped = { tool: "zzz", recorded: "deny", rechecked: "allow", result: "different" } as const;
    summary.add(runOf("zz", "last", [wiped]));
    const json = summaryJson(summary);
    expect(json.worst.differences[0]).toMatchObject({ principal: "zz", run: "last", tool: "zzz" });
    expect(json.worst.differences.length + json.worst.cut).toBe(3001);
    expect(json.by_principal.groups[0]?.name).toBe("zz");
    expect(json.by_tool.groups.length).toBe(50);
    const { others } = json.by_tool;
    const deny = others?.transitions.find(
      ({ recorded, rechecked }) => recorded === "deny" && rechecked === "allow",
    );
    // The tool is one of 1,202: no longer counted by itself, and still not hidden.
    expect(deny).toMatchObject({ different: 1 });
    expect(json.new_allows).toMatchObject({ total: 1, cut: 0, groups: [{ tool: "zzz" }] });
    const counted = json.by_tool.groups.reduce((sum, group) => sum + group.same + group.different, 0);
    expect(counted + (others?.same ?? 0) + (others?.different ?? 0)).toBe(json.rechecked);
    expect(JSON.stringify(summary.state()).length).toBeLessThan(300_000);
  });

  it("lists every principal and tool that has a newly allowed call, however many there are", () => {
    const allowed = { recorded: "deny", rechecked: "allow", result: "different" } as const;
    const again = [allowed, allowed].map((each) => ({ ...each, tool: "t0" }));
    const first = summaryJson(summaryOf([runOf("p0", "r9", again), runOf("p0", "r10", again)]));
    expect(first.new_allows.groups).toMatchObject([{ count: 4, run: "r10", seq: 1 }]);
    const runs = Array.from({ length: 60 }, (_, i) => runOf(`p${i}`, "r", [{ ...allowed, tool: `t${i}` }]));
    const json = summaryJson(summaryOf([...runs, runOf("q", "r", [{ tool: "u" }])]));
    for (const { groups, others } of [json.by_tool, json.by_principal]) {
      expect([groups.length, others?.same]).toEqual([60, 1]);
    }
    expect(summaryText(json).match(/^NEW ALLOW/gm)).toHaveLength(60);
  });

  it("keeps the identity's three answers over runs, and refuses another policy's sum", () => {
    const identity = (...ids: string[]) =>
      summaryOf(ids.map((policyId, i) => runOf("p", `r${i}`, [{ policyId }]))).identity;
    expect([identity(), identity(POLICY), identity(POLICY, "old"), identity("old", "")]).toEqual([
      "unknown",
      "unchanged",
      "changed",
      "unknown",
    ]);
    expect(() => empty().merge(new RecheckSummary({ policyId: "x", specSource: "recorded" }))).toThrow(
      expect.objectContaining({ code: "summary-policy" }),
    );
  });

  it("counts only what is selected, and says which runs have nothing of it", () => {
    const summary = empty();
    const run = runOf("p", "r", [{ tool: "a" }, { tool: "b", result: "different", rechecked: "deny" }]);
    summary.add({ ...run, selects: ({ tool }) => tool === "a" });
    summary.add({ ...runOf("p", "r2", [{ tool: "b" }]), selects: ({ tool }) => tool === "a" });
    expect(summaryJson(summary)).toMatchObject({
      runs: { rechecked: 1, without_evaluations: 1 },
      totals: { evaluated: 1, same: 1, different: 0 },
    });
  });

  it("cuts what a record chose to a bounded length", () => {
    const summary = summaryOf([
      runOf(
        "p",
        "r",
        [{ tool: "x".repeat(60_000), result: "different", rechecked: "deny" }],
        ["n".repeat(60_000)],
      ),
    ]);
    expect(JSON.stringify(summary.state()).length).toBeLessThan(4000);
    const line = runLine(
      "p",
      runOf(
        "p",
        "r",
        Array.from({ length: 700 }, () => ({ result: "different", rechecked: "deny" }) as const),
      ).report,
    );
    expect(JSON.parse(line.text)).toMatchObject({ different: 700, cut: 200 });
    expect(line.differs).toBe(true);
  });
});

describe("the gate over a summary", () => {
  const gates = (summary: RecheckSummary, coverage = WHOLE as { ended: boolean; withoutRuns: string[] }) => [
    passesSummaryGate("strict", summary, coverage),
    passesSummaryGate("proxy", summary, coverage),
  ];

  it("never passes an empty selection, or one of which nothing was re-checked", () => {
    expect(gates(empty())).toEqual([false, false]);
    expect(gates(summaryOf([runOf("p", "r", [])]))).toEqual([false, false]);
    expect(gates(summaryOf([runOf("p", "r", [{ result: "not_recheckable" }])]))).toEqual([false, false]);
    expect(gates(summaryOf([runOf("p", "r", [{ result: "not_a_policy_evaluation" }])]))).toEqual([
      false,
      false,
    ]);
  });

  it("passes what is all the same; strict only where nothing was left out", () => {
    expect(gates(summaryOf([runOf("p", "r", [{}])]))).toEqual([true, true]);
    expect(gates(summaryOf([runOf("p", "r", [{}, { result: "not_recheckable" }])]))).toEqual([false, true]);
    expect(gates(summaryOf([runOf("p", "r", [{}])]), { ended: true, withoutRuns: ["q"] })).toEqual([
      false,
      true,
    ]);
    expect(gates(summaryOf([runOf("p", "r", [{}, { result: "different", rechecked: "deny" }])]))).toEqual([
      false,
      false,
    ]);
  });

  it("passes neither with a run that failed, nor before the end", () => {
    const failed = summaryOf([runOf("p", "r", [{}])]);
    failed.addFailure({ principal: "p", run: "r2", code: "unavailable" });
    expect(gates(failed)).toEqual([false, false]);
    expect(summaryJson(failed)).toMatchObject({ complete: false, runs: { failed: 1 } });
    expect(gates(summaryOf([runOf("p", "r", [{}])]), { ended: false, withoutRuns: [] })).toEqual([
      false,
      false,
    ]);
  });
});

describe("what is bounded", () => {
  it("keeps the smallest keys with exact values, and the sum of the others, in any order", () => {
    const additions = fc.array(fc.tuple(fc.constantFrom(..."abcdefgh"), fc.integer({ min: 1, max: 9 })), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(additions, fc.nat(40), (all, at) => {
        const make = (some: readonly (readonly [string, number])[]) => {
          const groups = new BoundedGroups<number>(3, (a, b) => a + b);
          for (const [key, value] of some) groups.add(key, value);
          return groups;
        };
        const totals = new Map<string, number>();
        for (const [key, value] of all) totals.set(key, (totals.get(key) ?? 0) + value);
        const ordered = [...totals].sort(([a], [b]) => (a < b ? -1 : 1));
        const rest = ordered.slice(3).reduce((sum, [, value]) => sum + value, 0);
        const expected = { groups: ordered.slice(0, 3), beyond: rest === 0 ? null : rest };
        expect(make(all).state()).toEqual(expected);
        expect(make(all.toReversed()).state()).toEqual(expected);
        const merged = make(all.slice(0, at));
        merged.merge(make(all.slice(at)));
        expect(merged.state()).toEqual(expected);
      }),
    );
  });

  it("keeps the first of an order", () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (numbers) => {
        const list = new BoundedList<number>(5, (a, b) => a - b);
        for (const number of numbers) list.add(number);
        expect(list.items).toEqual(numbers.toSorted((a, b) => a - b).slice(0, 5));
      }),
    );
  });

  it("ranks a call that was denied and is allowed as the worst of all transitions", () => {
    const sides = ["allow", "require_approval", "deny", "abort", "none", "other"] as const;
    const ranks = sides.flatMap((a) => sides.map((b) => [severityOf(a, b), a, b] as const));
    expect(ranks.filter(([rank]) => rank === 0)).toEqual([[0, "deny", "allow"]]);
  });
});
