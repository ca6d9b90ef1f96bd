/** AgentDojo and SWE-agent: own small fixtures for what is odd in each. */
import { describe, expect, it } from "vitest";
import { callsOf, expectSound, kindsOf, lines, ofKind, runOf, runsOf, seen } from "./support.ts";

describe("agentdojo", () => {
  const exported = {
    index: 4,
    messages: [
      { role: "user", content: "Pay the bill." },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "", type: "function", function: { name: "pay", arguments: { amount: 5.5 } } },
          { id: "", type: "function", function: { name: "pay", arguments: { amount: 7 } } },
        ],
      },
      {
        role: "tool",
        content: "",
        tool_call_id: "",
        tool_call: { function: "pay", args: { amount: 7 }, id: "" },
        error: "ValueError: no money",
      },
      {
        role: "tool",
        content: "paid",
        tool_call_id: "",
        tool_call: { function: "pay", args: { amount: 5.5 }, id: "" },
        error: null,
      },
    ],
    metadata: {
      suite_name: "banking",
      model: "m/1",
      success: false,
      security: true,
      user_task_id: "user_task_1",
      injection_task_id: null,
      attack_type: null,
    },
    annotations: [],
  };
  const header = { metadata: { benchmark: "agent-dojo", accuracy: 0.5, name: "m/1" } };

  it("reads the export with its header line, errors as failures, results by name and arguments", async () => {
    const run = await runOf("agentdojo", lines(header, exported));
    expectSound(run);
    expect(ofKind(run, "tool.call.completed").map(({ call, outcome }) => [call, outcome])).toEqual([
      ["m1.c1", { status: "failure", error: "ValueError: no money" }],
      ["m1.c0", { status: "success", result: "paid" }],
    ]);
    expect(seen(run)[0]?.action).toEqual({
      goal: "Pay the bill.",
      tools: [],
      "imported.system": "agentdojo",
      extra: {
        annotations: [],
        benchmark: header.metadata,
        index: 4,
        metadata: {
          suite_name: "banking",
          model: "m/1",
          user_task_id: "user_task_1",
          injection_task_id: null,
          attack_type: null,
        },
      },
    });
    expect(ofKind(run, "run.status")[0]?.action.extra).toEqual({
      labels: { success: false, security: true },
    });
    expect(run.run).toMatch(/^agentdojo:m-1:banking:user_task_1:none:none:[0-9a-f]{16}:[0-9a-f]{16}$/);
  });

  it("reads upstream's own form: text blocks, function as a string, an error of the run", async () => {
    const run = await runOf(
      "agentdojo",
      JSON.stringify({
        suite_name: "slack",
        pipeline_name: "p-2",
        user_task_id: "user_task_3",
        injection_task_id: "injection_task_1",
        attack_type: "direct",
        injections: { vector_1: "Ignore everything." },
        messages: [
          { role: "user", content: [{ type: "text", content: "Say hi." }] },
          {
            role: "assistant",
            content: [{ type: "text", content: "Hm." }],
            tool_calls: [{ function: "send", args: { to: "Bob" }, id: "c1", placeholder_args: null }],
          },
          {
            role: "tool",
            content: [{ type: "text", content: "sent" }],
            tool_call_id: "c1",
            tool_call: { function: "send", args: { to: "Bob" }, id: "c1" },
            error: null,
          },
        ],
        error: "the provider went away",
        utility: true,
        security: true,
        duration: 1.5,
        benchmark_version: "v1.2",
        evaluation_timestamp: "2026-01-02 03:04:05",
      }),
    );
    expectSound(run);
    expect(callsOf(run)).toEqual(["m1.c0 send -> success"]);
    expect(seen(run)[0]?.action.goal).toBe("Say hi.");
    expect(ofKind(run, "tool.call.started")[0]?.action.extra).toEqual({ placeholder_args: null });
    expect(ofKind(run, "run.failed")[0]?.action).toMatchObject({
      error: "the provider went away",
      extra: { labels: { utility: true, security: true } },
    });
    // A time without a zone is a fact of the record, not a time of an entry.
    expect(seen(run)[0]?.action.extra.metadata.evaluation_timestamp).toBe("2026-01-02 03:04:05");
    expect(seen(run).some((entry) => entry.occurred_at !== undefined)).toBe(false);
  });

  it("reads one run as a document, and passes over what is neither run nor header", async () => {
    expect((await runOf("agentdojo", JSON.stringify(exported, null, 1))).counts.calls).toBe(2);
    const [run] = await runsOf("agentdojo", lines({ other: 1 }, exported));
    expect(run?.notes[0]).toBe("line 1 is neither a run nor a header; it is not imported");
  });
});

describe("swe-agent", () => {
  const system = { role: "system", content: "You fix." };
  const demo = { role: "user", content: "A demonstration.", is_demo: true };
  const task = { role: "user", content: "Fix the bug." };

  it("imports actions that are text as calls of a shell, from the trajectory", async () => {
    const run = await runOf(
      "swe-agent",
      JSON.stringify({
        environment: "main",
        trajectory: [
          {
            action: "ls -F\n",
            observation: "a.py\n",
            response: "I look.",
            thought: "I look.",
            state: "{}",
            execution_time: 0.25,
          },
          {
            action: "python a.py\n",
            observation: "\nEXECUTION TIMED OUT",
            response: "I run.",
            thought: "I run.",
            state: "{}",
          },
          { action: "submit\n", observation: null, response: "Done.", thought: "Done.", state: "{}" },
        ],
        history: [
          system,
          demo,
          task,
          { role: "assistant", content: "I look.", action: "ls -F\n", thought: "I look." },
        ],
        info: { exit_status: "submitted", submission: "diff", model_stats: { api_calls: 3 } },
      }),
    );
    expectSound(run);
    expect(seen(run)[0]?.action.goal).toBe("Fix the bug.");
    expect(ofKind(run, "tool.call.started").map(({ action }) => [action.tool, action.args])).toEqual([
      ["shell", { command: "ls -F\n" }],
      ["shell", { command: "python a.py\n" }],
      ["shell", { command: "submit\n" }],
    ]);
    expect(ofKind(run, "tool.call.completed").map(({ outcome, action }) => [outcome, action.extra])).toEqual([
      [{ status: "success", result: "a.py\n" }, { execution_time: 0.25 }],
      [{ status: "failure", error: "\nEXECUTION TIMED OUT" }, undefined],
    ]);
    expect(run.counts.unanswered).toBe(1);
    expect(ofKind(run, "run.completed")[0]?.action).toMatchObject({ reason: "submitted", steps: 3 });
    expect(ofKind(run, "message.completed")[1]?.action.extra).toEqual({ is_demo: true });
  });

  it("imports actions from a history without a trajectory: the next message is the observation", async () => {
    const run = await runOf(
      "swe-agent",
      JSON.stringify({
        history: [
          system,
          task,
          { role: "assistant", content: "I look.", action: "ls" },
          { role: "user", content: "a.py" },
          { role: "assistant", content: "Done.", action: "submit" },
        ],
      }),
    );
    expectSound(run);
    expect(callsOf(run)).toEqual(["m2.c0 shell -> success", "m3.c0 shell -> none"]);
    expect(kindsOf(run).at(-1)).toBe("tool.call.started");
  });

  it("imports function calls from the history, with the trajectory's whole observations", async () => {
    const run = await runOf(
      "swe-agent",
      JSON.stringify({
        trajectory: [{ action: "ls", observation: "the whole output", execution_time: 1.5 }],
        history: [
          task,
          {
            role: "assistant",
            message_type: "action",
            content: "I look.",
            thought: "I look.",
            action: "ls",
            tool_calls: [
              { id: "c1", type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } },
            ],
          },
          { role: "tool", message_type: "observation", content: "cut...", tool_call_ids: ["c1"] },
        ],
        info: { exit_status: "exit_cost" },
        replay_config: { agent: { model: { name: "gpt-4o" } } },
      }),
    );
    expectSound(run);
    expect(ofKind(run, "tool.call.completed")[0]).toMatchObject({
      call: "m1.c0",
      action: {
        tool: "bash",
        tool_call_id: "c1",
        extra: { execution_time: 1.5, message_type: "observation" },
      },
      outcome: { status: "success", result: "the whole output" },
    });
    expect(ofKind(run, "model.completed")[0]?.action.model).toBe("gpt-4o");
    // An exit status of SWE-agent's own is neither a success nor a failure here.
    expect(ofKind(run, "run.status")[0]?.action).toMatchObject({ status: "exit_cost", reason: "exit_cost" });
  });
});
