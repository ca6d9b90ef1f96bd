import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { parseBatch } from "../../../shared/entry/parse-batch.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import { approvalHash, contentHash } from "../../../shared/recheck/hash.ts";
import { passesGate } from "../../../shared/recheck/report.ts";
import { reportText } from "../../../shared/recheck/text.ts";
import { recheckEntries, rules } from "./recheck-support.ts";
import type { SeenEntry } from "./support.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "examples");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const tools = readdirSync(join(root, "tools")).map((name) => read(`tools/${name}`));
const specs = new Map(tools.map((text) => [contentHash(nativeCrypto, text), text]));
const runs = readdirSync(join(root, "runs"))
  .filter((name) => name.endsWith(".ndjson"))
  .map((name) => [name.slice(0, -".ndjson".length), read(`runs/${name}`).trim().split("\n")] as const);
const parsed = (lines: readonly string[]): SeenEntry[] => lines.map((line) => JSON.parse(line) as SeenEntry);

describe("the example runs", () => {
  it("are three or more, and cover the kinds of a run with tool calls, policy and approvals", () => {
    expect(runs.length).toBeGreaterThanOrEqual(3);
    const kinds = new Set(runs.flatMap(([, lines]) => parsed(lines).map(({ kind }) => kind)));
    for (const kind of [
      "run.created",
      "model.dispatched",
      "model.completed",
      "message.completed",
      "step.started",
      "step.decided",
      "step.failed",
      "policy.evaluated",
      "approval.requested",
      "approval.granted",
      "approval.denied",
      "run.resumed",
      "tool.call.started",
      "tool.call.completed",
      "security.violation",
      "run.completed",
    ]) {
      expect(kinds).toContain(kind);
    }
  });

  it.each(runs)("%s: the log accepts it as one request, ids once, order and time forward", (name, lines) => {
    const { entries } = parseBatch(new TextEncoder().encode(lines.join("\n")), "ndjson", {
      crypto: nativeCrypto,
      credential: new Uint8Array(16),
      defaultReporter: "agent",
      writer: "client",
      random: (count) => new Uint8Array(count),
      newId: () => "no-id-was-given",
    });
    expect(entries.filter((entry) => !entry.ok)).toEqual([]);
    const run = parsed(lines);
    expect(new Set(run.map(({ id }) => id)).size).toBe(lines.length);
    expect(run.map((entry) => entry.run)).toEqual(lines.map(() => name));
    const times = run.map((entry) => entry.occurred_at!);
    expect(times).toEqual([...times].sort());
  });

  it.each(runs)(
    "%s: under the recorded policy every decision is the same, and the strict gate passes",
    (_, lines) => {
      const report = recheckEntries(lines, rules(read("policies/default.json")), specs);
      expect(report.identity).toBe("unchanged");
      expect(report.notes).toEqual([]);
      expect(report.evaluations.map(({ detail, result }) => [result, detail])).toEqual(
        report.evaluations.map(() => ["same", ""]),
      );
      expect(passesGate("strict", [report])).toBe(true);
      // The reasons are never compared by a re-check; here they are the policy's own too.
      expect(report.evaluations.map(({ recorded }) => recorded)).toEqual(
        report.evaluations.map(({ rechecked }) => rechecked),
      );
    },
  );

  it.each([
    ["refund-10417", ["refund_create", "refund_create", "refund_create", "mail_send", "mail_send"]],
    ["coding-date-fix", ["shell"]],
    ["research-oak-boards", ["mail_send"]],
  ])("%s: the stricter policy names the steps that it would have stopped", (name, stopped) => {
    const lines = runs.find(([one]) => one === name)![1];
    const report = recheckEntries(lines, rules(read("policies/strict.json")), specs);
    const different = report.evaluations.filter(({ result }) => result === "different");
    expect(different.map(({ tool }) => tool)).toEqual(stopped);
    expect(different.map(({ rechecked }) => rechecked?.outcome)).toEqual(stopped.map(() => "deny"));
    expect(passesGate("proxy", [report])).toBe(false);
    expect(reportText(report)).toContain('policy changed: recorded "default/v1", given "strict/v1"');
  });

  it.each(runs)("%s: each view counts what came before it", (_, lines) => {
    const count = {
      model_calls: 0,
      input_tokens: 0,
      output_tokens: 0,
      cached_input_tokens: 0,
      estimated_cost_micros: 0,
    };
    let [steps, approvals] = [0, 0];
    for (const { kind, action } of parsed(lines)) {
      if (kind === "step.started") steps += 1;
      if (kind === "approval.requested") approvals += 1;
      if (kind === "model.completed") {
        count.model_calls += 1;
        count.input_tokens += action.input_tokens;
        count.output_tokens += action.output_tokens;
        count.cached_input_tokens += action.cached_input_tokens;
        count.estimated_cost_micros += action.estimated_cost_micros;
      }
      if (kind !== "policy.evaluated") continue;
      // The step at hand has begun and is not one of those that the policy is shown.
      expect(action.view).toMatchObject({ ...count, step_count: steps - 1, steps: steps - 1, approvals });
    }
  });

  it.each(runs)("%s: each approval is bound to its request by the approval hash", (_, lines) => {
    let asked: Map<string, JsonValue> | undefined;
    for (const line of lines) {
      const entry = parseJsonValue(line) as Map<string, JsonValue>;
      const action = entry.get("action") as Map<string, JsonValue>;
      if (entry.get("kind") === "policy.evaluated") asked = action;
      if (entry.get("kind") !== "approval.requested") continue;
      const spec = specs.get(asked?.get("spec_hash") as string);
      expect(action.get("hash")).toBe(
        approvalHash(nativeCrypto, {
          kind: action.get("kind") as string,
          capability: jsonText(action.get("capability")!),
          presentation: jsonText(action.get("presentation")!),
          runId: entry.get("run") as string,
          stepId: entry.get("step") as string,
          spec: canonicalJson(spec!),
          args: jsonText(asked!.get("args")!),
        }),
      );
    }
  });

  it("keeps amounts as they were sent", () => {
    const lines = runs.find(([name]) => name === "refund-10417")![1].join("\n");
    expect(lines).toContain('"amount":64.90,');
    expect(lines).toContain('"amount":649.0,');
  });
});
