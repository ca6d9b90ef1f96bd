/**
 * AgentDojo: the Invariant export (JSONL with a header line, or one run as JSON) and upstream's own files (v1.2, one
 * run as JSON). FORMATS.md section 3. `security` and `success` are the benchmark's labels, and no proof: `security`
 * is true for runs without an injection and for runs that failed with an API error.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { type ChatDialect, firstUserText, writeMessages } from "./chat.ts";
import type { ImportContext } from "./context.ts";
import { Losses } from "./lenient.ts";
import { contentDigest, runName } from "./names.ts";
import { recordsOf } from "./split.ts";
import { at, contentText, isObject, type JsonObject, listAt, objectOf, textAt, without } from "./tree.ts";
import type { ImportedRun } from "./types.ts";
import { RunWriter } from "./writer.ts";

/** Labels of the export and of upstream. */
const LABELS = ["success", "security", "utility"];

const DIALECT: ChatDialect = {
  // A failing tool gives `error` ("ValueError: ...") and, nearly always, empty content.
  resultOf(message) {
    const error = at(message, "error");
    const content = at(message, "content") ?? null;
    if (error === null || error === undefined) return { status: "success", result: content };
    return { status: "failure", error, result: contentText(content) === "" ? undefined : content };
  },
};

/** The runs of an AgentDojo file. */
export function* importAgentDojo(text: string, context: ImportContext): Generator<ImportedRun> {
  let benchmark: JsonValue | undefined;
  for (const record of recordsOf(text)) {
    const losses = new Losses();
    const value = context.read(record, losses);
    if (value === undefined) continue;
    if (isObject(value) && Array.isArray(value.get("messages"))) {
      yield write(value, benchmark, losses, context);
    } else if (at(value, "metadata", "benchmark") !== undefined) {
      benchmark = at(value, "metadata");
    } else {
      context.skip(`${record.where} is neither a run nor a header; it is not imported`);
    }
  }
}

function write(
  source: JsonObject,
  benchmark: JsonValue | undefined,
  losses: Losses,
  context: ImportContext,
): ImportedRun {
  const metadata = at(source, "metadata");
  // The export has its facts in `metadata`, upstream beside the messages.
  const facts = isObject(metadata) ? metadata : without(source, "messages");
  const name = ["suite_name", "user_task_id", "injection_task_id", "attack_type"].map((member) =>
    textAt(facts, member),
  );
  const model = textAt(facts, "model") ?? textAt(facts, "pipeline_name");
  const messages = listAt(source, "messages");
  const digest = contentDigest(source, context);
  const writer = new RunWriter(
    {
      format: "agentdojo",
      run: runName(["agentdojo", model ?? "none", ...name.map((part) => part ?? "none"), digest], context),
      title: `AgentDojo ${name.filter((part) => part !== undefined).join(" ")} (${model ?? "model unknown"})`,
    },
    context,
    losses,
  );
  writer.created({
    goal: firstUserText(messages),
    extra: objectOf([
      ["metadata", without(facts, ...LABELS, "error")],
      ["index", source.get("index")],
      ["annotations", source.get("annotations")],
      ["benchmark", benchmark],
    ]),
  });
  writeMessages(writer, messages, { ...DIALECT, model });
  const error = facts.get("error");
  const labels = objectOf(LABELS.map((label) => [label, facts.get(label)]));
  writer.end(error === undefined || error === null ? { labels } : { status: "failed", error, labels });
  return writer.done();
}
