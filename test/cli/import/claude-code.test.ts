import { describe, expect, it } from "vitest";
import { callsOf, expectSound, kindsOf, lines, ofKind, runOf, runsOf, seen } from "./support.ts";

describe("claude-code", () => {
  let minute = 0;
  const stamp = (): string => `2026-03-01T10:${String(minute++ % 60).padStart(2, "0")}:00.000Z`;
  const user = (uuid: string, content: unknown, more: object = {}): object => ({
    type: "user",
    uuid,
    sessionId: "s-1",
    timestamp: stamp(),
    message: { role: "user", content },
    ...more,
  });
  const assistant = (uuid: string, id: string, content: unknown[], more: object = {}): object => ({
    type: "assistant",
    uuid,
    sessionId: "s-1",
    timestamp: stamp(),
    requestId: `req_${id}`,
    message: {
      id,
      role: "assistant",
      model: "claude-x",
      content,
      stop_reason: "tool_use",
      usage: { input_tokens: 10, output_tokens: 2, cache_read_input_tokens: 4 },
    },
    ...more,
  });
  const use = (id: string, name: string, input: object = {}): object => ({
    type: "tool_use",
    id,
    name,
    input,
  });
  const result = (id: string, content: unknown, more: object = {}): object => ({
    type: "tool_result",
    tool_use_id: id,
    content,
    ...more,
  });
  const text = (words: string): object => ({ type: "text", text: words });

  it("takes the lines of one model message for one exchange, calls where they stand, times as they are", async () => {
    const run = await runOf(
      "claude-code",
      lines(
        user("u1", "Fix it."),
        assistant("a1", "msg_1", [text("I look.")]),
        assistant("a2", "msg_1", [use("t1", "Read", { path: "x" })]),
        user("u2", [result("t1", "content")]),
        // The same message goes on behind the result: no second exchange.
        assistant("a3", "msg_1", [use("t2", "Bash")]),
        user("u3", [result("t2", [text("Exit code 1")], { is_error: true })], { toolUseResult: { code: 1 } }),
        assistant("a4", "msg_2", [text("Done.")]),
      ),
    );
    expectSound(run);
    expect(kindsOf(run)).toEqual([
      "run.created",
      "message.completed",
      "model.dispatched",
      "model.completed",
      "tool.call.started",
      "tool.call.completed",
      "tool.call.started",
      "tool.call.completed",
      "model.dispatched",
      "model.completed",
    ]);
    expect(callsOf(run)).toEqual(["m2.c0 Read -> success", "m2.c1 Bash -> failure"]);
    expect(ofKind(run, "model.completed")[0]).toMatchObject({
      action: {
        model: "claude-x",
        input_tokens: 10,
        output_tokens: 2,
        cached_input_tokens: 4,
        finish_reason: "tool_use",
        provider_request_id: "req_msg_1",
      },
      outcome: { status: "success", result: [text("I look.")] },
    });
    expect(ofKind(run, "tool.call.completed")[1]).toMatchObject({
      action: { extra: { tool_use_result: { code: 1 } } },
      outcome: { status: "failure", error: "Exit code 1", result: [text("Exit code 1")] },
    });
    expect(run.run).toBe("claude-code:s-1");
    expect(seen(run).every((entry) => entry.session === "s-1")).toBe(true);
    expect(
      seen(run).filter(({ occurred_at, kind }) => occurred_at === undefined && kind !== "model.dispatched"),
    ).toEqual([]);
  });

  it("makes a run of each subagent, and says in the session when it began", async () => {
    const side = { isSidechain: true };
    const runs = await runsOf(
      "claude-code",
      lines(
        user("u1", "Find two things.", { parentUuid: null }),
        assistant("a1", "m1", [
          use("t1", "Task", { prompt: "Find one." }),
          use("t2", "Task", { prompt: "Find another." }),
        ]),
        user("s1", "Find one.", { ...side, parentUuid: null }),
        user("s2", "Find another.", { ...side, parentUuid: null }),
        assistant("s3", "m2", [use("t3", "Grep")], { ...side, parentUuid: "s1" }),
        assistant("s4", "m3", [text("Found.")], { ...side, parentUuid: "s2" }),
        user("s5", [result("t3", "hit")], { ...side, parentUuid: "s3" }),
        user("u2", [result("t1", "one"), result("t2", "another")], { parentUuid: "a1" }),
      ),
    );
    expect(runs.map(({ run, counts }) => [run, counts.calls, counts.results])).toEqual([
      ["claude-code:s-1", 2, 2],
      ["claude-code:s-1:s1", 1, 1],
      ["claude-code:s-1:s2", 0, 0],
    ]);
    for (const run of runs) expectSound(run);
    expect(kindsOf(runs[0]!).slice(-4)).toEqual([
      "agent.spawned",
      "agent.spawned",
      "tool.call.completed",
      "tool.call.completed",
    ]);
    expect(ofKind(runs[0]!, "agent.spawned").map(({ action }) => action)).toEqual([
      { child_run_id: "claude-code:s-1:s1", description: "Find one." },
      { child_run_id: "claude-code:s-1:s2", description: "Find another." },
    ]);
    expect(seen(runs[1]!)[0]?.action.extra.parent_run).toBe("claude-code:s-1");
  });

  it("a session that grew gives its old entries again and new ones: the run keeps its name", async () => {
    const start = [user("u1", "Go."), assistant("a1", "m1", [use("t1", "Read")])];
    const end = [user("u2", [result("t1", "ok")]), assistant("a2", "m2", [text("Done.")])];
    const before = await runOf("claude-code", lines(...start));
    const after = await runOf("claude-code", lines(...start, ...end));
    expect(after.run).toBe(before.run);
    expect(after.entries.slice(0, before.entries.length)).toEqual(before.entries);
    expect(after.entries.length).toBe(before.entries.length + 3);
  });

  it("a line that changed in a session is another entry, never the stored one with other content", async () => {
    const first = user("u1", "Go.");
    const last = user("u2", "Stop.");
    const before = await runOf("claude-code", lines(first, last));
    const after = await runOf(
      "claude-code",
      lines(first, { ...last, message: { role: "user", content: "Wait." } }),
    );
    expect(after.run).toBe(before.run);
    const stored = new Map(before.entries.map((text, at) => [seen(before)[at]?.id, text]));
    const again = after.entries.map((text, at) => [stored.get(seen(after)[at]!.id), text]);
    expect(again.map(([old, text]) => old === text)).toEqual([true, true, false]);
    expect(again[2]?.[0]).toBeUndefined();
  });

  it("reads {loglines}, and names a session without an id by its content", async () => {
    const bare = (entry: object): object => ({ ...entry, sessionId: undefined });
    const run = await runOf(
      "claude-code",
      JSON.stringify({ loglines: [bare(user("u1", "Hi.")), bare(assistant("a1", "m1", [text("Hi.")])), 7] }),
    );
    expectSound(run);
    expect(run.run).toMatch(/^claude-code:unnamed-[0-9a-f]{16}$/);
    expect(run.counts).toMatchObject({ messages: 1, exchanges: 1 });
    expect(run.notes).toEqual(["logline 3 is no object; it is not imported"]);
    const wrapped = { version: 1, loglines: [user("u1", "Hi.")] };
    expect((await runOf("claude-code", JSON.stringify(wrapped, null, 1))).run).toBe("claude-code:s-1");
    // One line, which speaks of loglines, is a session of one line.
    expect((await runOf("claude-code", lines(user("u1", '{"loglines":[]}')))).counts.messages).toBe(1);
  });

  it("keeps sessions of one file apart, and what is no message out", async () => {
    const runs = await runsOf(
      "claude-code",
      `{"broken\n${lines(
        { type: "summary", summary: "Before.", leafUuid: "x" },
        user("u1", "One."),
        { ...user("u2", "Two."), sessionId: "s/2" },
        { type: "file-history-snapshot", sessionId: "s-1" },
        user("u3", undefined),
        user("u4", "<meta>", { isMeta: true }),
        42,
      )}`,
    );
    expect(runs.map(({ run }) => run)).toEqual([
      "claude-code:s-1",
      expect.stringMatching(/^claude-code:s-2:[0-9a-f]{16}$/),
    ]);
    expect(seen(runs[0]!)[0]?.action.goal).toBe("One.");
    expect(ofKind(runs[0]!, "message.completed").map(({ action }) => action.message.role)).toEqual([
      "summary",
      "user",
      "user",
    ]);
    expect(runs[0]!.notes).toEqual([
      "line 1 is not JSON (cut off?); it is not imported",
      "line 8 is no object; it is not imported",
      "line 5 is no message; it is not imported",
      "line 6 is a message without content",
    ]);
  });
});
