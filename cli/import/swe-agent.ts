/**
 * SWE-agent trajectories (`.traj`). With function calling the history holds `tool_calls`; older ones hold only the
 * text of an action, which is imported as a call of the tool `shell` with `{command}` (FORMATS.md section 3).
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { type ResultParts, writeMessages } from "./chat.ts";
import type { ImportContext } from "./context.ts";
import { Losses } from "./lenient.ts";
import { contentDigest, runName } from "./names.ts";
import { recordsOf } from "./split.ts";
import {
  at,
  contentText,
  isObject,
  type JsonObject,
  listAt,
  objectOf,
  orAbsent,
  textAt,
  without,
} from "./tree.ts";
import type { ImportedRun } from "./types.ts";
import { RunWriter } from "./writer.ts";

/** Texts by which SWE-agent itself (not the command) says that a command did not end. */
const HARNESS_FAILURE =
  /^\s*(?:EXECUTION TIMED OUT|COMMAND FAILED TO EXECUTE|The command .{0,4000} was cancelled because it took more than )/s;

/** The runs of a trajectory file: one. */
export function* importSweAgent(text: string, context: ImportContext): Generator<ImportedRun> {
  for (const record of recordsOf(text)) {
    const losses = new Losses();
    const value = context.read(record, losses);
    if (value === undefined) continue;
    if (isObject(value) && (Array.isArray(value.get("history")) || Array.isArray(value.get("trajectory")))) {
      yield write(value, losses, context);
    } else {
      context.skip(`${record.where} has neither a history nor a trajectory; it is not imported`);
    }
  }
}

function write(source: JsonObject, losses: Losses, context: ImportContext): ImportedRun {
  const history = listAt(source, "history");
  const steps = listAt(source, "trajectory");
  const info = at(source, "info");
  const goal = goalOf(history);
  const environment = textAt(source, "environment");
  const writer = new RunWriter(
    {
      format: "swe-agent",
      run: runName(["swe-agent", environment ?? "none", contentDigest(source, context)], context),
      title: goal ?? "SWE-agent trajectory",
    },
    context,
    losses,
  );
  const model = textAt(source, "replay_config", "agent", "model", "name");
  writer.created({
    goal,
    extra: objectOf([
      ["environment", environment],
      ["problem_statement", at(source, "replay_config", "problem_statement")],
      ["model", model],
    ]),
  });
  if (source.has("replay_config"))
    writer.note("the replay configuration is not imported, but for model and problem");
  if (history.some((message) => listAt(message, "tool_calls").length > 0)) {
    writeFunctionCalls(writer, history, steps, model);
  } else {
    writeActions(writer, history, steps, model);
  }
  const status = textAt(info, "exit_status");
  const labels = isObject(info) ? info : undefined;
  // Other exit statuses (a limit reached, an early exit) are SWE-agent's own words.
  writer.end({ status: status === "submitted" ? "completed" : status, reason: status, labels });
  return writer.done();
}

/** The task: the first user message that is not a demonstration. */
function goalOf(history: readonly JsonValue[]): string | undefined {
  const task = history.find(
    (message) => textAt(message, "role") === "user" && at(message, "is_demo") !== true,
  );
  return task === undefined ? undefined : contentText(at(task, "content"));
}

/** A history with tool calls: chat messages whose results the trajectory holds unshortened. */
function writeFunctionCalls(
  writer: RunWriter,
  history: readonly JsonValue[],
  steps: readonly JsonValue[],
  model: string | undefined,
): void {
  const results = history.filter((message) => textAt(message, "role") === "tool").length;
  const aligned = results === steps.length;
  if (!aligned && steps.length > 0)
    writer.note("the trajectory has another number of steps than the history");
  const messages = history.map((message) =>
    isObject(message) ? without(message, "thought", "action") : message,
  );
  writeMessages(writer, messages, {
    model,
    resultOf: (message, ordinal) => {
      const step = aligned ? steps[ordinal] : undefined;
      const own = resultOf(at(step, "observation") ?? at(message, "content") ?? null);
      return { ...own, extra: orAbsent(objectOf([["execution_time", at(step, "execution_time")]])) };
    },
  });
}

/** A history of texts: each step of the trajectory is one exchange and one command. */
function writeActions(
  writer: RunWriter,
  history: readonly JsonValue[],
  steps: readonly JsonValue[],
  model: string | undefined,
): void {
  const firstAnswer = history.findIndex((message) => textAt(message, "role") === "assistant");
  const before = firstAnswer < 0 ? history : history.slice(0, firstAnswer);
  writeMessages(writer, before, { resultOf: (message) => resultOf(at(message, "content") ?? null) });
  const taken = steps.length > 0 ? steps : stepsOf(history.slice(before.length));
  taken.forEach((step, ordinal) => {
    const index = before.length + ordinal;
    const action = textAt(step, "action");
    const content = at(step, "response") ?? at(step, "thought") ?? null;
    writer.exchange({ index, model, content, calls: action === undefined ? 0 : 1 });
    if (action === undefined) return;
    writer.call({ index, position: 0, tool: "shell", args: { args: objectOf([["command", action]]) } });
    const observation = at(step, "observation");
    // A step without an observation was cut off; an empty text is an answer.
    if (observation === undefined || observation === null) return;
    writer.result({
      index,
      hint: { tool: "shell" },
      ...resultOf(observation),
      extra: orAbsent(objectOf([["execution_time", at(step, "execution_time")]])),
    });
  });
}

/** Steps from a history alone: an assistant's action and the message that follows it. */
function stepsOf(history: readonly JsonValue[]): JsonValue[] {
  const steps: JsonValue[] = [];
  history.forEach((message, index) => {
    if (textAt(message, "role") !== "assistant") return;
    const next = history[index + 1];
    const answered = next !== undefined && textAt(next, "role") !== "assistant";
    steps.push(
      objectOf([
        ["action", at(message, "action")],
        ["response", at(message, "content")],
        ["observation", answered ? at(next, "content") : undefined],
      ]),
    );
  });
  return steps;
}

function resultOf(observation: JsonValue): ResultParts {
  const text = contentText(observation);
  return HARNESS_FAILURE.test(text)
    ? { status: "failure", error: text }
    : { status: "success", result: observation };
}
