/**
 * OpenAI-style chat messages: one array of messages, an object or JSONL lines with `messages`, or tau-bench's array
 * of runs with `traj` (FORMATS.md section 3). The record is complete, so its content is part of the run's name.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { type ChatDialect, firstUserText, writeMessages } from "./chat.ts";
import type { ImportContext } from "./context.ts";
import { Losses } from "./lenient.ts";
import { contentDigest, runName } from "./names.ts";
import { elementsOf, layoutOf, linesOf, recordsOf, type SourceRecord } from "./split.ts";
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

const DIALECT: ChatDialect = {
  // tau-bench and many home-made loops put "Error: ..." into the content; nothing else marks a failure.
  resultOf(message) {
    const content = at(message, "content") ?? null;
    const text = contentText(content);
    if (text.startsWith("Error:")) return { status: "failure", error: text };
    return { status: "success", result: content };
  },
};

/** The runs of a chat file. */
export function* importChat(text: string, context: ImportContext): Generator<ImportedRun> {
  const layout = layoutOf(text);
  const records =
    layout === "array" ? elementsOf(text) : layout === "lines" ? linesOf(text) : recordsOf(text);
  const messages: JsonValue[] = [];
  const losses = new Losses();
  for (const record of records) {
    const own = new Losses();
    const value = context.read(record, own);
    if (value === undefined) continue;
    if (isObject(value) && value.has("role")) {
      // The records are the messages of one run.
      messages.push(value);
      losses.merge(own);
    } else {
      const run = oneRun(value, record, own, context);
      if (run !== undefined) yield run;
    }
  }
  if (messages.length > 0) yield write(messages, new Map(), losses, context);
}

function oneRun(
  value: JsonValue,
  record: SourceRecord,
  losses: Losses,
  context: ImportContext,
): ImportedRun | undefined {
  if (Array.isArray(value)) return write(value, new Map(), losses, context);
  const name = ["messages", "traj", "conversation"].find((member) => Array.isArray(at(value, member)));
  if (name === undefined || !isObject(value)) {
    context.skip(`${record.where} holds no list of messages`);
    return undefined;
  }
  return write(listAt(value, name), without(value, name), losses, context);
}

/** One run; `about` is everything that the record says beside its messages. */
function write(
  messages: readonly JsonValue[],
  about: JsonObject,
  losses: Losses,
  context: ImportContext,
): ImportedRun {
  const digest = contentDigest([...messages, about], context);
  const task = about.get("task_id");
  const isTau = task !== undefined && about.has("trial");
  const format = isTau ? "tau-bench" : "openai-chat";
  const id = isTau ? [`task${label(task)}`, `trial${label(about.get("trial"))}`] : [];
  const goal = firstUserText(messages);
  const writer = new RunWriter(
    {
      format,
      run: runName([format, ...id, digest], context),
      title: isTau ? `tau-bench task ${label(task)}, trial ${label(about.get("trial"))}` : (goal ?? format),
    },
    context,
    losses,
  );
  const model = textAt(about, "model");
  const labels = ["reward", "success", "score"];
  writer.created({
    goal,
    specs: listAt(about, "tools"),
    extra: orAbsent(without(about, "tools", ...labels)),
  });
  writeMessages(writer, messages, { ...DIALECT, model });
  // The messages end; nothing says whether the run did.
  writer.end({ labels: objectOf(labels.map((name) => [name, about.get(name)])) });
  return writer.done();
}

function label(value: JsonValue | undefined): string {
  if (typeof value === "string") return value;
  return value !== null && typeof value === "object" && "literal" in value ? value.literal : "none";
}
