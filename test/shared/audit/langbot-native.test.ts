import { describe, expect, it } from "vitest";
import { ledgerQuery } from "../../../shared/audit/langbot-query.ts";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { RunAudit } from "../../../shared/audit/run-audit.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { importRows } from "./oracles.ts";
import { erased, type Parts, ref, TestLog, without } from "./support.ts";

const TOOL = { tool_name: "read", description: "d", parameters: {}, source: "builtin" };
const created = (tools: unknown = [TOOL]): Parts => ({
  occurred_at: "2026-09-29T10:00:00Z",
  action: { authorization: { resources: { tools } } },
});
const started = (call: string | undefined, action: Record<string, unknown> = {}): Parts => ({
  ...(call === undefined ? {} : { call }),
  action: { tool: "read", args: { path: "x" }, ...action },
});
const completed = (
  call: string | undefined,
  outcome: Record<string, unknown> = { status: "success", result: { text: "HELLO" } },
  tool = "read",
): Parts => ({ ...(call === undefined ? {} : { call }), action: { tool }, outcome });

function audited(entries: readonly EntryView[], given: Parameters<typeof ledgerQuery>[0] = {}): AuditReport {
  const result = ledgerQuery(given);
  if (!result.ok) throw new Error(result.reason);
  const audit = new RunAudit("r1", result.query);
  for (const entry of entries) audit.add(entry);
  return audit.finish();
}

/** A run with these entries between its frame. */
function runOf(add: (log: TestLog) => void, tools?: unknown): EntryView[] {
  const log = new TestLog();
  log.add("run.created", created(tools));
  add(log);
  log.add("run.completed", { action: { finish_reason: "stop" } });
  log.add("run.status", {
    action: { status: "completed", runner_id: "runner", finished_at: "2026-09-29 10:00:30" },
  });
  return log.entries;
}

const kinds = (report: AuditReport): string[] => report.failures.map(({ kind }) => kind);

describe("a run in the log's own kinds", () => {
  it("passes, with the row that its entries amount to", () => {
    const report = audited(
      runOf((log) => {
        log.add("tool.call.started", started("c1"));
        log.add("tool.call.completed", completed("c1"));
      }),
      {
        expected_tool_name: "read",
        expected_parameters_json: '{"path":"x"}',
        expected_result_text: "HELLO",
      },
    );
    expect(report.failures).toEqual([]);
    expect(report).toMatchObject({
      status: "pass",
      run: {
        run_id: "r1",
        runner_id: "runner",
        status: "completed",
        created_at: "2026-09-29T10:00:00Z",
        finished_at: "2026-09-29 10:00:30",
      },
      metrics: { event_count: 3, tool_call_started: 1, tool_call_completed: 1, authorized_tool_count: 1 },
      expected_tool_call: { matched_started_count: 1, matched_completed_count: 1, result_text_match: true },
    });
  });

  it("has the status that its host reported last, and none where nobody did", () => {
    const log = new TestLog();
    log.add("run.created", created());
    log.add("run.completed");
    expect(audited(log.entries).failures).toEqual([
      { kind: "run_status", actual: null, expected: "completed" },
    ]);
    log.add("run.status", { action: { status: "completed" } });
    expect(audited(log.entries).failures).toEqual([]);
    log.add("run.status", { action: { status: "timeout" } });
    expect(audited(log.entries).failures).toEqual([
      { kind: "run_status", actual: "timeout", expected: "completed" },
    ]);
  });

  it("pairs calls by the envelope's call, not by the provider's id", () => {
    const report = audited(
      runOf((log) => {
        log.add("tool.call.started", started("c1", { tool_call_id: "same" }));
        log.add("tool.call.started", started("c2", { tool_call_id: "same" }));
        log.add("tool.call.completed", completed("c2"));
        log.add("tool.call.completed", completed("c1"));
      }),
    );
    expect(report.failures).toEqual([]);
    expect(report.metrics?.tool_call_ids).toBe(2);
  });

  it("shows unpaired, nameless, mismatched and late calls at the entries' sequence numbers", () => {
    const report = audited(
      runOf((log) => {
        log.add("tool.call.started", started("c1"));
        log.add("tool.call.completed", completed("c3"));
        log.add("tool.call.started", started("c3"));
        log.add("tool.call.started", started("c2"));
        log.add("tool.call.completed", completed("c2", undefined, "write"));
        log.add("tool.call.started", started(undefined, { tool_call_id: "given" }));
      }),
    );
    expect(report.failures).toEqual([
      { kind: "missing_tool_call_id", sequence: 7, type: "tool.call.started" },
      { kind: "tool_call_pairing", tool_call_id: "c1", started: 1, completed: 0 },
      { kind: "tool_name_mismatch", tool_call_id: "c2" },
      { kind: "tool_call_order", tool_call_id: "c3" },
    ]);
  });

  it("holds calls against run.created.authorization", () => {
    const calls = (log: TestLog): void => {
      log.add("tool.call.started", started("c1"));
      log.add("tool.call.completed", completed("c1"));
    };
    const unauthorized = {
      kind: "unauthorized_tool_calls",
      calls: [{ tool_call_id: "c1", tool_name: "read" }],
    };
    expect(audited(runOf(calls, [{ ...TOOL, tool_name: "write" }])).failures).toEqual([unauthorized]);
    const native = audited(runOf(calls, []), { tool_authorization_mode: "runner-native" });
    expect(native.status).toBe("pass");
    expect(native.warnings.map(({ kind }) => kind)).toEqual([
      "runner_native_tool_calls",
      "no_authorized_tools",
    ]);
  });

  it("takes success from the outcome's status, and fails by the words of its errors", () => {
    const invalid = { status: "failure", error: "2 validation errors for ReadArgs" };
    const recovered = (second: Record<string, unknown>) =>
      audited(
        runOf((log) => {
          log.add("tool.call.started", started("c1"));
          log.add("tool.call.completed", completed("c1", invalid));
          log.add("tool.call.started", started("c2"));
          log.add("tool.call.completed", completed("c2", second));
        }),
      );
    expect(recovered({ status: "success" }).warnings.map(({ kind }) => kind)).toEqual([
      "recovered_tool_argument_error",
    ]);
    expect(kinds(recovered({ status: "unknown", result: { text: "x" } }))).toEqual([
      "forbidden_error_signals",
    ]);
    const failed = runOf((log) => {
      log.add("tool.call.started", started("c1"));
      log.add("tool.call.completed", completed("c1", invalid));
      log.add("tool.call.started", started("c2"));
      log.add("tool.call.completed", completed("c2"));
    });
    const status = new TestLog().add("run.status", { action: { status: "failed" } });
    expect(kinds(audited([...failed.slice(0, -1), { ...status, seq: failed.length }]))).toEqual([
      "run_status",
      "forbidden_error_signals",
    ]);
    expect(kinds(recovered({ status: "success", details: { reason: "timed out" } }))).toEqual([
      "forbidden_error_signals",
    ]);
  });

  it("does not take what the sender keeps for itself for a diagnostic", () => {
    const extra = { error: "timeout" };
    const report = audited(
      runOf((log) => {
        log.add("tool.call.started", started("c1", { extra }));
        log.add("tool.call.completed", completed("c1"));
      }),
    );
    expect(report.failures).toEqual([]);
  });

  it("searches the whole of a run.failed", () => {
    const report = audited(
      runOf((log) => log.add("run.failed", { action: { error: "boom", detail: "upstream FORBIDDEN" } })),
    );
    expect(report.failures).toEqual([
      { kind: "run_failed_event" },
      {
        kind: "forbidden_error_signals",
        events: [{ sequence: 2, type: "run.failed", signal: "FORBIDDEN" }],
      },
    ]);
  });

  it("counts only what is an event of a ledger", () => {
    const report = audited(
      runOf((log) => {
        log.add("model.dispatched");
        log.add("message.completed", { action: { message: { role: "user" } } });
        log.add("step.started", { step: "s1" });
      }),
    );
    expect(report.metrics?.event_count).toBe(2);
  });
});

describe("a run whose content is erased", () => {
  const entries = (): EntryView[] =>
    runOf((log) => {
      log.add("tool.call.started", started("c1"));
      log.add("tool.call.completed", completed("c1"));
    });

  it.each([
    [1, "action.authorization", "authorization"],
    [2, "action.args", "args"],
    [2, "action.tool", "tool"],
    [3, "outcome.result", "result"],
    [5, "action.status", "status"],
  ])("does not pass, and is not accused: entry %i without %s", (seq, what, field) => {
    const cut = entries().map((entry) => (entry.seq === seq ? without(entry, field) : entry));
    const report = audited(cut);
    expect(report.failures).toEqual([]);
    expect(report.status).toBe("env_issue");
    expect(report.not_checked).toEqual([{ entry: ref(cut[seq - 1]!), what, why: "erased" }]);
  });

  it("still fails for what remains", () => {
    const cut = entries().flatMap((entry) => {
      if (entry.seq === 2) return [without(entry, "tool")];
      return entry.kind === "tool.call.completed" ? [] : [entry];
    });
    expect(audited(cut)).toMatchObject({ status: "fail", failures: [{ kind: "tool_call_pairing" }] });
  });
});

describe("an imported run", () => {
  const authorization_json = JSON.stringify({ resources: { tools: [TOOL] } });
  const rows = (events: readonly [number, string, string][], run: Record<string, unknown> = {}): string =>
    JSON.stringify({
      run: { run_id: "r1", runner_id: "x", status: "completed", authorization_json, ...run },
      events: events.map(([sequence, type, data_json]) => ({ sequence, type, data_json })),
    });
  const START = '{"tool_call_id":"c1","tool_name":"read","parameters":{}}';
  const END = '{"tool_call_id":"c1","tool_name":"read","result":{"ok":true},"error":null}';
  const EVENTS: readonly [number, string, string][] = [
    [1, "tool.call.started", START],
    [2, "tool.call.completed", END],
    [3, "run.completed", "{}"],
  ];

  it("is imported again with a new status, which counts, and with events that are there already, which do not", async () => {
    const before = await importRows(rows(EVENTS.slice(0, 2), { status: "running" }));
    const after = await importRows(rows(EVENTS));
    const seen = new Set<string>();
    const both = [...before, ...after]
      .filter(({ id }) => !seen.has(id) && seen.add(id))
      .map((entry, place) => ({ ...entry, seq: place + 1 }));
    expect(both.length).toBeLessThan(before.length + after.length);
    const report = audited(both);
    expect(report.failures).toEqual([]);
    expect(report.run?.status).toBe("completed");
    expect(report.metrics?.event_count).toBe(3);
  });

  it("keeps the first of two rows with one sequence number", async () => {
    const first = await importRows(rows(EVENTS));
    const second = await importRows(rows([[1, "tool.call.started", START.replace("read", "Bash")]]));
    const forged = second.filter(({ kind }) => kind === "tool.call.started");
    const both = [...first, ...forged].map((entry, place) => ({ ...entry, seq: place + 1 }));
    expect(audited(both)).toMatchObject({ failures: [], metrics: { event_count: 3 } });
  });

  it("is not complete where its rows are erased, and the calls still pair", async () => {
    const views = await importRows(rows(EVENTS));
    const report = audited(views.map((entry) => without(entry, "extra")));
    expect(report.failures).toEqual([]);
    expect(report.status).toBe("env_issue");
    expect(report.not_checked_count).toBe(views.length);
    expect(report.metrics).toMatchObject({ tool_call_started: 1, tool_call_completed: 1, tool_call_ids: 1 });
    expect(report.run).toMatchObject({ run_id: "r1", status: "completed", runner_id: "x" });
  });

  it.each(["c1", null, ""])("is not accused where one end of a call with the id %j is erased", async (id) => {
    const named = (text: string): string => text.replace('"c1"', JSON.stringify(id));
    const views = await importRows(
      rows([
        [10, "tool.call.started", named(START)],
        [20, "tool.call.completed", named(END)],
        [30, "run.completed", "{}"],
      ]),
    );
    const nameless = id === "" ? [{ kind: "missing_tool_call_id" }] : [];
    for (const kind of ["tool.call.started", "tool.call.completed"]) {
      const report = audited(views.map((entry) => (entry.kind === kind ? erased(entry) : entry)));
      expect(report.failures).toMatchObject(nameless);
      expect(report.not_checked_count).toBeGreaterThan(0);
      expect(report.metrics?.tool_call_ids).toBe(id === "" ? 0 : 1);
    }
  });

  it("is not accused where all of it is erased", async () => {
    const views = await importRows(rows(EVENTS));
    const report = audited(views.map(erased));
    expect(report).toMatchObject({ status: "env_issue", failures: [], run: { run_id: "r1", status: null } });
  });

  it("is complete where its run.created is erased: the row is in its run.status, too", async () => {
    const views = await importRows(rows(EVENTS));
    const report = audited(views.map((entry) => (entry.kind === "run.created" ? erased(entry) : entry)));
    expect(report).toMatchObject({ status: "pass", not_checked: [] });
  });

  it("has its rows before what its entries say of them", async () => {
    const odd = { runner_id: 8, status: 7, created_at: 9, finished_at: 10 };
    expect(audited(await importRows(rows(EVENTS, odd))).run).toEqual({
      run_id: "r1",
      runner_id: "8",
      status: "7",
      created_at: "9",
      finished_at: "10",
    });
  });

  it("is read from the entries' own fields where a row is too long for the log", async () => {
    const long = JSON.stringify({
      tool_call_id: "c1",
      tool_name: "read",
      result: { text: "HELLO", more: "y".repeat(700_000) },
    });
    const twice = JSON.stringify({ ...JSON.parse(long), padding: "z".repeat(500_000) });
    const views = await importRows(rows([EVENTS[0]!, [2, "tool.call.completed", twice], EVENTS[2]!]));
    const end = views.find(({ kind }) => kind === "tool.call.completed");
    expect(JSON.stringify(end?.action.get("extra"))).toContain("runseal.lossy");
    const report = audited(views, { expected_tool_name: "read", expected_result_text: "HELLO" });
    expect(report).toMatchObject({ status: "pass", failures: [] });
    expect(report.notes.length).toBe(1);
  });
});
