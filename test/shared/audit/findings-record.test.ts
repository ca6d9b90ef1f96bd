import { describe, expect, it } from "vitest";
import type { Finding } from "../../../shared/audit/finding.ts";
import { found, listOf } from "./findings-support.ts";
import { type Parts, SECOND, TestLog } from "./support.ts";

describe("clocks", () => {
  const at = (seconds: number): Parts => ({
    occurred_at: new Date(1_790_845_200_000 + seconds * 1000).toISOString(),
    action: { chunk: "x" },
  });

  it("go on, or stand still", () => {
    const log = new TestLog();
    for (const seconds of [1, 1, 2]) log.add("message.delta", at(seconds));
    expect(found(log.entries)).toEqual([]);
  });

  it("of the sender go back: a warning for each time", () => {
    const log = new TestLog();
    for (const seconds of [5, 3, 4, 2]) log.add("message.delta", at(seconds));
    const { findings } = listOf(log.entries);
    expect(findings.map(({ entries }) => entries.map(({ seq }) => seq))).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(new Set(findings.map(({ kind, severity }) => `${kind} ${severity}`))).toEqual(
      new Set(["occurred_clock_regression warning"]),
    );
  });

  it("of the sender are compared within the run", () => {
    const log = new TestLog();
    log.add("host.gap", { ...at(9), run: null, action: { epoch: "e", reason: "unclean_shutdown" } });
    log.add("message.delta", at(1));
    expect(found(log.entries)).toEqual([]);
  });

  it("of the log go back: a failure", () => {
    const log = new TestLog();
    const first = log.add("message.delta", at(1));
    const second = log.add("message.delta", at(2));
    const back = { ...second, recorded_at: first.recorded_at - SECOND };
    expect(listOf([first, back]).findings.map(({ kind, severity }) => [kind, severity])).toEqual([
      ["recorded_clock_regression", "failure"],
    ]);
  });
});

describe("declared losses", () => {
  const loss: Parts = { action: { calls: { count: 3 }, reason: "queue_full" } };
  const gap: Parts = { action: { epoch: "e1", reason: "unclean_shutdown" } };

  it("are found in the run, and between its entries in no run", () => {
    const log = new TestLog();
    log.add("run.created");
    log.add("host.loss", loss);
    log.add("host.gap", { ...gap, run: null });
    log.add("run.completed");
    expect(found(log.entries)).toEqual([
      ["declared_loss", 2],
      ["declared_gap", 3],
    ]);
  });

  it("before the run, after its end and of other runs are not its own", () => {
    const log = new TestLog();
    log.add("host.gap", { ...gap, run: null });
    log.add("run.created");
    log.add("host.loss", { ...loss, run: "r2" });
    log.add("run.completed");
    log.add("host.gap", { ...gap, run: null });
    expect(found(log.entries)).toEqual([]);
  });

  it("after a run that has no end are", () => {
    const log = new TestLog();
    log.add("run.created");
    log.add("host.gap", { ...gap, run: null });
    expect(found(log.entries)).toEqual([["declared_gap", 2]]);
  });
});

describe("the list of findings", () => {
  it("names each entry by seq and hash, with a message that is the kind's", () => {
    const log = new TestLog();
    const only = log.add("host.loss", { action: { calls: { count: 3 }, reason: "queue_full" } });
    const expected: Finding = {
      kind: "declared_loss",
      severity: "failure",
      message: "the host declares calls that it did not record one by one",
      entries: [{ seq: only.seq, hash: only.hash }],
    };
    expect(listOf(log.entries).findings).toEqual([expected]);
  });

  it("is bounded, and counts what it does not hold", () => {
    const log = new TestLog();
    const one = log.add("host.loss", { action: { calls: { count: 3 }, reason: "queue_full" } });
    const many = Array.from({ length: 1500 }, (_, index) => ({ ...one, seq: index + 1 }));
    const list = listOf(many);
    expect(list.findings.length).toBe(1000);
    expect(list.counts).toEqual({ declared_loss: 1500 });
    expect(list.failures).toBe(1500);
  });

  it("refuses entries out of order", () => {
    const log = new TestLog();
    const first = log.add("run.created");
    const second = log.add("run.completed");
    expect(() => listOf([second, first])).toThrow(/order/);
    expect(() => listOf([first, first])).toThrow(/order/);
  });
});

describe("folded calls", () => {
  const calls = (count: number, more: object = {}): Parts => ({
    action: {
      calls: {
        ...{
          count,
          first_at: "2026-11-20T09:14:01Z",
          last_at: "2026-11-20T09:14:02Z",
          fold: "ab".repeat(32),
        },
        tally: [{ class: "file.read", outcome: "ok", count: 2 }],
        ...more,
      },
    },
  });

  it("add up, or are found", () => {
    const log = new TestLog();
    log.add("host.run", calls(2));
    log.add("host.run", calls(3));
    log.add("host.run", calls(2, { fold: null }));
    expect(found(log.entries)).toEqual([
      ["host_run_contradicts_itself", 2],
      ["host_run_contradicts_itself", 3],
    ]);
  });

  it("of another run are not looked at", () => {
    const log = new TestLog();
    log.add("run.created");
    log.add("host.run", { ...calls(3), run: "another" });
    expect(found(log.entries)).toEqual([]);
  });
});
