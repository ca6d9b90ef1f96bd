import { describe, expect, it } from "vitest";
import { auditJson, exitCodeOf } from "../../../shared/audit/report.ts";
import { auditText } from "../../../shared/audit/report-text.ts";
import { RunAudit, refusedAudit } from "../../../shared/audit/run-audit.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { hashOf, TestLog, without } from "./support.ts";

const TOOLS = [{ tool_name: "read", description: "d", parameters: {}, source: "builtin" }];

function log(more: (log: TestLog) => void = () => {}): EntryView[] {
  const one = new TestLog();
  one.add("run.created", {
    occurred_at: "2026-09-29T10:00:00Z",
    action: { authorization: { resources: { tools: TOOLS } } },
  });
  more(one);
  one.add("run.completed");
  one.add("run.status", { action: { status: "completed" } });
  return one.entries;
}

function report(entries: readonly EntryView[], size = 0) {
  const audit = new RunAudit("r1", { mode: "strict" }, { context: "log" });
  for (const entry of entries) audit.add(entry);
  return audit.finish(size === 0 ? null : { seq: size, hash: hashOf(size), size, root: "ab".repeat(32) });
}

const loss = (one: TestLog): void => {
  one.add("host.loss", { action: { calls: { count: 3 }, reason: "queue_full" } });
};

describe("the report", () => {
  it("has the ledger's keys first, and then its own, in the documented order", () => {
    expect(Object.keys(JSON.parse(auditJson(report(log(), 3))))).toEqual([
      "status",
      "reason",
      "run",
      "metrics",
      "expected_tool_call",
      "failures",
      "warnings",
      "findings",
      "finding_counts",
      "not_checked",
      "not_checked_count",
      "notes",
      "context",
      "entries",
      "head",
      "covered",
    ]);
    expect(Object.keys(JSON.parse(auditJson(refusedAudit("x"))))).not.toContain("run");
  });

  it("passes with exit code 0, and says which head covers its entries", () => {
    const passed = report(log(), 3);
    expect(exitCodeOf(passed)).toBe(0);
    expect(passed).toMatchObject({ status: "pass", covered: true, context: "log", head: { size: 3 } });
    expect(report(log(), 2).covered).toBe(false);
    expect(report(log()).covered).toBe(false);
  });

  it("counts the entries of the run, and not those of its context", () => {
    const one = new TestLog();
    const code = { run: null, action: { code_id: "k" } };
    one.add("code.installed", code);
    one.add("run.created");
    one.add("code.installed", code);
    one.add("run.completed");
    one.add("code.installed", code);
    expect(report(one.entries).entries).toEqual({
      run: "r1",
      first: { seq: 2, hash: hashOf(2) },
      last: { seq: 4, hash: hashOf(4) },
      count: 2,
    });
  });

  it("fails with exit code 1 where a finding fails it, though its ledger passes", () => {
    const failed = report(log(loss));
    expect(exitCodeOf(failed)).toBe(1);
    expect(failed).toMatchObject({
      status: "fail",
      reason: "Agent run ledger audit passed. 1 further finding(s) fail it.",
      failures: [],
      finding_counts: { declared_loss: 1 },
    });
  });

  it("does not fail where it warns", () => {
    const warned = report(
      log((one) => {
        one.add("message.delta", { occurred_at: "2026-09-29T09:00:00Z", action: { chunk: "x" } });
      }),
    );
    expect(warned).toMatchObject({ status: "pass", finding_counts: { occurred_clock_regression: 1 } });
  });

  it("is an env_issue with exit code 2 where something could not be checked, unless it fails anyway", () => {
    const cut = (entries: EntryView[]) => entries.map((entry) => without(entry, "authorization"));
    const open = report(cut(log()));
    expect(exitCodeOf(open)).toBe(2);
    expect(open).toMatchObject({
      status: "env_issue",
      reason: "Agent run ledger audit passed. It is not complete: 1 thing(s) could not be checked.",
    });
    expect(report(cut(log(loss))).status).toBe("fail");
  });
});

describe("the text of a report", () => {
  it("says what passed, what was read, and which head covers it", () => {
    expect(auditText(report(log(), 3))).toBe(
      [
        "pass: run r1: Agent run ledger audit passed.",
        "  status completed, 1 events, 0 calls started, 0 completed, tools strict",
        `entries: 3, 1:${hashOf(1)} to 3:${hashOf(3)}; read: the run and what bears on it in its log`,
        `head: size 3, root ${"ab".repeat(32)}, covers them`,
      ].join("\n"),
    );
  });

  it("lists failures, findings, warnings and what was not checked, each with its entries", () => {
    const entries = log((one) => {
      one.add("tool.call.started", { call: "c1", action: { tool: "read", args: {} } });
      loss(one);
      one.add("code.loaded", { action: { code_id: "k" } });
    }).map((entry) => without(entry, "chunk"));
    const withdrawn = without(entries[1]!, "args", "withheld");
    const text = auditText(report([entries[0]!, withdrawn, ...entries.slice(2)], 2));
    expect(text.split("\n").slice(2)).toEqual([
      'FAIL  tool_call_pairing: tool_call_id "c1", started 1, completed 0',
      `FAIL  declared_loss: the host declares calls that it did not record one by one: 3:${hashOf(3)}`,
      `warn  code_not_installed: code was loaded, and its installation is not on record: 4:${hashOf(4)}`,
      `      not checked: 2:${hashOf(2)} action.args: withheld`,
      `entries: 6, 1:${hashOf(1)} to 6:${hashOf(6)}; read: the run and what bears on it in its log`,
      "head: size 2 does not cover the last entry",
    ]);
  });

  it("holds texts of the log cut and without control characters", () => {
    const entries = log((one) => {
      one.add("tool.call.started", {
        call: "c1",
        action: { tool: `\u202e\u001b[31m${"x".repeat(400)}`, args: {} },
      });
      one.add("tool.call.completed", {
        call: "c1",
        action: { tool: `\u202e\u001b[31m${"x".repeat(400)}` },
        outcome: { status: "success" },
      });
    });
    const text = auditText(report(entries));
    for (const character of ["\u202e", "\u001b"]) expect(text).not.toContain(character);
    expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThan(300);
    expect(text).toContain("head: none was given");
  });

  it("says so where no run was audited", () => {
    expect(auditText(refusedAudit("No matching Runner run exists."))).toBe(
      "env_issue: No matching Runner run exists.",
    );
  });
});
