import { describe, expect, it } from "vitest";
import { auditLedger } from "../../../shared/audit/langbot-audit.ts";
import { type LedgerArguments, ledgerQuery } from "../../../shared/audit/langbot-query.ts";
import { ledgerRuns } from "../../../shared/audit/langbot-rows.ts";
import { auditSelection, RunAudit, type RunSource, refusedAudit } from "../../../shared/audit/run-audit.ts";
import { mayBeRun } from "../../../shared/audit/run-selection.ts";
import { TestLog } from "./support.ts";

/** Runs 1 to `count`, a minute apart; each calls `tool<n>`, with its number as the parameter. */
function rows(count: number, more: Record<string, unknown> = {}): unknown[] {
  return Array.from({ length: count }, (_, index) => {
    const n = index + 1;
    const minute = String(n % 60).padStart(2, "0");
    const hour = String(10 + Math.floor(n / 60)).padStart(2, "0");
    const data = { tool_call_id: "c", tool_name: `tool${n}`, parameters: { n } };
    return {
      run: {
        run_id: `run-${n}`,
        status: "completed",
        created_at: `2026-09-29 ${hour}:${minute}:00.000000`,
        ...more,
      },
      events: [
        { sequence: 2, type: "message.delta", data_json: JSON.stringify({ tool_name: "other" }) },
        { sequence: 3, type: "tool.call.completed", data_json: JSON.stringify({ tool_name: "other" }) },
        { sequence: 1, type: "tool.call.started", data_json: JSON.stringify(data) },
      ],
    };
  });
}

function selected(args: LedgerArguments, given: unknown[]): string | undefined {
  const result = ledgerQuery(args);
  if (!result.ok) return result.reason;
  const report = auditLedger(ledgerRuns(JSON.stringify(given)).reverse(), result.query);
  return report.run?.run_id ?? report.reason;
}

const NONE = "No Runner run contains the expected tool call.";

describe("the run that is audited", () => {
  it("is the newest one where nothing is asked", () => {
    expect(selected({}, rows(3))).toBe("run-3");
    expect(selected({ run_id: "" }, rows(3))).toBe("run-3");
    expect(selected({ created_after: "2026-09-30" }, rows(3))).toBe("run-3");
    expect(selected({}, [])).toBe("No matching Runner run exists.");
  });

  it("is the one of the id, whatever else is expected", () => {
    expect(selected({ run_id: "run-2" }, rows(3))).toBe("run-2");
    expect(selected({ run_id: "run-2", expected_tool_name: "tool3" }, rows(3))).toBe("run-2");
    expect(selected({ run_id: "run-9" }, rows(3))).toBe("No matching Runner run exists.");
    expect(selected({ run_id: "run-9", expected_tool_name: "tool3" }, rows(3))).toBe(NONE);
  });

  it("is the newest one that starts the expected call", () => {
    expect(selected({ expected_tool_name: "tool2" }, rows(3))).toBe("run-2");
    expect(selected({ expected_tool_name: "other" }, rows(3))).toBe(NONE);
    expect(selected({ expected_tool_name: "tool2", expected_parameters_json: '{"n":2.0}' }, rows(3))).toBe(
      "run-2",
    );
    expect(selected({ expected_tool_name: "tool2", expected_parameters_json: '{"n":3}' }, rows(3))).toBe(
      NONE,
    );
  });

  it("is among the newest 100 that were created late enough", () => {
    expect(selected({ expected_tool_name: "tool21" }, rows(120))).toBe("run-21");
    expect(selected({ expected_tool_name: "tool20" }, rows(120))).toBe(NONE);
    const call = { expected_tool_name: "tool2" };
    expect(selected({ ...call, created_after: "2026-09-29T12:02:00+02:00" }, rows(3))).toBe("run-2");
    expect(selected({ ...call, created_after: "2026-09-29 10:02:00.000001" }, rows(3))).toBe(NONE);
    expect(selected({ ...call, created_after: "2026-09-01" }, rows(3, { created_at: null }))).toBe(NONE);
    // A time that is none is compared as text.
    expect(selected({ ...call, created_after: "2026-09-01" }, rows(3, { created_at: "3" }))).toBe("run-2");
  });

  it("does not count those that were created too early", () => {
    const old = { ...(rows(1)[0] as object) };
    expect(
      selected({ expected_tool_name: "tool1", created_after: "2026-09-29" }, [
        old,
        ...rows(99).slice(1),
        ...rows(120, { created_at: "2020-01-01" }),
      ]),
    ).toBe("run-1");
  });
});

describe("arguments that are refused", () => {
  it.each<[LedgerArguments, string]>([
    [
      { expected_parameters_json: "{}" },
      "--expected-tool-name is required with expected parameters or result text",
    ],
    [
      { expected_result_text: "x" },
      "--expected-tool-name is required with expected parameters or result text",
    ],
    [
      { expected_tool_name: "t", expected_parameters_json: "[1]" },
      "--expected-parameters-json must decode to an object",
    ],
    [
      { expected_tool_name: "t", expected_parameters_json: "{" },
      "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ],
    [{ created_after: "soon" }, "Invalid isoformat string: 'soon'"],
  ])("%j", (args, reason) => {
    expect(ledgerQuery(args)).toEqual({ ok: false, reason });
    expect(refusedAudit(reason)).toMatchObject({ status: "env_issue", reason, failures: [], warnings: [] });
  });

  it("are not the empty ones", () => {
    expect(ledgerQuery({ expected_result_text: "", expected_parameters_json: "" })).toEqual({
      ok: true,
      query: { mode: "strict", resultText: "" },
    });
  });
});

describe("a selection over a tenant's runs", () => {
  const source = (run: string, tool: string, read: string[]): RunSource => {
    const log = new TestLog();
    log.add("run.created", { run });
    log.add("tool.call.started", { run, call: "c", action: { tool, args: {} } });
    return {
      run,
      entries: () => {
        read.push(run);
        return log.entries;
      },
      head: { seq: 2, hash: "h", size: 2, root: "r" },
    };
  };

  it("reads no further than it has to", async () => {
    const read: string[] = [];
    const sources = ["r3", "r2", "r1"].map((run) => source(run, `tool-${run}`, read));
    const report = await auditSelection({ mode: "strict", toolName: "tool-r2" }, sources);
    expect(report.entries?.run).toBe("r2");
    expect(report.covered).toBe(true);
    expect(read).toEqual(["r3", "r2"]);
    expect((await auditSelection({ mode: "strict", runId: "r1" }, sources)).entries?.run).toBe("r1");
    expect(read).toEqual(["r3", "r2", "r1"]);
  });

  it("stops after 100 runs without the call", async () => {
    const read: string[] = [];
    const sources = Array.from({ length: 120 }, (_, n) => source(`r${n}`, "other", read));
    const report = await auditSelection({ mode: "strict", toolName: "t" }, sources);
    expect(report).toMatchObject({
      status: "fail",
      entries: null,
      failures: [{ kind: "expected_tool_call_missing" }],
    });
    expect(read.length).toBe(100);
  });

  it("passes over a run without entries", async () => {
    const empty: RunSource = { run: "r9", entries: () => [] };
    const report = await auditSelection({ mode: "strict" }, [empty, source("r1", "t", [])]);
    expect(report.entries?.run).toBe("r1");
    expect((await auditSelection({ mode: "strict" }, [empty])).status).toBe("env_issue");
    expect(new RunAudit("r9").finish().reason).toBe("No matching Runner run exists.");
  });

  it("knows an imported run by its own id", () => {
    expect(mayBeRun("run-1", "run-1")).toBe(true);
    expect(mayBeRun("run-1", "run-12")).toBe(false);
    expect(mayBeRun("a-b:0123456789abcdef", "a/b")).toBe(true);
    expect(mayBeRun(`${"x".repeat(111)}:0123456789abcdef`, "x".repeat(200))).toBe(true);
    expect(mayBeRun("a-b:0123456789abcdef", "a/c")).toBe(false);
  });

  it("takes an imported run whose name had to be changed, by the id in its rows", async () => {
    const { importRows } = await import("./oracles.ts");
    const views = await importRows(
      JSON.stringify({ run: { run_id: "a/b", status: "completed" }, events: [] }),
    );
    const sources: RunSource[] = [{ run: views[0]?.run ?? "", entries: () => views }];
    expect(views[0]?.run).not.toBe("a/b");
    expect((await auditSelection({ mode: "strict", runId: "a/b" }, sources)).run?.run_id).toBe("a/b");
    expect((await auditSelection({ mode: "strict", runId: "a-b" }, sources)).run).toBeUndefined();
  });
});
