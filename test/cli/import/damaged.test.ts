/** Files that are damaged, or of another shape than expected: no importer throws, and what it gives the log accepts. */
import * as fc from "fast-check";
import { describe, it } from "vitest";
import type { ImportFormat } from "../../../cli/import/index.ts";
import { rules } from "./recheck-support.ts";
import { assistant, call, expectSound, runsOf, tool } from "./support.ts";

const messages = [
  { role: "user", content: "Go." },
  assistant(call("c1", "look", '{"a":1}')),
  tool("c1", "seen", { error: null, tool_call: { function: "look", args: { a: 1 } } }),
];
const SOURCES: Record<ImportFormat, unknown> = {
  "openai-chat": { model: "m", task_id: 1, trial: 0, reward: 1, tools: [{ name: "look" }], messages },
  agentdojo: {
    index: 1,
    messages,
    metadata: { suite_name: "s", model: "m", success: true, user_task_id: "u" },
  },
  inspect: {
    status: "success",
    eval: { eval_id: "E", task: "t" },
    samples: [
      {
        id: 1,
        epoch: 1,
        input: "attachment://aa",
        attachments: { aa: "long" },
        error: null,
        scores: { s: { value: "C" } },
        message_pool: [{ role: "user", content: "Hi." }],
        events: [
          { event: "span_begin", type: "agent", id: "s", name: "a", timestamp: "2026-01-01T00:00:00Z" },
          {
            event: "model",
            model: "m",
            input_refs: [[0, 1]],
            tools: [{ name: "look" }],
            output: {
              model: "m",
              choices: [
                {
                  message: {
                    id: "o",
                    content: "x",
                    tool_calls: [{ id: "c", function: "look", arguments: {} }],
                  },
                },
              ],
              usage: { input_tokens: 1 },
            },
            timestamp: "2026-01-01T00:00:01Z",
            completed: "2026-01-01T00:00:02Z",
          },
          {
            event: "tool",
            id: "c",
            function: "look",
            arguments: {},
            result: "r",
            error: null,
            timestamp: "2026-01-01T00:00:03Z",
            completed: "2026-01-01T00:00:05Z",
            events: [],
          },
          { event: "sandbox", action: "exec", cmd: "ls", result: 0, timestamp: "2026-01-01T00:00:04Z" },
        ],
      },
    ],
  },
  "claude-code": {
    loglines: [
      {
        type: "user",
        uuid: "u",
        sessionId: "s",
        timestamp: "2026-01-01T00:00:00Z",
        message: { role: "user", content: "Go." },
      },
      {
        type: "assistant",
        uuid: "a",
        parentUuid: "u",
        sessionId: "s",
        message: {
          id: "m",
          content: [{ type: "tool_use", id: "t", name: "Read", input: {} }],
          usage: { input_tokens: 1 },
        },
      },
      {
        type: "user",
        uuid: "v",
        isSidechain: true,
        sessionId: "s",
        message: { content: [{ type: "tool_result", tool_use_id: "t", content: "r", is_error: true }] },
      },
    ],
  },
  "swe-agent": {
    environment: "main",
    trajectory: [{ action: "ls", observation: "a", response: "r", execution_time: 0.5 }],
    history: messages,
    info: { exit_status: "submitted" },
    replay_config: { agent: { model: { name: "m" } } },
  },
  langbot: {
    run: { run_id: "r", status: "completed", authorization_json: "{}", created_at: "2026-01-01 00:00:00" },
    events: [
      {
        sequence: 1,
        type: "tool.call.started",
        data_json: '{"tool_call_id":"c","tool_name":"look","parameters":{}}',
      },
      { sequence: 2, type: "admin.x", data_json: "{}" },
      { sequence: 3, type: "run.completed", data_json: "{}" },
    ],
  },
};
const policy = rules({ side_effects: { read_only: "allow", remote_mutation: "require_approval" } });

/** The value with the node that `path` leads to replaced. */
function replaced(value: unknown, path: readonly number[], by: unknown): unknown {
  if (path.length === 0 || typeof value !== "object" || value === null) return by;
  const keys = Object.keys(value);
  if (keys.length === 0) return by;
  const key = keys[path[0]! % keys.length]!;
  const inner = replaced((value as Record<string, unknown>)[key], path.slice(1), by);
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner };
}

describe.each(Object.entries(SOURCES) as [ImportFormat, unknown][])("%s", (format, source) => {
  const text = JSON.stringify(source);

  it("takes any JSON in any place", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(40), { maxLength: 8 }),
        fc.jsonValue({ maxDepth: 2 }),
        async (path, by) => {
          const changed = JSON.stringify(replaced(source, path, by));
          for (const run of await runsOf(format, changed, { policy })) expectSound(run);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("takes bytes that were overwritten, and a file that was cut off", async () => {
    const bytes = new TextEncoder().encode(text);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length),
        fc.uint8Array({ maxLength: 6 }),
        fc.nat(bytes.length),
        async (from, by, cut) => {
          const changed = bytes.slice(0, cut < bytes.length / 8 ? cut * 8 : undefined);
          changed.set(by.subarray(0, Math.max(0, changed.length - from)), Math.min(from, changed.length));
          for (const run of await runsOf(format, changed, { policy })) expectSound(run);
        },
      ),
      { numRuns: 300 },
    );
  });
});
