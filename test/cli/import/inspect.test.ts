import { crc32, deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { callsOf, expectSound, kindsOf, ofKind, runOf, runsOf, seen } from "./support.ts";

const at = (second: number): string => `2026-05-01T10:00:${String(second).padStart(2, "0")}.250000+02:00`;
const HASH = "0123456789abcdef0123456789abcdef";

const toolCall = (id: string, name: string, args: object = {}): object => ({
  id,
  function: name,
  arguments: args,
});
const model = (second: number, calls: object[], more: object = {}): object => ({
  event: "model",
  timestamp: at(second),
  completed: at(second + 1),
  model: "provider/m",
  input: [{ id: "i1", role: "user", content: `attachment://${HASH}` }],
  tools: [{ name: "look", description: "Looks.", parameters: { type: "object" } }],
  output: {
    model: "m-2026",
    choices: [
      {
        message: { id: `o${second}`, role: "assistant", content: "Hm.", tool_calls: calls },
        stop_reason: "tool_calls",
      },
    ],
    usage: { input_tokens: 10, output_tokens: 3, input_tokens_cache_read: 4 },
  },
  call: { request: {}, response: { id: `resp-${second}` } },
  ...more,
});
const toolEvent = (from: number, to: number, id: string, name: string, more: object = {}): object => ({
  event: "tool",
  id,
  function: name,
  arguments: { q: 1.0 },
  timestamp: at(from),
  completed: at(to),
  result: "found",
  events: [],
  ...more,
});
const sample = (events: object[], more: object = {}): object => ({
  id: "s1",
  epoch: 2,
  input: `attachment://${HASH}`,
  target: "T",
  messages: [],
  scores: { match: { value: "C" } },
  events,
  attachments: { [HASH]: "The long input." },
  ...more,
});
/** A log; 1.0 is written in by hand, because JSON.stringify has no way to. */
const log = (...samples: object[]): string =>
  JSON.stringify({
    version: 2,
    status: "success",
    eval: { eval_id: "E1", task: "t", model: "provider/m", packages: {} },
    samples,
  }).replaceAll('{"q":1}', '{"q":1.0}');

describe("inspect events", () => {
  it("become exchanges and calls with their own times, attachments back in place", async () => {
    const run = await runOf(
      "inspect",
      log(sample([model(1, [toolCall("c1", "look")]), toolEvent(3, 4, "c1", "look"), model(5, [])])),
    );
    expectSound(run);
    expect(kindsOf(run)).toEqual([
      "run.created",
      "message.completed",
      "model.dispatched",
      "model.completed",
      "tool.call.started",
      "tool.call.completed",
      "model.dispatched",
      "model.completed",
      "run.completed",
    ]);
    expect(run.run).toMatch(/^inspect:E1:s1:epoch2:[0-9a-f]{16}$/);
    const [created, message, dispatched, completed, started, done] = seen(run);
    expect(created?.action).toMatchObject({ goal: "The long input.", tools: [run.specs[0]?.hash] });
    expect(message?.action.message).toEqual({ role: "user", content: "The long input." });
    expect([dispatched, completed, started, done].map((entry) => entry?.occurred_at)).toEqual([
      at(1),
      at(2),
      at(3),
      at(4),
    ]);
    expect(dispatched?.action.model).toBe("provider/m");
    expect(completed?.action).toMatchObject({
      model: "m-2026",
      input_tokens: 10,
      output_tokens: 3,
      cached_input_tokens: 4,
      provider_request_id: "resp-1",
      finish_reason: "tool_calls",
    });
    expect(started).toMatchObject({ call: "m0.c0", action: { tool_call_id: "c1", args: { q: 1 } } });
    expect(run.entries[4]).toContain('"args":{"q":1.0}');
    expect(ofKind(run, "run.completed")[0]?.action.extra.labels).toMatchObject({
      scores: { match: { value: "C" } },
      target: "T",
    });
  });

  it("a completion comes after what happened while the tool was at work", async () => {
    const run = await runOf(
      "inspect",
      log(
        sample([
          model(1, [toolCall("c1", "agent"), toolCall("c2", "look")]),
          toolEvent(2, 9, "c1", "agent"),
          { event: "sandbox", action: "exec", cmd: "ls -l", result: 1, output: "no", timestamp: at(3) },
          { event: "sandbox", action: "read_file", file: "/etc/x", timestamp: at(3) },
          model(4, []),
          toolEvent(6, 7, "c2", "look", { error: { type: "timeout", message: "took too long" }, result: "" }),
          { event: "score", score: {}, timestamp: at(8) },
          model(10, []),
        ]),
      ),
    );
    expectSound(run);
    expect(
      seen(run)
        .slice(4, -3)
        .map(({ kind, call }) => [kind, call]),
    ).toEqual([
      ["tool.call.started", "m0.c0"],
      ["process.spawn", "m0.c0"],
      ["file.read", "m0.c0"],
      ["model.dispatched", undefined],
      ["model.completed", undefined],
      ["tool.call.started", "m0.c1"],
      ["tool.call.completed", "m0.c1"],
      ["tool.call.completed", "m0.c0"],
    ]);
    expect(ofKind(run, "process.spawn")[0]).toMatchObject({
      action: { command: "ls -l", extra: { output: "no" } },
      outcome: { status: "failure" },
    });
    expect(ofKind(run, "tool.call.completed")[0]).toMatchObject({
      outcome: { status: "failure", error: "took too long" },
      action: { extra: { error_type: "timeout" } },
    });
  });

  it("a tool that was cut off has no completion; a call that nobody made is noted, not invented", async () => {
    const run = await runOf(
      "inspect",
      log(
        sample([
          model(1, [toolCall("c1", "look"), toolCall("c2", "never")]),
          toolEvent(2, 3, "c1", "look", { completed: undefined, result: "" }),
        ]),
      ),
    );
    expectSound(run);
    expect(callsOf(run)).toEqual(["m0.c0 look -> none"]);
    expect(run.notes).toContain("1 call was asked for and never made");
  });

  it("reads nested events, agents, failures of models, and messages from the pool", async () => {
    const run = await runOf(
      "inspect",
      log(
        sample(
          [
            { event: "span_begin", id: "sp1", type: "agent", name: "helper", timestamp: at(0) },
            toolEvent(1, 5, "x", "agent", { events: [model(2, [], { input: [], input_refs: [[0, 2]] })] }),
            model(6, [], { error: "overloaded", output: { choices: [] } }),
            { event: "state", changes: [] },
            { event: "error", error: { message: "solver broke" } },
            { event: "input", input: "typed by a person", timestamp: at(9) },
          ],
          {
            error: { message: "sample broke", traceback: "..." },
            message_pool: [
              { role: "system", content: "Be good." },
              { role: "user", content: "Hi." },
            ],
          },
        ),
      ),
    );
    expectSound(run);
    expect(kindsOf(run)).toEqual([
      "run.created",
      "agent.spawned",
      "tool.call.started",
      "message.completed",
      "message.completed",
      "model.dispatched",
      "model.completed",
      "tool.call.completed",
      "message.completed",
      "model.dispatched",
      "model.failed",
      "step.failed",
      "message.completed",
      "run.failed",
    ]);
    expect(ofKind(run, "model.failed")[0]?.outcome).toEqual({ status: "failure", error: "overloaded" });
    expect(ofKind(run, "run.failed")[0]?.action).toMatchObject({ error: "sample broke" });
    expect(run.notes).toContain("events of type state are not imported: 1");
  });

  it("events without a log around them are a run that says nothing of its end", async () => {
    const run = await runOf(
      "inspect",
      JSON.stringify({ description: "fixture", events: [model(1, [])], expected: {} }),
    );
    expectSound(run);
    expect(kindsOf(run).at(-1)).toBe("model.completed");
  });
});

describe("inspect messages", () => {
  it("are the source where a sample has no events", async () => {
    const messages = [
      { role: "user", content: "Go." },
      { role: "assistant", content: "", tool_calls: [toolCall("c1", "look", { a: 5.0 })] },
      {
        role: "tool",
        content: "",
        tool_call_id: "c1",
        function: "look",
        error: { type: "parsing", message: "bad arguments" },
      },
    ];
    const run = await runOf("inspect", log(sample([], { input: messages.slice(0, 1), messages })));
    expectSound(run);
    expect(callsOf(run)).toEqual(["m1.c0 look -> failure"]);
    expect(ofKind(run, "tool.call.completed")[0]).toMatchObject({
      outcome: { error: "bad arguments" },
      action: { extra: { error_type: "parsing" } },
    });
    expect(seen(run)[0]?.action.goal).toBe("Go.");
  });

  it("a log without samples gives no run", async () => {
    expect(await runsOf("inspect", log())).toEqual([]);
    expect(await runsOf("inspect", "not json")).toEqual([]);
  });
});

describe("inspect archives", () => {
  /** An .eval file: deflated members and a directory. */
  function archive(files: Record<string, string>): Uint8Array {
    const bodies: Buffer[] = [];
    const directory: Buffer[] = [];
    let offset = 0;
    for (const [name, text] of Object.entries(files)) {
      const content = Buffer.from(text);
      const data = deflateRawSync(content);
      const fields = Buffer.alloc(26);
      fields.writeUInt16LE(8, 4);
      fields.writeUInt32LE(crc32(content), 10);
      fields.writeUInt32LE(data.length, 14);
      fields.writeUInt32LE(content.length, 18);
      fields.writeUInt16LE(name.length, 22);
      const tail = Buffer.alloc(14);
      tail.writeUInt32LE(offset, 10);
      directory.push(
        Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, tail, Buffer.from(name)]),
      );
      bodies.push(Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, Buffer.from(name), data]));
      offset += 30 + name.length + data.length;
    }
    const list = Buffer.concat(directory);
    const end = Buffer.alloc(22);
    end.write("PK\x05\x06", 0, "latin1");
    end.writeUInt16LE(directory.length, 10);
    end.writeUInt32LE(list.length, 12);
    end.writeUInt32LE(offset, 16);
    return Buffer.concat([...bodies, list, end]);
  }
  const one = sample([model(1, [toolCall("c1", "look")]), toolEvent(3, 4, "c1", "look")]);
  const header = JSON.parse(log());

  it("give the same entries as the log in one document", async () => {
    const run = await runOf(
      "inspect",
      archive({
        "_journal/start.json": "{}",
        "samples/s1_epoch_2.json": JSON.stringify(one).replaceAll('{"q":1}', '{"q":1.0}'),
        "summaries.json": "[]",
        "header.json": JSON.stringify(header),
      }),
    );
    expect(run).toEqual(await runOf("inspect", log(one)));
  });

  it("of an evaluation that did not end: the journal stands in for the header", async () => {
    const [first, second] = await runsOf(
      "inspect",
      archive({
        "_journal/start.json": JSON.stringify({ eval: header.eval }),
        "samples/a.json": JSON.stringify(one),
        "samples/b.json": JSON.stringify({ ...one, id: "s2" }),
        "samples/c.json": "{cut",
      }),
    );
    expectSound(first!);
    expect(first!.run).toMatch(/^inspect:E1:s1:/);
    expect(first!.notes[0]).toBe("the archive has no header: the evaluation did not end");
    expect(ofKind(second!, "run.completed")).toEqual([]);
    expect(ofKind(second!, "run.status")[0]?.action.status).toBe("unknown");
  });

  it("that are damaged are refused", async () => {
    const bytes = archive({ "header.json": "{}" });
    await expect(runsOf("inspect", bytes.subarray(0, bytes.length - 4))).rejects.toMatchObject({
      code: "import-zip",
    });
  });
});
