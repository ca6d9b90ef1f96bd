/**
 * The importers on the real runs of `../shared/corpus`: the numbers are FORMATS.md's (sections 1 and 2), or counted
 * here by a few lines that know nothing of the importers.
 */
import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import type { ImportCounts, ImportFormat } from "../../../cli/import/index.ts";
import { describeWithShared, sharedPath } from "../../support/shared-files.ts";
import { expectSound, kindsOf, ofKind, runsOf, seen } from "./support.ts";

const bytesOf = (path: string): Uint8Array => readFileSync(sharedPath(path));

/** A folder's files, as importer and path. */
function filesOf(format: ImportFormat, folder: string, suffix = ""): [ImportFormat, string][] {
  return readdirSync(sharedPath(folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => [format, `${entry.parentPath}/${entry.name}`.slice(sharedPath("").length)]);
}

const total = (counts: ImportCounts[], name: keyof ImportCounts): number =>
  counts.reduce((sum, one) => sum + one[name], 0);

describeWithShared("every corpus file", "corpus", () => {
  const files = [
    ...filesOf("openai-chat", "corpus/tau-bench/runs"),
    ...filesOf("agentdojo", "corpus/agentdojo/runs"),
    ...filesOf("inspect", "corpus/inspect_ai"),
    ...filesOf("claude-code", "corpus/claude-code"),
    ...filesOf("swe-agent", "corpus/swe-agent"),
  ];

  it("is there: 61 files in five formats", () => {
    expect(files.length).toBe(61);
  });

  it.each(files)(
    "%s %s: the log accepts each entry, and a second import gives the same ones",
    async (format, path) => {
      const runs = await runsOf(format, bytesOf(path));
      expect(runs.length).toBeGreaterThan(0);
      for (const run of runs) {
        expectSound(run);
        expect(run.notes.filter((note) => note.includes("could not be kept"))).toEqual([]);
      }
      expect(await runsOf(format, bytesOf(path))).toEqual(runs);
    },
  );
});

describeWithShared("AgentDojo runs", "corpus/agentdojo/runs", () => {
  // FORMATS.md section 1, "agentdojo/runs": calls, tool errors; then what "why" says of ids and missing results.
  it.each([
    ["banking-ut12-inj3-claude-3-sonnet", 6, 1, {}],
    ["banking-ut02-inj3-repeat", 5, 0, {}],
    ["banking-ut15-inj3-claude-3-haiku", 4, 0, {}],
    ["banking-ut03-inj3-repeat", 16, 0, { unanswered: 1 }],
    ["banking-ut10-benign-command-r-plus", 16, 0, { emptyIds: 16, unanswered: 1 }],
    ["banking-ut15-benign-claude-3-opus", 5, 1, {}],
    ["slack-ut17-inj3-repeat", 17, 0, { repeatedIds: 1, unanswered: 1 }],
    ["slack-ut17-inj3-claude-3-haiku", 13, 0, {}],
    ["slack-ut18-inj3-claude-3-opus", 11, 0, {}],
    ["slack-ut20-inj3-llama", 13, 1, {}],
    ["slack-ut14-inj3-flash1", 16, 3, { emptyIds: 16, unanswered: 1 }],
    ["slack-ut10-benign-claude-3-haiku", 16, 0, { unanswered: 1 }],
    ["travel-ut19-inj3-llama", 14, 0, {}],
    ["travel-ut17-inj3-flash1", 11, 0, { emptyIds: 11 }],
    ["travel-ut19-inj3-command-r", 19, 0, { emptyIds: 19 }],
    ["travel-ut19-inj3-pidet", 21, 2, {}],
    ["travel-ut08-benign-command-r", 18, 12, { emptyIds: 18, unanswered: 1 }],
    ["travel-ut19-benign-repeat", 18, 0, {}],
    ["workspace-ut19-inj3-repeat", 8, 0, {}],
    ["workspace-ut33-inj3-llama", 3, 1, {}],
    ["workspace-ut38-inj3-pidet", 16, 12, { repeatedIds: 1, unanswered: 1 }],
    ["workspace-ut26-inj3-claude-3-opus", 16, 0, { unanswered: 1 }],
    ["workspace-ut22-benign-claude-3-haiku", 16, 0, { unanswered: 1 }],
    ["workspace-ut10-inj3-command-r-plus", 0, 0, {}],
  ] as const)("%s has %i calls and %i failures", async (name, calls, failures, odd) => {
    const [run] = await runsOf("agentdojo", bytesOf(`corpus/agentdojo/runs/${name}.json`));
    expect(run!.counts).toMatchObject({
      calls,
      failures,
      unanswered: 0,
      emptyIds: 0,
      repeatedIds: 0,
      ...odd,
    });
    expect(run!.counts.results).toBe(calls - run!.counts.unanswered);
  });

  it("keeps the labels as facts of the record and not as the run's end", async () => {
    const [run] = await runsOf(
      "agentdojo",
      bytesOf("corpus/agentdojo/runs/workspace-ut10-inj3-command-r-plus.json"),
    );
    expect(kindsOf(run!)).toEqual(["run.created", "message.completed", "message.completed", "run.status"]);
    expect(ofKind(run!, "run.status")[0]?.action).toMatchObject({
      status: "unknown",
      extra: { labels: { success: false, security: true } },
    });
  });

  it("takes the first user message for the goal, not what the harness repeats", async () => {
    const [run] = await runsOf("agentdojo", bytesOf("corpus/agentdojo/runs/banking-ut02-inj3-repeat.json"));
    const said = ofKind(run!, "message.completed").filter(({ action }) => action.message.role === "user");
    expect(said.length).toBe(6);
    expect(seen(run!)[0]?.action.goal).toBe(said[0]?.action.message.content);
  });
});

interface Counted {
  runs: number;
  assistant: number;
  counts: Record<"calls" | "results" | "failures" | "unanswered" | "emptyIds" | "repeatedIds", number>;
}

/** Counts an AgentDojo file as FORMATS.md did: nothing of the importer is used. */
function countAgentDojo(text: string): Counted {
  const counted: Counted = {
    runs: 0,
    assistant: 0,
    counts: { calls: 0, results: 0, failures: 0, unanswered: 0, emptyIds: 0, repeatedIds: 0 },
  };
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const { messages } = JSON.parse(line);
    if (messages === undefined) continue;
    counted.runs += 1;
    const ids: string[] = [];
    let open = 0;
    for (const { role, tool_calls, error } of messages) {
      if (role === "assistant") counted.assistant += 1;
      for (const { id } of tool_calls ?? []) {
        ids.push(id);
        open += 1;
      }
      if (role === "tool") {
        counted.counts.results += 1;
        open -= 1;
        if (error !== null) counted.counts.failures += 1;
      }
    }
    counted.counts.calls += ids.length;
    counted.counts.unanswered += open;
    counted.counts.emptyIds += ids.filter((id) => id === "").length;
    counted.counts.repeatedIds += new Set(ids.filter((id, at) => id !== "" && ids.indexOf(id) !== at)).size;
  }
  return counted;
}

async function expectLikeCounted(bytes: Uint8Array): Promise<Counted> {
  const counted = countAgentDojo(new TextDecoder().decode(bytes));
  const runs = await runsOf("agentdojo", bytes);
  const counts = runs.map((run) => run.counts);
  expect(runs.length).toBe(counted.runs);
  expect(new Set(runs.map(({ run }) => run)).size).toBe(counted.runs);
  expect(total(counts, "exchanges")).toBe(counted.assistant);
  for (const [name, count] of Object.entries(counted.counts)) {
    expect([name, total(counts, name as keyof ImportCounts)]).toEqual([name, count]);
  }
  return counted;
}

describeWithShared("AgentDojo load files", "corpus/agentdojo/load", () => {
  it.each([
    ["agentdojo-claude-3-haiku-20240307.jsonl", 911],
    ["agentdojo-gpt-4o-2024-05-13-repeat_user_prompt.jsonl", 899],
  ])("%s: 194 runs, %i calls, and every other count as counted apart", async (name, calls) => {
    const counted = await expectLikeCounted(bytesOf(`corpus/agentdojo/load/${name}`));
    expect([counted.runs, counted.counts.calls]).toEqual([194, calls]);
  });

  it("the log accepts every entry of a load file", async () => {
    for (const run of await runsOf(
      "agentdojo",
      bytesOf("corpus/agentdojo/load/agentdojo-claude-3-haiku-20240307.jsonl"),
    )) {
      expectSound(run);
    }
  });

  it("the 11 models of the archive: 2,134 runs, 7,344 calls, 8,421 exchanges", async () => {
    const sums = { runs: 0, calls: 0, assistant: 0, files: 0 };
    for (const file of tarFiles(
      gunzipSync(bytesOf("corpus/agentdojo/load/agentdojo-dev-11-models.tar.gz")),
    )) {
      const counted = await expectLikeCounted(file);
      sums.files += 1;
      sums.runs += counted.runs;
      sums.calls += counted.counts.calls;
      sums.assistant += counted.assistant;
    }
    expect(sums).toEqual({ files: 11, runs: 2134, calls: 7344, assistant: 8421 });
  });
});

/** The plain files of a tar archive (POSIX ustar: 512-byte headers, the size in octal at 124). */
function* tarFiles(tar: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(new TextDecoder().decode(tar.subarray(at + 124, at + 135)), 8);
    yield tar.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
}

describeWithShared("tau-bench", "corpus/tau-bench", () => {
  let load: ReturnType<typeof runsOf> | undefined;
  const loadFile = (): ReturnType<typeof runsOf> => {
    load ??= runsOf("openai-chat", bytesOf("corpus/tau-bench/load/gpt-4o-airline.json"));
    return load;
  };

  it("the load file: 200 runs, 1,164 calls, 73 of them failed, all arguments parse, 49 runs repeat an id", async () => {
    const runs = await loadFile();
    const counts = runs.map((run) => run.counts);
    expect(runs.length).toBe(200);
    expect(new Set(runs.map(({ run }) => run)).size).toBe(200);
    expect(total(counts, "calls")).toBe(1164);
    expect(total(counts, "results")).toBe(1164);
    expect(total(counts, "failures")).toBe(73);
    expect(total(counts, "unanswered")).toBe(0);
    expect(counts.filter(({ repeatedIds }) => repeatedIds > 0).length).toBe(49);
    const calls = runs.flatMap((run) => ofKind(run, "tool.call.started"));
    expect(calls.filter(({ action }) => typeof action.args === "string")).toEqual([]);
    // The text is kept wherever the canonical text is another one: 125 are not compact, 316 have other key order.
    expect(calls.filter(({ action }) => action.extra?.args_text !== undefined).length).toBe(441);
    for (const run of runs) expectSound(run);
  });

  // Counted from the files; FORMATS.md section 1 says 11 to 27 calls.
  it.each([
    ["airline-task02-trial1", 27, 0],
    ["airline-task02-trial2", 13, 0],
    ["airline-task03-trial0", 20, 5],
    ["airline-task08-trial1", 16, 3],
    ["airline-task09-trial2", 23, 5],
    ["airline-task13-trial0", 14, 6],
    ["airline-task16-trial3", 11, 0],
    ["airline-task28-trial1", 15, 0],
    ["airline-task34-trial0", 12, 0],
    ["airline-task46-trial3", 18, 3],
  ])("%s has %i calls and %i failures, and is the load file's run", async (name, calls, failures) => {
    const [run] = await runsOf("openai-chat", bytesOf(`corpus/tau-bench/runs/${name}.json`));
    expect(run!.counts).toMatchObject({ calls, results: calls, failures });
    // The small files are the load file's records, indented again: one import of each stores the run once.
    expect((await loadFile()).find((one) => one.run === run!.run)?.entries).toEqual(run!.entries);
  });
});

describeWithShared("the other formats", "corpus/swe-agent", () => {
  it.each([
    ["ctf-crypto-katy", 18, 1],
    ["ctf-rev-rock", 12, 1],
    ["ctf-web-i_got_id_demo", 21, 0],
    ["function_calling_simple", 5, 0],
    ["humanevalfix-python-0", 5, 0],
    ["marshmallow-1867.default_text_actions", 11, 0],
    ["marshmallow-1867.function_calling_replace", 11, 0],
    ["marshmallow-1867.function_calling_replace_from_source", 13, 0],
    ["pydicom-1458.gpt4", 12, 0],
    ["swe-agent-test-repo-i1.gpt4", 5, 0],
  ])("swe-agent %s: %i steps, %i stopped by the harness", async (name, calls, failures) => {
    const [run] = await runsOf("swe-agent", bytesOf(`corpus/swe-agent/${name}.traj`));
    expect(run!.counts).toMatchObject({ calls, results: calls, exchanges: calls, failures, unanswered: 0 });
  });

  it.each([
    ["2025-05-12T20-27-36-04-00_browser.json", [{ calls: 4, results: 4, exchanges: 5 }]],
    ["log_message_deduplication.eval", [{ calls: 5, results: 5, exchanges: 6 }]],
    ["2024-11-05T13-32-37-05-00_input-task_hxs4q9azL3ySGkjJirypKZ.eval", [{ calls: 0, exchanges: 2 }]],
    ["log_streaming.eval", [{ exchanges: 1 }, { exchanges: 1 }, { exchanges: 1 }, { exchanges: 1 }]],
    ["log_tool_call_error.json", [{ calls: 0, results: 11, failures: 11 }]],
  ])("inspect %s", async (name, expected) => {
    const runs = await runsOf("inspect", bytesOf(`corpus/inspect_ai/${name}`));
    expect(runs.map(({ counts }) => counts)).toMatchObject(expected);
  });

  it.each([
    ["simonw-claude-code-transcripts/sample_session.json", [{ calls: 12, results: 12, failures: 1 }]],
    ["simonw-claude-code-transcripts/sample_session.jsonl", [{ calls: 2, results: 2, failures: 0 }]],
    ["daaain-claude-code-log/representative_messages.jsonl", [{ calls: 2, results: 2 }]],
    ["daaain-claude-code-log/todowrite_examples.jsonl", [{ calls: 3, results: 3 }]],
    ["daaain-claude-code-log/session_b.jsonl", [{ calls: 0, exchanges: 1 }]],
    [
      "daaain-claude-code-log/edge_cases.jsonl",
      [
        { calls: 2, results: 1, failures: 1, unanswered: 1 },
        { calls: 1, unanswered: 1 },
      ],
    ],
  ])("claude-code %s", async (name, expected) => {
    const runs = await runsOf("claude-code", bytesOf(`corpus/claude-code/${name}`));
    expect(runs.map(({ counts }) => counts)).toMatchObject(expected);
  });
});
