import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ImportedRun } from "../../../cli/import/index.ts";
import { type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import { describeWithShared, sharedPath } from "../../support/shared-files.ts";
import { callsOf, expectSound, kindsOf, ofKind, runOf, runsOf, seen } from "./support.ts";

/** The rows as the entries hold them: what an audit of the log would be computed from. */
function rowsOf(run: ImportedRun): { row: string; events: string[] } {
  const raw = (text: string): JsonValue => {
    const at = (value: JsonValue | undefined, name: string): JsonValue | undefined =>
      (value as Map<string, JsonValue>).get(name);
    return at(at(at(parseJsonValue(text), "action"), "extra"), "langbot") ?? null;
  };
  return {
    row: jsonText(raw(run.entries.at(-1)!)),
    events: run.entries.slice(1, -1).map((text) => jsonText(raw(text))),
  };
}

const event = (sequence: number | string, type: string, data: unknown, more: object = {}): object => ({
  sequence,
  type,
  data_json: typeof data === "string" ? data : JSON.stringify(data),
  ...more,
});
const file = (events: object[], run: object = {}): string =>
  JSON.stringify({
    run: { run_id: "r-1", status: "completed", status_reason: null, authorization_json: "{}", ...run },
    events,
  });

describe("langbot", () => {
  it("maps each event type, and keeps each row as it is", async () => {
    const run = await runOf(
      "langbot",
      file(
        [
          event(
            1,
            "tool.call.started",
            { tool_call_id: "c1", tool_name: "read", parameters: { n: 1 } },
            { created_at: "2026-09-29 10:00:01.500000", source: "runner" },
          ),
          event(2, "message.delta", { chunk: { text: "a" } }),
          event(3, "tool.call.completed", {
            tool_call_id: "c1",
            tool_name: "read",
            result: { ok: true },
            error: null,
          }),
          event(4, "tool.call.completed", {
            tool_call_id: "c9",
            tool_name: "write",
            result: null,
            error: "denied",
          }),
          event(5, "message.completed", { message: { role: "assistant" } }),
          event(6, "state.updated", { scope: "runner", key: "k", value: 5 }),
          event(7, "action.requested", { action: "send", target: { id: 1 }, payload: null }),
          event(
            8,
            "admin.cancel",
            { action: "cancel", caller_plugin_identity: "p", permission: "run.cancel", target_run_id: "r-1" },
            { source: "host" },
          ),
          event(9, "steering.injected", { text: "stop" }),
          event(10, "something.new", { a: 1 }),
          event(11, "run.failed", { error: "boom", code: "runner.error", retryable: false }),
          event(12, "run.completed", { finish_reason: "stop" }),
        ],
        {
          created_at: "2026-09-29 10:00:00.000000",
          finished_at: "2026-09-29 10:00:30.000000",
          runner_id: "plugin:x",
        },
      ),
    );
    expectSound(run);
    expect(kindsOf(run)).toEqual([
      "run.created",
      "tool.call.started",
      "message.delta",
      "tool.call.completed",
      "tool.call.completed",
      "message.completed",
      "state.updated",
      "action.requested",
      "admin.request",
      "steering.injected",
      "state.updated",
      "run.failed",
      "run.completed",
      "run.status",
    ]);
    expect(run.run).toBe("r-1");
    expect(seen(run).map(({ action }) => action["imported.seq"])).toEqual([
      undefined,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      8,
      9,
      10,
      11,
      12,
      undefined,
    ]);
    expect(callsOf(run)).toEqual(["m1.c0 read -> success"]);
    expect(ofKind(run, "tool.call.completed").map(({ outcome }) => outcome)).toEqual([
      { status: "success", result: { ok: true } },
      { status: "failure", error: "denied", result: null },
    ]);
    expect(seen(run)[8]?.action).toMatchObject({
      method: "cancel",
      required_capability: "run.cancel",
      target_run_id: "r-1",
      params: { caller_plugin_identity: "p" },
    });
    expect(seen(run)[10]?.action).toMatchObject({
      scope: "langbot.event",
      key: "something.new",
      value: { a: 1 },
    });
    expect(seen(run)[11]?.action).toMatchObject({ error: "boom", code: "runner.error", retryable: false });
    expect(seen(run).at(-1)?.action).toMatchObject({ status: "completed", runner_id: "plugin:x" });
    // LangBot's tables hold UTC without a zone.
    expect(
      seen(run)
        .map((entry) => entry.occurred_at)
        .filter((time) => time !== undefined),
    ).toEqual(["2026-09-29T10:00:00.000000Z", "2026-09-29T10:00:01.500000Z", "2026-09-29T10:00:30.000000Z"]);
  });

  it("keeps payloads that do not decode as text", async () => {
    const broken = '{"tool_call_id":';
    const types = [
      "tool.call.started",
      "tool.call.completed",
      "message.delta",
      "message.completed",
      "state.updated",
      "action.requested",
      "run.completed",
      "run.failed",
      "steering.dropped",
      "admin.x",
      "other",
    ];
    const run = await runOf(
      "langbot",
      file(
        types.map((type, at) => event(at + 1, type, broken)),
        { authorization_json: "{bad" },
      ),
    );
    expectSound(run);
    expect(ofKind(run, "tool.call.started")[0]?.action).toMatchObject({ tool: "", args: broken });
    expect(ofKind(run, "tool.call.completed")[0]).toMatchObject({
      action: { tool: "" },
      outcome: { status: "unknown", result: broken },
    });
    expect(ofKind(run, "message.delta")[0]?.action.chunk).toBe(broken);
    expect(seen(run)[0]?.action.authorization).toBeUndefined();
    expect(seen(run)[0]?.action.extra.langbot.authorization_json).toBe("{bad");
    expect(
      seen(run)
        .slice(1, -1)
        .map(({ action }) => action.extra.langbot.data_json),
    ).toEqual(types.map(() => broken));
    expect(run.notes).toContain("events whose data_json is no JSON are kept as text");
  });

  it.each(["null", "[]", "7", '""', "", '"text"'])(
    "takes the payload %j, which is no object",
    async (data) => {
      const run = await runOf(
        "langbot",
        file([
          event(1, "tool.call.started", data),
          event(2, "run.failed", data),
          event(3, "state.updated", data),
        ]),
      );
      expectSound(run);
      expect(
        seen(run)
          .slice(1, -1)
          .map(({ action }) => action.extra.langbot.data_json),
      ).toEqual([data, data, data]);
    },
  );

  it("orders by sequence, and leaves rows without one where they are", async () => {
    const run = await runOf(
      "langbot",
      file([event(2, "run.completed", {}), event(1, "message.delta", { chunk: 1 })]),
    );
    expect(kindsOf(run).slice(1, -1)).toEqual(["message.delta", "run.completed"]);
    const odd = await runOf(
      "langbot",
      file([event(2, "run.completed", {}), event("1", "message.delta", { chunk: 1 })]),
    );
    expectSound(odd);
    const start = { tool_name: "read" };
    const twice = await runOf(
      "langbot",
      file([event(7, "tool.call.started", start), event(7, "tool.call.started", start)]),
    );
    expectSound(twice);
    expect(callsOf(twice)).toEqual(["m0.c0 read -> none", "m1.c0 read -> none"]);
    expect(kindsOf(odd).slice(1, -1)).toEqual(["run.completed", "message.delta"]);
  });

  it("a ledger that went on gives its old events again, and new ones", async () => {
    const first = [event(1, "message.delta", { chunk: 1 })];
    const before = await runOf("langbot", file(first, { status: "running" }));
    const after = await runOf("langbot", file([...first, event(2, "run.completed", {})]));
    expect(after.entries.slice(0, 2)).toEqual(before.entries.slice(0, 2));
    expect(after.entries.at(-1)).not.toBe(before.entries.at(-1));
  });

  it("a status that is missing is unknown, and types of columns do not matter", async () => {
    const run = await runOf(
      "langbot",
      file([], {
        status: null,
        status_reason: 7,
        created_at: 1234,
        usage_json: "{bad",
        cost_json: '{"usd":1.50}',
      }),
    );
    expectSound(run);
    expect(ofKind(run, "run.status")[0]?.action).toMatchObject({ status: "unknown", cost: { usd: 1.5 } });
    expect(run.entries.at(-1)).toContain('"cost":{"usd":1.50}');
  });
});

describeWithShared("the ledger audit's fixtures", "oracles/langbot", () => {
  const folder = sharedPath("oracles/langbot");
  const names = readdirSync(folder);
  const withRun = names.filter(
    (name) => readFileSync(`${folder}/${name}`, "utf8").includes('"run_id"') && !name.startsWith("s"),
  );

  it("are 34, of which 30 hold rows", () => {
    expect([names.length, withRun.length]).toEqual([34, 30]);
  });

  it.each(names)("%s: every row can be read back from the entries, to the letter", async (name) => {
    const text = readFileSync(`${folder}/${name}`, "utf8");
    const source = parseJsonValue(text) as Map<string, JsonValue>;
    const runs = await runsOf("langbot", text);
    if (!source.has("run")) {
      expect(runs).toEqual([]);
      return;
    }
    const [run] = runs;
    expectSound(run!);
    const { row, events } = rowsOf(run!);
    expect(row).toBe(jsonText(source.get("run")!));
    expect(events).toEqual((source.get("events") as JsonValue[]).map(jsonText));
    expect(await runsOf("langbot", text)).toEqual(runs);
  });
});
