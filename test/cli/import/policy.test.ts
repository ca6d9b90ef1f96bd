import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type ImportedRun, importRuns, readToolSpecs } from "../../../cli/import/index.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { contentHash } from "../../../shared/recheck/hash.ts";
import type { Policy } from "../../../shared/recheck/policy.ts";
import { passesGate } from "../../../shared/recheck/report.ts";
import { describeWithShared, sharedPath } from "../../support/shared-files.ts";
import { recheckEntries, rules } from "./recheck-support.ts";
import { expectSound, kindsOf, ofKind, runOf, runsOf } from "./support.ts";

const policy = rules({
  policy_id: "import/v1",
  side_effects: { read_only: "allow", remote_mutation: "require_approval" },
  tools: { wipe: { deny: true } },
});
const tools = readToolSpecs(
  JSON.stringify([
    { name: "look", description: "Looks.", input_schema: {}, side_effect: "read_only", timeout: 0 },
    {
      type: "function",
      function: { name: "send", description: "Sends.", parameters: { type: "object" } },
      side_effect: "remote_mutation",
    },
  ]),
);
const call = (id: string, name: string, args: string): object => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const chat = JSON.stringify([
  { role: "user", content: "Go." },
  { role: "assistant", tool_calls: [call("1", "look", "{}"), call("2", "send", '{"n":5.0,"to":"<b>"}')] },
  { role: "tool", tool_call_id: "1", content: "seen" },
  { role: "tool", tool_call_id: "2", content: "sent" },
  { role: "assistant", content: "And:", tool_calls: [call("3", "wipe", "{}"), call("4", "new", "{}")] },
  { role: "tool", tool_call_id: "3", content: "wiped" },
]);

const stored = (run: ImportedRun): Map<string, string> =>
  new Map(run.specs.map(({ hash, text }) => [hash, text]));

describe("an import with a policy", () => {
  it("puts the decision before each call, and the call happens as it did, denied or not", async () => {
    const run = await runOf("openai-chat", chat, { policy, tools });
    expectSound(run);
    expect(kindsOf(run).filter((kind) => /^(policy|tool)/.test(kind))).toEqual([
      "policy.evaluated",
      "tool.call.started",
      "policy.evaluated",
      "tool.call.started",
      "tool.call.completed",
      "tool.call.completed",
      "policy.evaluated",
      "tool.call.started",
      "policy.evaluated",
      "tool.call.started",
      "tool.call.completed",
    ]);
    const evaluated = ofKind(run, "policy.evaluated");
    expect(
      evaluated.map(({ call, step, action }) => [call, step, action.tool, action.decision.outcome]),
    ).toEqual([
      ["m1.c0", "m1.c0", "look", "allow"],
      ["m1.c1", "m1.c1", "send", "require_approval"],
      ["m4.c0", "m4.c0", "wipe", "deny"],
      // Nobody says what class it has, so no class allows it.
      ["m4.c1", "m4.c1", "new", "deny"],
    ]);
    expect(evaluated[3]?.action.decision.reason).toBe('no policy for side effect ""');
    // The policy is asked now: when the run was is not when it answered.
    expect(evaluated.filter((entry) => entry.occurred_at !== undefined)).toEqual([]);
    expect(evaluated.map(({ action }) => action.policy_id)).toEqual(Array(4).fill("import/v1"));
    expect(run.notes).toContain("2 of the tools have no spec: the evaluations name an empty one");
  });

  it("shows counts of what came before, and names those that nobody counted", async () => {
    const run = await runOf("openai-chat", chat, { policy, tools });
    const views = ofKind(run, "policy.evaluated").map(({ action }) => action.view);
    expect(views.map(({ step_count, steps, model_calls }) => [step_count, steps, model_calls])).toEqual([
      [0, 0, 1],
      [1, 1, 1],
      [2, 2, 2],
      [3, 3, 2],
    ]);
    expect(Object.keys(views[0]).length).toBe(10);
    expect(ofKind(run, "policy.evaluated")[0]?.action.extra).toEqual({
      decided: "at import",
      not_counted: [
        "estimated_cost_micros",
        "active_ms",
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
      ],
    });
  });

  it("sums the tokens that the source counted", async () => {
    const line = (id: string, usage: object): string =>
      JSON.stringify({
        type: "assistant",
        sessionId: "s",
        message: { id, content: [{ type: "tool_use", id, name: "look", input: {} }], usage },
      });
    const run = await runOf(
      "claude-code",
      `${line("a", { input_tokens: 7, output_tokens: 1 })}\n${line("b", { input_tokens: 5 })}`,
      {
        policy,
        tools,
      },
    );
    const evaluated = ofKind(run, "policy.evaluated");
    expect(evaluated.map(({ action }) => [action.view.input_tokens, action.view.output_tokens])).toEqual([
      [7, 1],
      [12, 1],
    ]);
    expect(evaluated[1]?.action.extra.not_counted).toEqual([
      "estimated_cost_micros",
      "active_ms",
      "cached_input_tokens",
    ]);
  });

  it("can be re-checked: the same under the same policy, and the step named under a stricter one", async () => {
    const run = await runOf("openai-chat", chat, { policy, tools });
    const same = recheckEntries(run.entries, policy, stored(run));
    expect(same.evaluations.map(({ result, detail }) => [result, detail])).toEqual(
      Array(4).fill(["same", ""]),
    );
    expect(passesGate("strict", [same])).toBe(true);
    expect(same.identity).toBe("unchanged");
    const strict = rules({
      policy_id: "import/v2",
      side_effects: { read_only: "allow", remote_mutation: "deny" },
    });
    const other = recheckEntries(run.entries, strict, stored(run));
    expect(
      other.evaluations
        .filter(({ result }) => result === "different")
        .map(({ stepId, tool }) => [stepId, tool]),
    ).toEqual([["m1.c1", "send"]]);
  });

  it("gives the specs that it names, by hash, those of tools without a spec too", async () => {
    const run = await runOf("openai-chat", chat, { policy, tools });
    const named = new Set(ofKind(run, "policy.evaluated").map(({ action }) => action.spec_hash));
    expect(new Set(run.specs.map(({ hash }) => hash))).toEqual(named);
    for (const { hash, text } of run.specs) {
      expect(text).toBe(canonicalJson(text));
      expect(contentHash(nativeCrypto, text)).toBe(hash);
    }
    expect(ofKind(run, "tool.call.started").map(({ action }) => action.spec_hash !== undefined)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("changes no other entry: an import without a policy has the same names", async () => {
    const plain = await runOf("openai-chat", chat);
    const decided = await runOf("openai-chat", chat, { policy });
    expect(decided.entries.filter((text) => !text.includes('"kind":"policy.evaluated"'))).toEqual(
      plain.entries,
    );
    expect(plain.specs).toEqual([]);
  });

  it("knows the specs that the source itself carries", async () => {
    const run = await runOf(
      "openai-chat",
      JSON.stringify({
        tools: [tools[1] instanceof Map ? { name: "send" } : {}],
        messages: JSON.parse(chat),
      }),
      { policy },
    );
    expect(run.specs[0]?.text).toBe(
      '{"description":"","input_schema":{},"name":"send","side_effect":"","timeout":0}',
    );
    expect(ofKind(run, "run.created")[0]?.action.tools).toEqual([run.specs[0]?.hash]);
  });

  it("puts no nameless call and no very long arguments to the policy, and says so", async () => {
    const long = JSON.stringify({ text: "x".repeat(200_000) });
    const run = await runOf(
      "openai-chat",
      JSON.stringify([{ role: "assistant", tool_calls: [call("1", "", "{}"), call("2", "look", long)] }]),
      {
        policy,
        tools,
      },
    );
    expectSound(run);
    expect(ofKind(run, "policy.evaluated")).toEqual([]);
    expect(run.notes).toEqual(
      expect.arrayContaining([
        expect.stringContaining("without a tool's name"),
        expect.stringContaining("very long arguments"),
      ]),
    );
  });

  it("refuses a policy that reads the run or answers later", async () => {
    const reading: Policy = { id: "", decide: () => ({ ok: false, error: "" }) };
    await expect(runsOf("openai-chat", chat, { policy: reading })).rejects.toMatchObject({
      code: "import-policy",
    });
    const later: Policy = {
      id: "",
      readsView: false,
      decide: () => Promise.resolve({ ok: false, error: "" }),
    };
    await expect(runsOf("openai-chat", chat, { policy: later })).rejects.toMatchObject({
      code: "import-policy",
    });
    const failing: Policy = { id: "", readsView: false, decide: () => ({ ok: false, error: "no idea" }) };
    const run = await runOf("openai-chat", chat, { policy: failing });
    expect(run.notes).toContain("the policy failed on a call of the run: no idea");
    expect(ofKind(run, "policy.evaluated")).toEqual([]);
  });

  it("reads a file run by run: what was not asked for is not read", async () => {
    let asked = 0;
    const counting: Policy = {
      id: "c",
      readsView: false,
      decide: () => {
        asked += 1;
        return { ok: false, error: "" };
      },
    };
    const many = `[${Array.from({ length: 100 }, () => `{"messages":${chat}}`).join(",")}]`;
    for await (const run of importRuns("openai-chat", new TextEncoder().encode(many), { policy: counting })) {
      expect(run.counts.calls).toBe(4);
      break;
    }
    expect(asked).toBe(4);
  });

  it("reads tool specs from one object, a list, or an object with tools", () => {
    expect(readToolSpecs('{"name":"a"}').length).toBe(1);
    expect(readToolSpecs('[{"name":"a"},{"name":"b"}]').length).toBe(2);
    expect(readToolSpecs('{"tools":[{"name":"a"},{"name":"b"}]}').length).toBe(2);
    expect(() => readToolSpecs('{"a":1,"a":2}')).toThrow(
      expect.objectContaining({ code: "json-duplicate-key" }),
    );
  });
});

describeWithShared("real runs with a policy", "corpus/agentdojo/tools", () => {
  it("every call of a load file is decided, and re-checks as the same", async () => {
    const read = (path: string): string => readFileSync(sharedPath(`corpus/agentdojo/${path}`), "utf8");
    const classes = JSON.parse(read("tools/side_effects.json")).suites as Record<
      string,
      Record<string, { side_effect: string }>
    >;
    const suites = Object.keys(classes);
    const sideEffects: Record<string, string> = {
      read_trusted: "read_only",
      read_untrusted: "read_only",
      remote_mutation: "remote_mutation",
    };
    const byTool = Object.fromEntries(
      suites.flatMap((suite) =>
        Object.entries(classes[suite]!).map(([name, { side_effect }]) => [
          name,
          { side_effect: sideEffects[side_effect] },
        ]),
      ),
    );
    const suitePolicy = rules({
      policy_id: "dojo/v1",
      side_effects: { read_only: "allow", remote_mutation: "require_approval" },
      tools: byTool,
    });
    const specs = suites.flatMap((suite) => readToolSpecs(read(`tools/${suite}.tools.json`)));
    let evaluations = 0;
    let entries = 0;
    for (const run of await runsOf(
      "agentdojo",
      readFileSync(sharedPath("corpus/agentdojo/load/agentdojo-gpt-4o-2024-05-13-repeat_user_prompt.jsonl")),
      { policy: suitePolicy, tools: specs },
    )) {
      const report = recheckEntries(run.entries, suitePolicy, stored(run));
      expect(report.evaluations.filter(({ result }) => result !== "same")).toEqual([]);
      evaluations += report.rechecked;
      entries += run.entries.length;
    }
    // One for each of the file's 899 calls; FORMATS.md counts 3 entries a call and 2 an exchange.
    expect(evaluations).toBe(899);
    expect(entries).toBeGreaterThan(2 * 867 + 3 * 891);
  });
});
