/**
 * Every recorded run of the corpus, the whole way: imported with a policy, sent, verified, exported, verified offline,
 * re-checked as same under the policy that it was recorded with, and, under a stricter one, with exactly the denied
 * calls named.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { importRuns } from "../../../cli/import/index.ts";
import type { ImportedRun, ImportFormat } from "../../../cli/import/types.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { RunsealClient } from "../../../sdk/client.ts";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { BundleVerifier } from "../../../shared/verify/bundle.ts";
import { CORPUS_FAILURES } from "../../shared/audit/corpus-failures.ts";
import { startServerProcess } from "../../support/server.ts";
import { describeWithShared, hasShared, sharedPath } from "../../support/shared-files.ts";

const SOURCES: readonly [ImportFormat, string][] = [
  ["agentdojo", "corpus/agentdojo/runs"],
  ["openai-chat", "corpus/tau-bench/runs"],
  ["swe-agent", "corpus/swe-agent"],
  ["inspect", "corpus/inspect_ai"],
  ["claude-code", "corpus/claude-code/daaain-claude-code-log"],
  ["claude-code", "corpus/claude-code/simonw-claude-code-transcripts"],
];

function files(): [ImportFormat, string][] {
  return SOURCES.filter(([, folder]) => hasShared(folder)).flatMap(([format, folder]) =>
    readdirSync(sharedPath(folder))
      .filter((name) => [".json", ".jsonl", ".traj", ".eval"].includes(extname(name)))
      .filter((name) => statSync(join(sharedPath(folder), name)).isFile())
      .map((name): [ImportFormat, string] => [format, `${folder}/${name}`]),
  );
}

/** Tools that the run calls, each with its number of calls. */
function toolsOf(run: ImportedRun): Map<string, number> {
  const tools = new Map<string, number>();
  for (const text of run.entries) {
    const { kind, action } = JSON.parse(text) as { kind: string; action: { tool?: string } };
    if (kind === "tool.call.started" && action.tool !== undefined) {
      tools.set(action.tool, (tools.get(action.tool) ?? 0) + 1);
    }
  }
  return tools;
}

/** Allows the tools by name; denies one of them, where it is told. */
function rules(id: string, tools: Iterable<string>, denied?: string): string {
  const entries = [...tools].map((name) => [
    name,
    { side_effect: "read_only", ...(name === denied ? { deny: true } : {}) },
  ]);
  return JSON.stringify({
    policy_id: id,
    side_effects: { read_only: "allow" },
    tools: Object.fromEntries(entries),
  });
}

/** The same in Cedar, where each tool is an action; a denied one is forbidden. */
function cedar(id: string, tools: Iterable<string>, denied?: string): string {
  const actions = [...tools].map((name) => `Action::${JSON.stringify(name)}`);
  const permit = `permit(principal, action in [${actions.join(", ")}], resource);`;
  const forbid =
    denied === undefined ? "" : `forbid(principal, action == Action::${JSON.stringify(denied)}, resource);`;
  return JSON.stringify({ cedar: permit + forbid, policy_id: id });
}

async function imported(format: ImportFormat, bytes: Uint8Array, policy?: string): Promise<ImportedRun[]> {
  const runs: ImportedRun[] = [];
  const options = {
    crypto: nativeCrypto,
    ...(policy === undefined ? {} : { policy: rulesPolicy(policy, nativeCrypto) }),
  };
  for await (const run of importRuns(format, bytes, options)) runs.push(run);
  return runs;
}

interface Report {
  same: boolean;
  rechecked: number;
  differences: number;
  complete: boolean;
  identity: string;
  evaluations: { tool: string; result: string; detail?: string; rechecked?: { outcome: string } }[];
}

let client: RunsealClient;
let registryId: string;

describeWithShared("the corpus, from import to recheck", "corpus/FORMATS.md", () => {
  beforeAll(async () => {
    const server = await startServerProcess();
    const tenant = await new RunsealClient({ url: server.url, apiKey: server.operatorToken }).createTenant(
      "corpus",
    );
    client = new RunsealClient({ url: server.url, apiKey: tenant.api_key });
    registryId = tenant.registry_id;
  });

  it.each(files())("%s %s", async (format, path) => {
    const bytes = readFileSync(sharedPath(path));
    const plain = await imported(format, bytes);
    const tools = new Map(plain.flatMap((run) => [...toolsOf(run)]));
    const recorded = rules("corpus/v1", tools.keys());
    const principal = path.replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(-120);
    const runs = await imported(format, bytes, recorded);
    let total = 0;
    for (const run of runs) {
      for (const { hash, text } of run.specs)
        await client.request("PUT", `/v1/tools/${hash}`, { body: text });
      for (let i = 0; i < run.entries.length; i += 500) {
        const { results } = await client.appendTexts(principal, run.entries.slice(i, i + 500));
        expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
      }
      total += run.entries.length;
      await recheckBothWays(principal, run, recorded);
      await audited(principal, run, CORPUS_FAILURES[basename(path)] ?? []);
    }
    if (total === 0) return;
    const again = await client.appendTexts(principal, runs[0]?.entries.slice(0, 500) ?? []);
    expect(again.results.every(({ status }) => status === "seen")).toBe(true);
    expect(await client.verify(principal)).toMatchObject({ verdict: "intact", checked: total });
    const bundle = await (await client.export(principal)).text();
    const verifier = new BundleVerifier(nativeCrypto, { registryId, verifiedBy: "test" });
    for (const line of bundle.split("\n")) verifier.line(line);
    expect(verifier.finish()).toMatchObject({ verdict: "intact", pinned: true, checked: total });
  });
});

/** The audit passes where what such a record never says is accepted, but for what is truly wrong in it. */
async function audited(principal: string, run: ImportedRun, failures: readonly string[]): Promise<void> {
  const path = `/v1/principals/${principal}/runs/${encodeURIComponent(run.run)}/audit?unrecorded=accept`;
  const report = await client.json<AuditReport>("GET", path);
  expect([report.status, report.failures.map(({ kind }) => kind), report.covered]).toEqual([
    failures.length === 0 ? "pass" : "fail",
    failures,
    true,
  ]);
}

async function recheckBothWays(principal: string, run: ImportedRun, recorded: string): Promise<void> {
  const tools = toolsOf(run);
  const path = `/v1/principals/${principal}/runs/${encodeURIComponent(run.run)}/recheck`;
  const recheck = async (policy: string): Promise<Report> =>
    (await (await client.request("POST", path, { body: `{"policy":${policy}}` })).json()) as Report;
  const calls = [...tools.values()].reduce((sum, count) => sum + count, 0);
  for (const policy of [`{"rules":${recorded}}`, cedar("corpus/v1", tools.keys())]) {
    // Cedar has no policy set without policies: a run without calls has none to permit.
    if (calls === 0 && policy.includes("cedar")) continue;
    const same = await recheck(policy);
    expect(same).toMatchObject({ same: true, rechecked: calls, differences: 0, complete: true });
    expect(same.identity).toBe(calls === 0 ? "unknown" : "unchanged");
  }
  const [target] = tools;
  if (target === undefined) return;
  const strictRules = `{"rules":${rules("corpus/strict", tools.keys(), target[0])}}`;
  for (const policy of [strictRules, cedar("corpus/strict", tools.keys(), target[0])]) {
    const strict = await recheck(policy);
    expect(strict).toMatchObject({ same: false, identity: "changed", differences: target[1] });
    const different = strict.evaluations.filter(({ result }) => result === "different");
    expect(different.map(({ tool }) => tool)).toEqual(Array.from({ length: target[1] }, () => target[0]));
    // A failure would differ too, and deny nothing.
    expect(different.every(({ rechecked }) => rechecked?.outcome === "deny")).toBe(true);
  }
}
