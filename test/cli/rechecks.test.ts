import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../cli/command.ts";
import { rechecksCommand } from "../../cli/commands/rechecks.ts";
import { main } from "../../cli/main.ts";
import { summaryJson } from "../../shared/recheck/summary-json.ts";
import { runOf, summaryOf } from "../shared/recheck/summary-support.ts";
import type { Seen } from "./stub-service.ts";
import { stubService } from "./stub-service.ts";

let answers: (request: Seen) => unknown;
const stub = stubService(rechecksCommand, (request) => ({ body: answers(request) }));
const { run } = stub;
const file = join(mkdtempSync(join(tmpdir(), "runseal-rechecks-")), "policy.json");
writeFileSync(file, '{"side_effects":{"read_only":"allow"},"tools":{"t":{"fixed":{"n":1.50}}}}');

const summary = (...made: Parameters<typeof runOf>[2]) => summaryJson(summaryOf([runOf("p", "r", made)]));
const report = (parts: Record<string, unknown>) => ({
  report: "runseal.recheck.v1",
  id: "j1",
  status: "complete",
  policy: { policy_id: "new/v2" },
  runs: { done: 1, total: 1 },
  without_runs: [],
  heads: [{ principal: "p", size: 3, hash: "ab" }],
  summary: summary({}),
  ...parts,
});

/** A service with one job, which is at its end after `polls` looks. */
function service(final: unknown, polls = 2): void {
  let left = polls;
  answers = ({ url: path }) => {
    if (path.endsWith("/report")) return final;
    const ended = left-- <= 0;
    return {
      id: "j1",
      status: ended ? "complete" : "running",
      report_hash: ended ? "ab" : null,
      progress: { runs: { done: ended ? 1 : 0, total: 1 }, evaluations: 0 },
      summary: summary({}),
    };
  };
}

describe("runseal rechecks", () => {
  it("starts a job with its policy as it is written, waits, prints the report, and says whether it holds", async () => {
    service(report({}));
    const { code, out, notes } = await run([], {
      policy: file,
      principal: "a, b",
      newest: "5",
      "max-runs": "7",
    });
    expect(code).toBe(0);
    expect(out.split("\n")[0]).toBe("recheck j1 complete: 1 of 1 runs of 1 logs");
    expect(out).toContain("head p 3:ab");
    expect(notes).toContain("running: 0 of 1 runs");
    const [first] = stub.seen;
    expect(first?.body).toContain('"fixed":{"n":1.50}');
    expect(JSON.parse(first?.body ?? "")).toMatchObject({
      selection: { principals: ["a", "b"], newest: 5 },
      budget: { runs: 7 },
    });
    expect(first?.key).toMatch(/^"[0-9a-f-]{36}"$/);
    expect(stub.seen.map(({ url: path }) => path)).toEqual([
      "/v1/rechecks",
      "/v1/rechecks/j1?wait=20",
      "/v1/rechecks/j1?wait=20",
      "/v1/rechecks/j1/report",
    ]);
  });

  it.each([
    ["a difference", { summary: summary({}, { result: "different", rechecked: "deny" }) }, "proxy", 1],
    ["nothing re-checked", { summary: summary() }, "proxy", 1],
    ["something left out, strictly", { summary: summary({}, { result: "not_recheckable" }) }, "strict", 1],
    ["something left out", { summary: summary({}, { result: "not_recheckable" }) }, "proxy", 0],
    ["a job that was cancelled", { status: "cancelled" }, "proxy", 1],
    ["a budget that was not enough", { status: "budget-exhausted", reason: "1 runs" }, "proxy", 1],
    ["a job that could not go on", { status: "failed", reason: "unavailable" }, "proxy", 2],
  ])("exits as it should for %s", async (_name, parts, gate, expected) => {
    service(report(parts), 0);
    const { code } = await run(["wait", "j1"], { gate });
    expect(code).toBe(expected);
  });

  it("prints the stored report to the byte with --json, and the id alone with --no-wait", async () => {
    service(report({}), 0);
    expect((await run(["wait", "j1"], {}, true)).out).toBe(JSON.stringify(report({})));
    expect((await run([], { policy: file, all: true, "no-wait": true })).out).toBe("j1");
  });

  it("cancels, and lists page by page", async () => {
    answers = ({ url: path }) => {
      if (path.includes("/cancel")) return { id: "j1", status: "cancelled" };
      const one = (id: string) => ({ id, status: "complete", created_at: "t", policy: { policy_id: "x" } });
      return path.includes("cursor=c1")
        ? { rechecks: [one("j0")], next_cursor: null }
        : { rechecks: [one("j1")], next_cursor: "c1" };
    };
    expect((await run(["cancel", "j1"], {})).out).toBe("j1 cancelled");
    expect((await run(["list"], {})).out).toBe("j1 t complete x\nj0 t complete x");
  });

  it.each([
    [[], { policy: file }],
    [[], { policy: file, all: true, principal: "a" }],
    [[], { all: true }],
    [["wait"], {}],
    [["list", "j1"], {}],
    [["stop"], {}],
    [[], { policy: file, all: true, gate: "none" }],
    [[], { policy: file, newest: "0" }],
  ] as [string[], Record<string, string | boolean>][])(
    "refuses %j with %j, and asks nothing of the service",
    async (positionals, values) => {
      await expect(run(positionals, values)).rejects.toThrow(UsageError);
      expect(stub.seen).toEqual([]);
    },
  );

  it("is a command with a help", async () => {
    expect(await main(["help", "rechecks"])).toBe(0);
  });
});

describe("the options of jobs", () => {
  it("name no decisions: those answer for one run", () => {
    expect(Object.keys(rechecksCommand.options)).toContain("stored");
    expect(Object.keys(rechecksCommand.options)).not.toContain("decisions");
  });
});
