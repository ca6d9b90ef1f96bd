import { describe, expect, it } from "vitest";
import { jsonText, parseJsonValue } from "../../../shared/json/value.ts";
import {
  ask,
  assistant,
  call,
  callsOf,
  chat,
  expectSound,
  kindsOf,
  ofKind,
  runOf,
  runsOf,
  seen,
  tool,
} from "./support.ts";

describe("openai-chat", () => {
  it("makes of one exchange with a call: dispatched, completed, started, completed, and of the end nothing", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        { role: "system", content: "You help." },
        ask,
        assistant(call("c1", "look", "{}")),
        tool("c1", "seen"),
        {
          role: "assistant",
          content: "Done.",
        },
      ),
    );
    expectSound(run);
    expect(kindsOf(run)).toEqual([
      "run.created",
      "message.completed",
      "message.completed",
      "model.dispatched",
      "model.completed",
      "tool.call.started",
      "tool.call.completed",
      "model.dispatched",
      "model.completed",
    ]);
    expect(seen(run)[0]?.action.goal).toBe("Do it.");
    expect(ofKind(run, "model.completed").at(-1)?.outcome).toEqual({ status: "success", result: "Done." });
    expect(ofKind(run, "tool.call.completed")[0]).toMatchObject({
      step: "m2.c0",
      call: "m2.c0",
      action: { tool: "look", tool_call_id: "c1" },
      outcome: { status: "success", result: "seen" },
    });
    expect(run.notes).toEqual([]);
  });

  it("has no times where the source has none, and the source's own where it has", async () => {
    const bare = await runOf(
      "openai-chat",
      chat(ask, assistant(call("c1", "look", "{}")), tool("c1", "seen")),
    );
    expect(seen(bare).filter((entry) => entry.occurred_at !== undefined)).toEqual([]);
    const timed = await runOf(
      "openai-chat",
      chat({ ...ask, timestamp: "2026-01-02T03:04:05.123456+01:00" }, { ...ask, timestamp: "yesterday" }),
    );
    expect(ofKind(timed, "message.completed").map((entry) => entry.occurred_at)).toEqual([
      "2026-01-02T03:04:05.123456+01:00",
      undefined,
    ]);
  });

  it("keeps number literals of arguments, as value and inside text", async () => {
    const literals = '{"a":5.0,"big":12345678901234567890,"e":1e2}';
    const run = await runOf(
      "openai-chat",
      `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"x","arguments":${literals}}},` +
        `{"id":"2","function":{"name":"x","arguments":${JSON.stringify(literals)}}}]}]`,
    );
    const started = run.entries.filter((text) => text.includes("tool.call.started"));
    expect(started.length).toBe(2);
    for (const text of started) expect(text).toContain(`"args":${literals}`);
  });

  it("keeps the text of arguments exactly where their value does not give it back", async () => {
    const texts = [
      '{"a":1}',
      '{ "a": 1 }',
      '{"b":1,"a":2}',
      "[1]",
      "{broken",
      '{"a":1,"a":2}',
      "",
      '{"s":"<&>"}',
    ];
    const run = await runOf(
      "openai-chat",
      chat(assistant(...texts.map((text, at) => call(`c${at}`, "x", text)))),
    );
    expectSound(run);
    expect(
      ofKind(run, "tool.call.started").map(({ action }) => [action.args, action.extra?.args_text]),
    ).toEqual([
      [{ a: 1 }, undefined],
      [{ a: 1 }, '{ "a": 1 }'],
      [{ b: 1, a: 2 }, '{"b":1,"a":2}'],
      // No object, no JSON, or JSON that the log would refuse: the text is the value.
      ["[1]", undefined],
      ["{broken", undefined],
      ['{"a":1,"a":2}', undefined],
      ["", undefined],
      [{ s: "<&>" }, '{"s":"<&>"}'],
    ]);
  });

  it("pairs repeated, empty and missing ids, and notes them", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        assistant(call("", "a", '{"n":1}'), call("", "a", '{"n":2}'), call(null, "b", "{}")),
        tool("", "two", { tool_call: { function: "a", args: { n: 2 } } }),
        tool("", "one", { tool_call: { function: "a", args: { n: 1 } } }),
        tool(null, "bee", { name: "b" }),
        assistant(call("same", "a", "{}")),
        tool("same", "first"),
        assistant(call("same", "b", "{}")),
        tool("same", "second"),
      ),
    );
    const results = new Map(
      ofKind(run, "tool.call.completed").map(({ call, outcome }) => [call, outcome.result]),
    );
    expect([...results]).toEqual([
      ["m0.c1", "two"],
      ["m0.c0", "one"],
      ["m0.c2", "bee"],
      ["m4.c0", "first"],
      ["m6.c0", "second"],
    ]);
    expect(ofKind(run, "tool.call.started").map(({ action }) => action.tool_call_id)).toEqual([
      "",
      "",
      undefined,
      "same",
      "same",
    ]);
    expect(run.notes).toEqual([
      "3 calls have no provider id",
      "1 provider id is used by more than one call",
      "3 results were paired by order, not by id",
    ]);
  });

  it("gives a call without result no completion, and a result without call a completion alone", async () => {
    const run = await runOf(
      "openai-chat",
      chat(tool("c9", "for whom?", { name: "z" }), assistant(call("c1", "a", "{}"))),
    );
    expectSound(run);
    expect(callsOf(run)).toEqual(["m1.c0 a -> none"]);
    expect(ofKind(run, "tool.call.completed")).toMatchObject([
      { call: "m0.c0", action: { tool: "z", tool_call_id: "c9" }, outcome: { status: "success" } },
    ]);
    expect(run.notes).toEqual([
      "1 call has no result: it has no completion",
      "1 result answers no call: its completion stands alone",
    ]);
  });

  it("keeps what a result says of its call where the call says otherwise", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        assistant(call("c1", "a", '{"n":1}')),
        tool("other", "ok", { tool_call: { function: "a", args: { n: 2 } } }),
        assistant(call("c2", "a", '{"n":1}')),
        tool("c2", "ok", { tool_call: { function: "a", args: { n: 1 } }, weight: 3 }),
      ),
    );
    expect(
      ofKind(run, "tool.call.completed").map(({ action }) => [action.tool_call_id, action.extra]),
    ).toEqual([
      ["c1", { result_id: "other", result_args: { n: 2 } }],
      ["c2", { weight: 3 }],
    ]);
    expect(run.notes).toContain("a result's provider id fits no open call; it was paired by its name");
  });

  it("takes a content that starts with Error: for a failure", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        assistant(call("1", "a", "{}"), call("2", "a", "{}")),
        tool("1", "Error: no such user"),
        tool("2", "No Error: fine"),
      ),
    );
    expect(ofKind(run, "tool.call.completed").map(({ outcome }) => outcome)).toEqual([
      { status: "failure", error: "Error: no such user" },
      { status: "success", result: "No Error: fine" },
    ]);
  });

  it("reads function_call, content in parts and a role that it does not know", async () => {
    const run = await runOf(
      "openai-chat",
      chat(
        {
          role: "user",
          content: [
            { type: "text", text: "Two" },
            { type: "image_url", image_url: {} },
            { type: "text", text: "parts" },
          ],
        },
        { role: "assistant", content: null, function_call: { name: "old", arguments: "{}" } },
        { role: "function", name: "old", content: "ok" },
        { role: "developer", content: "Be brief.", weight: 0 },
      ),
    );
    expectSound(run);
    expect(seen(run)[0]?.action.goal).toBe("Two\nparts");
    expect(callsOf(run)).toEqual(["m1.c0 old -> success"]);
    expect(ofKind(run, "message.completed").at(-1)?.action).toEqual({
      message: { role: "developer", content: "Be brief." },
      extra: { weight: 0 },
    });
  });

  it("reads runs as lines, as an array, and one as a document, with the facts beside the messages", async () => {
    const record = { model: "m-1", messages: [ask], task_id: 7, trial: "b/c", reward: 1.0 };
    const other = { messages: [{ role: "user", content: "Else." }] };
    const lines = await runsOf("openai-chat", `${JSON.stringify(record)}\n${JSON.stringify(other)}\n`);
    const array = await runsOf("openai-chat", JSON.stringify([record, other]));
    expect(array).toEqual(lines);
    expect(await runOf("openai-chat", JSON.stringify(record, null, 2))).toEqual(lines[0]);
    expect(lines.map(({ run }) => run)).toEqual([
      expect.stringMatching(/^tau-bench:task7:trialb-c:[0-9a-f]{16}:[0-9a-f]{16}$/),
      expect.stringMatching(/^openai-chat:[0-9a-f]{16}$/),
    ]);
    expect(seen(lines[0]!)[0]?.action.extra).toEqual({ model: "m-1", task_id: 7, trial: "b/c" });
    expect(ofKind(lines[0]!, "run.status")[0]?.action).toEqual({
      status: "unknown",
      reason: "the source does not say how the run ended",
      extra: { labels: { reward: 1 } },
    });
  });

  it("passes over a byte order mark, whatever comes behind it", async () => {
    const records = [{ messages: [ask] }, { messages: [ask, ask] }];
    for (const source of [JSON.stringify(records), records.map((one) => JSON.stringify(one)).join("\n")]) {
      expect((await runsOf("openai-chat", `\ufeff${source}`)).length).toBe(2);
    }
  });

  it("reads messages as lines", async () => {
    const [a, b] = [ask, { role: "assistant", content: "Done." }];
    const lines = await runOf("openai-chat", `${JSON.stringify(a)}\n${JSON.stringify(b)}\n`);
    expect(lines.entries).toEqual((await runOf("openai-chat", chat(a, b))).entries);
  });

  it("passes over what it cannot read, and says so with the run that follows", async () => {
    const good = JSON.stringify({ messages: [ask] });
    const source = [good, "{oops", '{"no":"messages"}', JSON.stringify([ask, 42]), good];
    const runs = await runsOf("openai-chat", source.join("\n"));
    expect(runs.map(({ notes }) => notes)).toEqual([
      [],
      [
        "line 2 is not JSON (cut off?); it is not imported",
        "line 3 holds no list of messages",
        "message 1 has no role; it is not imported",
      ],
      [],
    ]);
    const told: string[] = [];
    await runsOf("openai-chat", `${good}\n${good.slice(0, 30)}`, { onNote: (note) => told.push(note) });
    expect(told).toEqual(["line 2 is not JSON (cut off?); it is not imported"]);
    told.length = 0;
    await runsOf("openai-chat", "no JSON\n".repeat(60), { onNote: (note) => told.push(note) });
    expect([told.length, told[50]]).toEqual([51, "10 more parts of the file could not be read"]);
    for (const source of ["", "[]", "{}", "null", "[1,2]"])
      expect(await runsOf("openai-chat", source)).toEqual([]);
  });
});

describe("names", () => {
  const base = [ask, assistant(call("1", "a", '{"n":1}')), tool("1", "ok")];

  it("a changed file gives another run: nothing of it is taken for what is stored", async () => {
    const before = await runOf("openai-chat", chat(...base));
    const after = await runOf("openai-chat", chat(...base.slice(0, 2), tool("1", "changed")));
    expect(after.run).not.toBe(before.run);
    const stored = new Set(seen(before).map(({ id }) => id));
    expect(seen(after).filter(({ id }) => stored.has(id))).toEqual([]);
  });

  it("the layout of the file changes nothing", async () => {
    const compact = await runOf("openai-chat", chat(...base));
    const spaced = await runOf("openai-chat", `\ufeff${JSON.stringify(base, null, 3)}\r\n`);
    expect(spaced).toEqual(compact);
  });

  it("equal messages are entries of their own", async () => {
    const run = await runOf("openai-chat", chat(ask, ask, ask));
    expect(ofKind(run, "message.completed").length).toBe(3);
    expectSound(run);
  });

  it("entries are canonical JSON behind their id", async () => {
    const run = await runOf("openai-chat", chat(...base));
    for (const text of run.entries) {
      const tree = parseJsonValue(text) as Map<string, ReturnType<typeof parseJsonValue>>;
      const id = tree.get("id");
      tree.delete("id");
      expect(text).toBe(`{"id":${JSON.stringify(id)},${jsonText(tree).slice(1)}`);
    }
  });
});
