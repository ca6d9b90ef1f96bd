/**
 * Inspect logs: `.json`, or `.eval` (a ZIP archive with a header and one file per sample). Each sample and epoch is a
 * run (FORMATS.md section 3). Where a sample has events they are the source; else its messages are.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import { type ResultParts, writeMessages } from "./chat.ts";
import type { ImportContext } from "./context.ts";
import { decodeSource } from "./decode.ts";
import { writeEvents } from "./inspect-events.ts";
import { Losses } from "./lenient.ts";
import { contentDigest, runName } from "./names.ts";
import { rfc3339OrAbsent } from "./times.ts";
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
import { isZip, zipMembers } from "./zip.ts";

/** The runs of an inspect log. Throws `RunsealError("import-zip")` where an archive is not readable. */
export async function* importInspect(bytes: Uint8Array, context: ImportContext): AsyncGenerator<ImportedRun> {
  if (isZip(bytes)) yield* importEval(bytes, context);
  else yield* importLog(bytes, context);
}

/** An archive: the samples one after the other, so that one is in memory at a time. */
async function* importEval(bytes: Uint8Array, context: ImportContext): AsyncGenerator<ImportedRun> {
  const members = zipMembers(bytes);
  // A log that was cut off has no header.json yet; what the run began with is in the journal.
  const headerName = ["header.json", "_journal/start.json"].find((name) =>
    members.some((one) => one.name === name),
  );
  let header: JsonValue | undefined;
  for (const one of members) {
    if (one.name !== headerName) continue;
    header = context.read(decodeSource(await one.read(), one.name), new Losses());
  }
  if (headerName !== "header.json") context.skip("the archive has no header: the evaluation did not end");
  for (const one of members) {
    if (!one.name.startsWith("samples/") || !one.name.endsWith(".json")) continue;
    const losses = new Losses();
    const sample = context.read(decodeSource(await one.read(), one.name), losses);
    if (isObject(sample)) yield write(sample, header, losses, context);
  }
}

function* importLog(bytes: Uint8Array, context: ImportContext): Generator<ImportedRun> {
  const losses = new Losses();
  const log = context.read(decodeSource(bytes, "document"), losses);
  const samples = listAt(log, "samples");
  for (const sample of samples) {
    if (isObject(sample)) yield write(sample, log, losses, context);
  }
  // Events alone, without a log around them (inspect's own timeline fixtures).
  if (samples.length === 0 && isObject(log) && listAt(log, "events").length > 0) {
    yield write(without(log, "expected"), undefined, losses, context);
  } else if (samples.length === 0) {
    context.skip("the log holds no samples");
  }
}

function write(
  source: JsonObject,
  header: JsonValue | undefined,
  losses: Losses,
  context: ImportContext,
): ImportedRun {
  const sample = withAttachments(source, losses);
  const evaluation = at(header, "eval");
  const parts = [textAt(evaluation, "eval_id") ?? textAt(evaluation, "run_id"), scalar(sample.get("id"))];
  const epoch = scalar(sample.get("epoch"));
  const name = parts.map((part) => part ?? "none");
  const task = textAt(evaluation, "task");
  const writer = new RunWriter(
    {
      format: "inspect",
      run: runName(["inspect", ...name, `epoch${epoch ?? "none"}`, contentDigest(source, context)], context),
      title: `inspect ${task ?? "events"}, sample ${parts[1] ?? "none"}, epoch ${epoch ?? "none"}`,
    },
    context,
    losses,
  );
  const goal = goalOf(sample);
  writer.created({
    goal,
    at: rfc3339OrAbsent(textAt(listAt(sample, "events")[0], "timestamp")),
    specs: toolsOf(sample),
    extra: objectOf([
      ["task", task],
      ["model", textAt(evaluation, "model")],
      [
        "eval",
        isObject(evaluation) ? without(evaluation, "config", "packages", "scorers", "dataset") : undefined,
      ],
      ["sample", sample.get("id")],
      ["epoch", sample.get("epoch")],
      ["uuid", sample.get("uuid")],
      ["metadata", sample.get("metadata")],
    ]),
  });
  const events = listAt(sample, "events");
  if (events.length > 0) writeEvents(writer, events, listAt(sample, "message_pool"));
  else writeMessages(writer, listAt(sample, "messages"), { resultOf });
  const labels = objectOf(
    ["scores", "target", "model_usage", "total_time", "working_time", "error", "error_retries", "limit"].map(
      (name) => [name, sample.get(name) ?? undefined],
    ),
  );
  const error = sample.get("error") ?? undefined;
  const ended = rfc3339OrAbsent(textAt(events.at(-1), "timestamp"));
  if (error !== undefined) {
    writer.end({ status: "failed", error: textAt(error, "message") ?? error, at: ended, labels });
  } else {
    // A sample is written to the log when it is through; events without a log around them say nothing.
    const through = header !== undefined && textAt(header, "status") !== undefined;
    writer.end({ status: through ? "completed" : undefined, at: through ? ended : undefined, labels });
  }
  return writer.done();
}

/** A tool message's error is `{type, message}`. */
function resultOf(message: JsonObject): ResultParts {
  const error = at(message, "error");
  const content = at(message, "content") ?? null;
  if (error === undefined || error === null) return { status: "success", result: content };
  return {
    status: "failure",
    error: textAt(error, "message") ?? error,
    result: contentText(content) === "" ? undefined : content,
    extra: orAbsent(objectOf([["error_type", at(error, "type")]])),
  };
}

/** The first thing the user says: the sample's input, a text or chat messages. */
function goalOf(sample: JsonObject): string | undefined {
  const input = sample.get("input") ?? at(listAt(sample, "events").find(isInit), "sample", "input");
  if (typeof input === "string") return input;
  const first = (Array.isArray(input) ? input : listAt(sample, "messages")).find(
    (message) => textAt(message, "role") === "user",
  );
  return first === undefined ? undefined : contentText(at(first, "content"));
}

function isInit(event: JsonValue): boolean {
  return textAt(event, "event") === "sample_init";
}

/** Every tool that the model was offered in any exchange, each once. */
function toolsOf(sample: JsonObject): JsonValue[] {
  const tools = new Map<string, JsonValue>();
  for (const event of listAt(sample, "events")) {
    for (const tool of textAt(event, "event") === "model" ? listAt(event, "tools") : []) {
      const name = textAt(tool, "name");
      if (name !== undefined && !tools.has(name)) tools.set(name, tool);
    }
  }
  return [...tools.values()];
}

const ATTACHMENT = "attachment://";

/** The sample with the large strings back in place: each `attachment://<hash>` is one of `attachments`. */
function withAttachments(sample: JsonObject, losses: Losses): JsonObject {
  const attachments = at(sample, "attachments");
  if (!isObject(attachments) || attachments.size === 0) return sample;
  const resolve = (value: JsonValue): JsonValue => {
    if (typeof value === "string") {
      if (!value.startsWith(ATTACHMENT)) return value;
      const found = attachments.get(value.slice(ATTACHMENT.length));
      return typeof found === "string" ? found : value;
    }
    if (Array.isArray(value)) return value.map(resolve);
    if (!isObject(value)) return value;
    const copy: JsonObject = new Map();
    for (const [name, member] of value) copy.set(name, resolve(member));
    const reason = losses.reason(value);
    if (reason !== undefined) losses.add(copy, reason);
    return copy;
  };
  const resolved = resolve(without(sample, "attachments"));
  return isObject(resolved) ? resolved : sample;
}

function scalar(value: JsonValue | undefined): string | undefined {
  if (typeof value === "string") return value;
  return value !== null && typeof value === "object" && "literal" in value ? value.literal : undefined;
}
