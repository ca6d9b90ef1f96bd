import { describe, expect, it } from "vitest";
import { auditLedger } from "../../../shared/audit/langbot-audit.ts";
import { rowsFromEntries } from "../../../shared/audit/langbot-fold.ts";
import { type LedgerQuery, ledgerQuery } from "../../../shared/audit/langbot-query.ts";
import { envIssue, type LedgerReport } from "../../../shared/audit/langbot-report.ts";
import { type LedgerRun, ledgerRuns } from "../../../shared/audit/langbot-rows.ts";
import { exitCodeOf, ledgerPart } from "../../../shared/audit/report.ts";
import { auditSelection, RunAudit, type RunSource, refusedAudit } from "../../../shared/audit/run-audit.ts";
import { describeWithShared } from "../../support/shared-files.ts";
import { argumentsOf, importedViews, ORACLES, type Oracle, oracles, rowsOf } from "./oracles.ts";

const withRuns = oracles.filter(({ run }) => run !== undefined);
const selections = oracles.filter(({ run }) => run === undefined);

/** The script's answer about a case alone: it was given the run's id. */
function queryOf(oracle: Oracle): LedgerQuery | string {
  const runId = oracle.run === undefined ? {} : { run_id: String(oracle.run.run_id) };
  const result = ledgerQuery({ ...runId, ...argumentsOf(oracle.args) });
  return result.ok ? result.query : result.reason;
}

function auditRows(oracle: Oracle, runs: Iterable<LedgerRun>): LedgerReport {
  const query = queryOf(oracle);
  return typeof query === "string" ? envIssue(query) : auditLedger(runs, query);
}

/** All the runs of the oracles, the newest first. */
const allRuns = (): LedgerRun[] => withRuns.flatMap((oracle) => ledgerRuns(rowsOf(oracle))).reverse();

describeWithShared("the script's own answers", ORACLES, () => {
  it("are 34", () => {
    expect(oracles.length).toBe(34);
    expect(selections.length).toBe(4);
  });

  describe.each(oracles)("$case", (oracle) => {
    it("is given to the rows, down to the order of the keys", () => {
      const report = auditRows(oracle, allRuns());
      expect(report).toEqual(oracle.report);
      expect(JSON.stringify(report)).toBe(JSON.stringify(oracle.report));
      expect(exitCodeOf(report)).toBe(oracle.exit_code);
    });

    it("is given to the entries of an import", async () => {
      const runs = withRuns.length === 0 ? [] : await Promise.all(withRuns.map(importedViews));
      const rows = runs.flatMap((views) => rowsFromEntries(views)).reverse();
      expect(auditRows(oracle, rows)).toEqual(oracle.report);
    });

    it("is given by the whole audit of an import, with nothing found besides", async () => {
      const query = queryOf(oracle);
      const sources: RunSource[] = [];
      for (const each of withRuns) {
        const views = await importedViews(each);
        sources.unshift({ run: views[0]?.run ?? "", entries: () => views });
      }
      const report =
        typeof query === "string"
          ? refusedAudit(query)
          : await auditSelection(query, sources, { context: "log" });
      expect(ledgerPart(report)).toEqual(oracle.report);
      expect(exitCodeOf(report)).toBe(oracle.exit_code);
      expect(report.findings).toEqual([]);
      expect(report.not_checked).toEqual([]);
      expect(report.entries === null).toBe(oracle.run === undefined);
    });
  });

  it("names the entries of the run", async () => {
    const views = await importedViews(withRuns[0]!);
    const audit = new RunAudit("run-01-pass");
    for (const view of views) audit.add(view);
    const report = audit.finish();
    expect(report.status).toBe("pass");
    expect(report.entries).toEqual({
      run: "run-01-pass",
      first: { seq: 1, hash: views[0]?.hash },
      last: { seq: views.length, hash: views.at(-1)?.hash },
      count: views.length,
    });
  });
});
