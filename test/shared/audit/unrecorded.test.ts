/**
 * What a record has no place for: it is no failure of the run, and nothing passes for want of it.
 */
import { describe, expect, it } from "vitest";
import { ledgerQuery } from "../../../shared/audit/langbot-query.ts";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { RunAudit } from "../../../shared/audit/run-audit.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { importRows } from "./oracles.ts";
import { TestLog } from "./support.ts";

function audited(
  entries: readonly EntryView[],
  mode: "strict" | "runner-native" = "strict",
  unrecorded?: "accept",
): AuditReport {
  const result = ledgerQuery({ tool_authorization_mode: mode });
  if (!result.ok) throw new Error(result.reason);
  const audit = new RunAudit("r1", result.query, unrecorded === undefined ? {} : { unrecorded });
  for (const entry of entries) audit.add(entry);
  return audit.finish();
}

const kinds = ({ failures }: AuditReport): string[] => failures.map(({ kind }) => kind);
const unchecked = ({ not_checked }: AuditReport): string[] =>
  not_checked.map(({ what, why }) => `${why} ${what.split(":")[0]}`);

/** A record of another system: calls, answers to some of them, and then it stops. */
function foreign(add: (log: TestLog) => void = () => {}): TestLog {
  const log = new TestLog();
  log.add("run.created", { action: { "imported.system": "agentdojo" } });
  log.add("tool.call.started", { call: "c1", action: { tool: "read", args: {} } });
  log.add("tool.call.completed", { call: "c1", action: { tool: "read" }, outcome: { status: "success" } });
  add(log);
  return log;
}

describe("a run from a record that has no place for it", () => {
  it("neither fails nor passes for want of status, end and authorization", () => {
    const report = audited(foreign().entries);
    expect([report.status, kinds(report), report.warnings]).toEqual(["env_issue", [], []]);
    expect(unchecked(report)).toEqual([
      "not-recorded run.status",
      "not-recorded run.completed",
      "not-recorded run.created.authorization",
    ]);
    expect(report.run?.status).toBeNull();
  });

  it("passes where that is accepted, and says so", () => {
    const report = audited(foreign().entries, "strict", "accept");
    expect([report.status, report.not_checked, report.notes.length]).toEqual(["pass", [], 3]);
    expect(report.notes.every((note) => note.startsWith("not recorded, and accepted as that: "))).toBe(true);
  });

  it("needs no snapshot where the runner's own permissions govern the calls", () => {
    const report = audited(foreign().entries, "runner-native");
    expect(unchecked(report)).toEqual(["not-recorded run.status", "not-recorded run.completed"]);
  });

  it("may stop before an answer; with an end on record it may not", () => {
    const open = (log: TestLog): void => {
      log.add("tool.call.started", { call: "c2", action: { tool: "read", args: {} } });
    };
    const stopped = audited(foreign(open).entries);
    expect([kinds(stopped), unchecked(stopped)[2]]).toEqual([[], "not-recorded tool.call.completed"]);
    for (const end of ["run.completed", "run.failed", "run.cancelled", "run.timeout"]) {
      const log = foreign(open);
      log.add(end);
      expect(kinds(audited(log.entries))).toContain("tool_call_pairing");
    }
  });

  it("still fails for an answer without a call, and for what was reported", () => {
    const log = foreign((one) => {
      one.add("tool.call.completed", {
        call: "c9",
        action: { tool: "read" },
        outcome: { status: "failure", error: "permission denied" },
      });
      one.add("run.failed", { action: { error: "boom" } });
      one.add("run.status", { action: { status: "failed" } });
    });
    expect(kinds(audited(log.entries, "strict", "accept"))).toEqual([
      "run_status",
      "missing_run_completed_event",
      "run_failed_event",
      "tool_call_pairing",
      "forbidden_error_signals",
    ]);
  });

  it("takes a status that the importer calls unknown for none", () => {
    const log = foreign((one) => one.add("run.status", { action: { status: "unknown" } }));
    expect(unchecked(audited(log.entries))).toContain("not-recorded run.status");
    const live = new TestLog();
    live.add("run.created", { action: { authorization: {} } });
    live.add("run.completed");
    live.add("run.status", { action: { status: "unknown" } });
    expect(kinds(audited(live.entries))).toEqual(["run_status"]);
  });

  it("says that it has no events of a ledger, where it has others alone", () => {
    const log = new TestLog();
    log.add("run.created", { action: { "imported.system": "inspect" } });
    log.add("run.cancelled");
    const report = audited(log.entries);
    expect(kinds(report)).toEqual(["missing_run_completed_event"]);
    expect(unchecked(report)).toContain("not-recorded events of a run ledger");
    const live = new TestLog();
    live.add("run.created", { action: {} });
    expect(kinds(audited(live.entries))).toContain("missing_run_events");
  });

  it("recovered from an argument error where nothing says that it did not", () => {
    const log = foreign((one) => {
      for (const [call, outcome] of [
        ["c2", { status: "failure", error: "1 validation error for ReadArgs" }],
        ["c3", { status: "success", result: {} }],
      ] as const) {
        one.add("tool.call.started", { call, action: { tool: "read", args: {} } });
        one.add("tool.call.completed", { call, action: { tool: "read" }, outcome });
      }
    });
    const report = audited(log.entries, "strict", "accept");
    expect([kinds(report), report.warnings.map(({ kind }) => kind)]).toEqual([
      [],
      ["recovered_tool_argument_error"],
    ]);
  });
});

describe("a run that was sent as it happened", () => {
  function live(action: Record<string, unknown>): readonly EntryView[] {
    const log = new TestLog();
    log.add("run.created", { action });
    log.add("tool.call.started", { call: "c1", action: { tool: "read", args: {} } });
    log.add("tool.call.completed", { call: "c1", action: { tool: "read" }, outcome: { status: "success" } });
    log.add("run.completed");
    log.add("run.status", { action: { status: "completed" } });
    return log.entries;
  }

  it("is not said to be unauthorized where nothing says what it may use; nor does it pass", () => {
    const report = audited(live({}));
    expect([report.status, kinds(report), unchecked(report)]).toEqual([
      "env_issue",
      [],
      ["not-recorded run.created.authorization"],
    ]);
    expect(audited(live({}), "runner-native").status).toBe("pass");
    expect(kinds(audited(live({ authorization: {} })))).toEqual(["unauthorized_tool_calls"]);
  });

  it("has to have an end and a status", () => {
    const log = new TestLog();
    log.add("run.created", { action: { authorization: {} } });
    log.add("tool.call.started", { call: "c1", action: { tool: "read", args: {} } });
    expect(kinds(audited(log.entries))).toEqual([
      "run_status",
      "missing_run_completed_event",
      "tool_call_pairing",
    ]);
  });
});

describe("a run of LangBot's", () => {
  it("has NULL where the row has no snapshot, and fails as it does there", async () => {
    const data = (extra: object) => JSON.stringify({ tool_call_id: "c", tool_name: "read", ...extra });
    const entries = await importRows(
      JSON.stringify({
        run: { run_id: "r1", status: "completed" },
        events: [
          { sequence: 1, type: "tool.call.started", data_json: data({ parameters: {} }) },
          { sequence: 2, type: "tool.call.completed", data_json: data({ result: {}, error: null }) },
          { sequence: 3, type: "run.completed", data_json: "{}" },
        ],
      }),
    );
    const report = audited(entries);
    expect([report.status, kinds(report)]).toEqual(["fail", ["unauthorized_tool_calls"]]);
    expect(report.warnings.map(({ kind }) => kind)).toEqual(["no_authorized_tools"]);
  });
});
