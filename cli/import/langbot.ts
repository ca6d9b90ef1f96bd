/**
 * LangBot's run ledger: rows `{run, events}` as its tables hold them. Every column is
 * kept as it is, JSON texts as texts, so that the ledger audit can be computed again from the entries alone. What of
 * it reads as one of our kinds is mapped besides.
 *
 * @module
 */
import type { JsonValue } from "../../shared/json/value.ts";
import type { ImportContext } from "./context.ts";
import { decoded, label, sequenceOf, writeEvent } from "./langbot-events.ts";
import { Losses } from "./lenient.ts";
import { runName } from "./names.ts";
import { recordsOf } from "./split.ts";
import { naiveUtc } from "./times.ts";
import { at, isObject, type JsonObject, listAt, objectOf, textAt } from "./tree.ts";
import type { ImportedRun } from "./types.ts";
import { RunWriter } from "./writer.ts";

/** Columns that are set when the run is made and never change. */
const CREATED_COLUMNS = [
  "id",
  "run_id",
  "event_id",
  "agent_id",
  "binding_id",
  "runner_id",
  "conversation_id",
  "thread_id",
  "workspace_id",
  "bot_id",
  "created_at",
  "authorization_json",
];

/** The runs of a file of rows: one object, an array, or JSONL. */
export function* importLangBot(text: string, context: ImportContext): Generator<ImportedRun> {
  for (const record of recordsOf(text)) {
    const losses = new Losses();
    const value = context.read(record, losses);
    if (value === undefined) continue;
    const row = at(value, "run");
    if (isObject(row) && textAt(row, "run_id") !== undefined)
      yield write(row, listAt(value, "events"), losses, context);
    else context.skip(`${record.where} holds no run row; it is not imported`);
  }
}

function write(
  row: JsonObject,
  events: readonly JsonValue[],
  losses: Losses,
  context: ImportContext,
): ImportedRun {
  const id = textAt(row, "run_id") ?? "";
  const writer = new RunWriter(
    { format: "langbot", run: runName([id], context), title: `LangBot run ${id}` },
    context,
    losses,
  );
  const authorization = row.get("authorization_json");
  writer.created({
    at: naiveUtc(textAt(row, "created_at")),
    authorization: authorization === undefined || authorization === null ? undefined : decoded(authorization),
    extra: objectOf([["langbot", objectOf(CREATED_COLUMNS.map((name) => [name, row.get(name)]))]]),
  });
  for (const { event, index } of inSequence(events)) {
    if (isObject(event)) writeEvent(writer, event, index);
    else writer.note("an event row is no object; it is not imported");
  }
  // The whole row as it is now: what changes while a run lasts is here and not in run.created.
  const column = (name: string): JsonValue | undefined => {
    const value = row.get(name);
    return value === undefined || value === null ? undefined : decoded(value);
  };
  writer.raw({
    kind: "run.status",
    at: naiveUtc(textAt(row, "finished_at")),
    action: objectOf([
      ["status", label(row.get("status")) ?? "unknown"],
      ["reason", textAt(row, "status_reason")],
      ["runner_id", label(row.get("runner_id"))],
      ["created_at", label(row.get("created_at"))],
      ["started_at", label(row.get("started_at"))],
      ["finished_at", label(row.get("finished_at"))],
      ["usage", column("usage_json")],
      ["cost", column("cost_json")],
      ["imported.system", "langbot"],
      ["extra", objectOf([["langbot", row]])],
    ]),
  });
  return writer.done();
}

/**
 * In order of sequence, as the audit reads them, and numbered by it. Where some row has none, or one is used twice, rows
 * stay where they are and are numbered by place: the table allows neither.
 */
function inSequence(events: readonly JsonValue[]): { readonly event: JsonValue; readonly index: number }[] {
  const sequences = events.map((event) => (isObject(event) ? sequenceOf(event) : undefined));
  const inOrder = !sequences.includes(undefined) && new Set(sequences).size === sequences.length;
  if (!inOrder) return events.map((event, index) => ({ event, index }));
  return events
    .map((event, place) => ({ event, index: sequences[place] ?? 0 }))
    .sort((a, b) => a.index - b.index);
}
