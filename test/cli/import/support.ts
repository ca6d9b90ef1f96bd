/**
 * What the importers' tests share: all the runs of a file, and the ingest path that every entry has to pass.
 *
 * @module
 */
import { expect } from "vitest";
import {
  type ImportedRun,
  type ImportFormat,
  type ImportOptions,
  importRuns,
} from "../../../cli/import/index.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { parseBatch } from "../../../shared/entry/parse-batch.ts";

/** An entry as a test looks at it. Numbers are rounded by JSON.parse: for literals look at the text. */
export interface SeenEntry {
  readonly id: string;
  readonly kind: string;
  readonly run: string;
  readonly session?: string;
  readonly step?: string;
  readonly call?: string;
  readonly occurred_at?: string;
  readonly reporter: string;
  // biome-ignore lint/suspicious/noExplicitAny: content of any kind
  readonly action: any;
  // biome-ignore lint/suspicious/noExplicitAny: content of any kind
  readonly outcome?: any;
}

/** All the runs of a file. */
export async function runsOf(
  format: ImportFormat,
  source: string | Uint8Array,
  options: ImportOptions = {},
): Promise<ImportedRun[]> {
  const bytes = typeof source === "string" ? new TextEncoder().encode(source) : source;
  const runs: ImportedRun[] = [];
  for await (const run of importRuns(format, bytes, { crypto: nativeCrypto, ...options })) runs.push(run);
  return runs;
}

/** The only run of a file. */
export async function runOf(
  format: ImportFormat,
  source: string | Uint8Array,
  options: ImportOptions = {},
): Promise<ImportedRun> {
  const runs = await runsOf(format, source, options);
  expect(runs.length).toBe(1);
  return runs[0]!;
}

export const seen = (run: ImportedRun): SeenEntry[] =>
  run.entries.map((text) => JSON.parse(text) as SeenEntry);

export const kindsOf = (run: ImportedRun): string[] => seen(run).map(({ kind }) => kind);

/** The entries of one kind. */
export const ofKind = (run: ImportedRun, kind: string): SeenEntry[] =>
  seen(run).filter((entry) => entry.kind === kind);

/** Calls and their outcomes in short: `call tool -> status`, or `call tool -> none`. */
export function callsOf(run: ImportedRun): string[] {
  const outcomes = new Map(
    ofKind(run, "tool.call.completed").map((entry) => [entry.call, entry.outcome.status]),
  );
  return ofKind(run, "tool.call.started").map(
    ({ call, action }) => `${call} ${action.tool} -> ${outcomes.get(call) ?? "none"}`,
  );
}

/** What the log says to the entries: every one goes through the parsing, schemas and limits of the real ingest. */
export function refusalsOf(run: ImportedRun): string[] {
  const refusals: string[] = [];
  for (const entry of run.entries) {
    const { entries } = parseBatch(new TextEncoder().encode(entry), "json", {
      crypto: nativeCrypto,
      credential: new Uint8Array(16),
      defaultReporter: "agent",
      writer: "client",
      random: (count) => new Uint8Array(count),
      newId: () => "no-id-was-given",
    });
    for (const parsed of entries) {
      if (!parsed.ok)
        refusals.push(`${parsed.problem.code} at ${parsed.problem.pointer} of ${entry.slice(0, 120)}`);
    }
  }
  return refusals;
}

/** What holds for every imported run. */
export function expectSound(run: ImportedRun): void {
  expect(refusalsOf(run)).toEqual([]);
  const entries = seen(run);
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
  expect(entries[0]?.kind).toBe("run.created");
  for (const entry of entries) {
    expect(entry.run).toBe(run.run);
    expect(entry.reporter).toBe("import");
    expect(entry.id).toMatch(/^imp:[0-9a-f]{40}$/);
  }
  // Every completion names a call, once; a call begins before it is completed, and once.
  const started = ofKind(run, "tool.call.started").map(({ call }) => call);
  const completed = ofKind(run, "tool.call.completed").map(({ call }) => call);
  expect(new Set(started).size).toBe(started.length);
  expect(new Set(completed).size).toBe(completed.length);
}

/** Small chats: messages as OpenAI writes them. */
export const call = (id: string | null, name: string, args: string): object => ({
  ...(id === null ? {} : { id }),
  type: "function",
  function: { name, arguments: args },
});
export const assistant = (...calls: object[]): object => ({
  role: "assistant",
  content: null,
  tool_calls: calls,
});
export const tool = (id: string | null, content: string, more: object = {}): object => ({
  role: "tool",
  ...(id === null ? {} : { tool_call_id: id }),
  content,
  ...more,
});
export const chat = (...messages: object[]): string => JSON.stringify(messages);
export const ask = { role: "user", content: "Do it." };

/** JSONL. */
export const lines = (...entries: unknown[]): string =>
  entries.map((entry) => JSON.stringify(entry)).join("\n");
