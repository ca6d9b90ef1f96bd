/**
 * Real runs of other systems: none fails for what its record has no place for. What fails, fails for what is there.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { expect, it } from "vitest";
import { type ImportedRun, type ImportFormat, importRuns } from "../../../cli/import/index.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { ledgerQuery } from "../../../shared/audit/langbot-query.ts";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { RunAudit } from "../../../shared/audit/run-audit.ts";
import type { Policy } from "../../../shared/recheck/policy.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { describeWithShared, hasShared, sharedPath } from "../../support/shared-files.ts";
import { CORPUS_FAILURES } from "./corpus-failures.ts";
import { viewOf } from "./support.ts";

const SOURCES: readonly [ImportFormat, string][] = [
  ["agentdojo", "corpus/agentdojo/runs"],
  ["openai-chat", "corpus/tau-bench/runs"],
  ["swe-agent", "corpus/swe-agent"],
  ["inspect", "corpus/inspect_ai"],
  ["claude-code", "corpus/claude-code/daaain-claude-code-log"],
  ["claude-code", "corpus/claude-code/simonw-claude-code-transcripts"],
];

const files = SOURCES.filter(([, folder]) => hasShared(folder)).flatMap(([format, folder]) =>
  readdirSync(sharedPath(folder))
    .filter((name) => [".json", ".jsonl", ".traj", ".eval"].includes(extname(name)))
    .filter((name) => statSync(join(sharedPath(folder), name)).isFile())
    .map((name): [ImportFormat, string] => [format, `${folder}/${name}`]),
);

/** Denies everything: a decision that is made at import, of calls that happened, is no failure of theirs. */
const DENY = rulesPolicy('{"side_effects":{"read_only":"deny"}}', nativeCrypto);

async function runsOf(format: ImportFormat, path: string, policy?: Policy): Promise<ImportedRun[]> {
  const runs: ImportedRun[] = [];
  const options = { crypto: nativeCrypto, ...(policy === undefined ? {} : { policy }) };
  for await (const run of importRuns(format, readFileSync(sharedPath(path)), options)) runs.push(run);
  return runs;
}

function audited({ run, entries }: ImportedRun, unrecorded?: "accept"): AuditReport {
  const query = ledgerQuery({});
  if (!query.ok) throw new Error(query.reason);
  const audit = new RunAudit(run, query.query, {
    context: "log",
    ...(unrecorded === undefined ? {} : { unrecorded }),
  });
  for (const [place, text] of entries.entries()) audit.add(viewOf(text, place + 1));
  return audit.finish();
}

describeWithShared("the audit of real runs", "corpus/FORMATS.md", () => {
  it.each(files)("%s %s", async (format, path) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const expected = CORPUS_FAILURES[name] ?? [];
    const runs = [...(await runsOf(format, path)), ...(await runsOf(format, path, DENY))];
    expect(runs.length).toBeGreaterThan(0);
    for (const run of runs) {
      const report = audited(run);
      expect(report.failures.map(({ kind }) => kind)).toEqual(expected);
      expect(report.findings.filter(({ severity }) => severity === "failure")).toEqual([]);
      // What such a record never says keeps it from passing, until that is accepted.
      expect(report.not_checked.every(({ why }) => why === "not-recorded")).toBe(true);
      expect(report.not_checked_count).toBeGreaterThan(0);
      expect(report.status).toBe(expected.length === 0 ? "env_issue" : "fail");
      expect(audited(run, "accept").status).toBe(expected.length === 0 ? "pass" : "fail");
    }
  });

  it("names no file that is not there", () => {
    const names = files.map(([, path]) => path.slice(path.lastIndexOf("/") + 1));
    for (const name of Object.keys(CORPUS_FAILURES)) expect(names).toContain(name);
  });
});
