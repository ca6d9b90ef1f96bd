/**
 * The runs of the corpus, imported under one policy, for tests that re-check them all at once.
 *
 * @module
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { importRuns } from "../../../cli/import/index.ts";
import type { ImportedRun, ImportFormat } from "../../../cli/import/types.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { rulesPolicy } from "../../../shared/recheck/rules.ts";
import { hasShared, sharedPath } from "../../support/shared-files.ts";

const SOURCES: readonly [ImportFormat, string][] = [
  ["agentdojo", "corpus/agentdojo/runs"],
  ["openai-chat", "corpus/tau-bench/runs"],
  ["swe-agent", "corpus/swe-agent"],
  ["inspect", "corpus/inspect_ai"],
  ["claude-code", "corpus/claude-code/daaain-claude-code-log"],
  ["claude-code", "corpus/claude-code/simonw-claude-code-transcripts"],
];

export interface CorpusFile {
  readonly format: ImportFormat;
  readonly path: string;
  /** Name of the principal that its runs are sent to. */
  readonly principal: string;
}

export function corpusFiles(): CorpusFile[] {
  return SOURCES.filter(([, folder]) => hasShared(folder)).flatMap(([format, folder]) =>
    readdirSync(sharedPath(folder))
      .filter((name) => [".json", ".jsonl", ".traj", ".eval"].includes(extname(name)))
      .filter((name) => statSync(join(sharedPath(folder), name)).isFile())
      .map((name) => {
        const path = `${folder}/${name}`;
        return { format, path, principal: path.replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(-120) };
      }),
  );
}

/** The runs of a file; under a policy, each call is preceded by what it decided. */
export async function runsOf({ format, path }: CorpusFile, policy?: string): Promise<ImportedRun[]> {
  const runs: ImportedRun[] = [];
  const options = {
    crypto: nativeCrypto,
    ...(policy === undefined ? {} : { policy: rulesPolicy(policy, nativeCrypto) }),
  };
  for await (const run of importRuns(format, readFileSync(sharedPath(path)), options)) runs.push(run);
  return runs;
}

/** The tools that a run calls, each with its number of calls. */
export function callsOf(run: ImportedRun): Map<string, number> {
  const calls = new Map<string, number>();
  for (const text of run.entries) {
    const { kind, action } = JSON.parse(text) as { kind: string; action: { tool?: string } };
    if (kind === "tool.call.started" && action.tool !== undefined) {
      calls.set(action.tool, (calls.get(action.tool) ?? 0) + 1);
    }
  }
  return calls;
}

/** Allows the tools by name, but for those that it denies. */
export function allowing(id: string, tools: Iterable<string>, denied: readonly string[] = []): string {
  const rules = [...tools].map((name) => [
    name,
    { side_effect: "read_only", ...(denied.includes(name) ? { deny: true } : {}) },
  ]);
  return JSON.stringify({
    policy_id: id,
    side_effects: { read_only: "allow" },
    tools: Object.fromEntries(rules),
  });
}
