/**
 * The events of an inspect sample. Events lie in the order in which they began, and a tool's result is in the event
 * that began it, so a completion is written when the events have passed its time.
 *
 * @module
 */
import { JsonNumber, type JsonValue, jsonText } from "../../shared/json/value.ts";
import { instantOf, rfc3339OrAbsent } from "./times.ts";
import {
  argumentsOf,
  at,
  countAt,
  isObject,
  type JsonObject,
  listAt,
  objectOf,
  orAbsent,
  textAt,
  without,
} from "./tree.ts";
import type { RunWriter } from "./writer.ts";

/** Events that say nothing of what the agent did. Their number is noted. */
const IGNORED = new Set(["sample_init", "state", "store", "info", "logger", "subtask", "span_end"]);

/** Writes all the events; `pool` holds the messages that `input_refs` point into. */
export function writeEvents(
  writer: RunWriter,
  events: readonly JsonValue[],
  pool: readonly JsonValue[],
): void {
  const walk = new EventWalk(writer, pool);
  walk.all(events);
  walk.end();
}

/** A tool's completion that waits until the events have passed its time. */
interface Pending {
  readonly time: bigint | undefined;
  readonly call: string;
  readonly write: () => void;
}

class EventWalk {
  readonly #writer: RunWriter;
  readonly #pool: readonly JsonValue[];
  readonly #seenMessages = new Set<string>();
  readonly #ignored = new Map<string, number>();
  /** Calls that a model asked for and no tool event has taken up: id and tool. */
  readonly #asked: {
    readonly id: string;
    readonly tool: string;
    readonly index: number;
    readonly position: number;
  }[] = [];
  #pending: Pending[] = [];
  #index = -1;

  constructor(writer: RunWriter, pool: readonly JsonValue[]) {
    this.#writer = writer;
    this.#pool = pool;
  }

  all(events: readonly JsonValue[]): void {
    for (const event of events) {
      this.#index += 1;
      if (isObject(event)) this.#event(event);
      else this.#writer.note(`event ${this.#index} is no object; it is not imported`);
    }
  }

  end(): void {
    this.#flush(undefined);
    const asked = this.#asked.length;
    if (asked > 0)
      this.#writer.note(`${asked} ${asked === 1 ? "call was" : "calls were"} asked for and never made`);
    for (const [type, count] of this.#ignored) {
      this.#writer.note(`events of type ${type} are not imported: ${count}`);
    }
  }

  #event(event: JsonObject): void {
    const type = textAt(event, "event") ?? "none";
    this.#flush(instantOf(textAt(event, "timestamp")));
    const text = textAt(event, "input");
    if (type === "model") this.#model(event);
    else if (type === "tool") this.#tool(event);
    else if (type === "sandbox") this.#sandbox(event);
    else if (type === "input" && text !== undefined) this.#message("user", text, event);
    else if (type === "error") this.#failure(event);
    else if (type === "span_begin" || type === "step") this.#span(event, type);
    else if (type === "score") return;
    else this.#ignore(IGNORED.has(type) ? type : `${type} (unknown here)`);
  }

  #ignore(type: string): void {
    this.#ignored.set(type, (this.#ignored.get(type) ?? 0) + 1);
  }

  /** Writes the completions that happened no later than `now`; all of them without it. */
  #flush(now: bigint | undefined): void {
    const due = this.#pending.filter(({ time }) => now === undefined || time === undefined || time <= now);
    this.#pending = this.#pending.filter((one) => !due.includes(one));
    due.sort((a, b) =>
      a.time === undefined || b.time === undefined || a.time === b.time ? 0 : a.time < b.time ? -1 : 1,
    );
    for (const { write } of due) write();
  }

  #message(role: string, content: JsonValue, event: JsonObject): void {
    this.#writer.message({
      index: this.#index,
      role,
      content,
      at: rfc3339OrAbsent(textAt(event, "timestamp")),
    });
  }

  /** The input of an exchange: only what no earlier exchange was given. */
  #newInput(event: JsonObject): void {
    for (const message of this.#input(event)) {
      const key = textAt(message, "id") ?? jsonText(message);
      const role = textAt(message, "role");
      if (role === undefined || this.#seenMessages.has(key)) continue;
      this.#seenMessages.add(key);
      if (role !== "system" && role !== "user") continue;
      this.#writer.message({
        index: this.#index,
        role,
        content: at(message, "content") ?? null,
        extra: orAbsent(
          objectOf([
            ["message_id", at(message, "id")],
            ["source", at(message, "source")],
          ]),
        ),
      });
    }
  }

  #input(event: JsonObject): readonly JsonValue[] {
    const refs = listAt(event, "input_refs");
    if (refs.length === 0) return listAt(event, "input");
    return refs.flatMap((range) => {
      const [from, to] = Array.isArray(range) ? range : [];
      if (!(from instanceof JsonNumber) || !(to instanceof JsonNumber)) return [];
      return this.#pool.slice(Number(from.literal), Number(to.literal));
    });
  }

  #model(event: JsonObject): void {
    this.#newInput(event);
    const output = at(event, "output");
    const choice = listAt(output, "choices")[0];
    const message = at(choice, "message");
    const usage = at(output, "usage");
    const calls = listAt(message, "tool_calls");
    const error = at(event, "error");
    const failed = error !== undefined && error !== null;
    const content = at(message, "content");
    this.#writer.exchange({
      index: this.#index,
      model: textAt(output, "model") ?? textAt(event, "model"),
      requested: textAt(event, "model"),
      content: content ?? null,
      calls: calls.length,
      at: rfc3339OrAbsent(textAt(event, "timestamp")),
      completedAt: rfc3339OrAbsent(textAt(event, "completed")),
      error: failed ? error : undefined,
      finishReason: textAt(choice, "stop_reason"),
      requestId: textAt(event, "call", "response", "id"),
      usage: {
        input: countAt(usage, "input_tokens"),
        output: countAt(usage, "output_tokens"),
        cached: countAt(usage, "input_tokens_cache_read"),
      },
      extra: orAbsent(
        objectOf([
          ["span_id", at(event, "span_id")],
          ["message_id", at(message, "id")],
          ["usage", usage],
          ["reasoning", at(message, "reasoning")],
        ]),
      ),
    });
    calls.forEach((call, position) => {
      const id = textAt(call, "id") ?? "";
      this.#asked.push({ id, tool: textAt(call, "function") ?? "", index: this.#index, position });
    });
  }

  #tool(event: JsonObject): void {
    const tool = textAt(event, "function");
    if (tool === undefined) {
      this.#writer.note(`event ${this.#index}: a tool event names no function; it is not imported`);
      return;
    }
    const id = textAt(event, "id") ?? "";
    const asked = this.#asked.findIndex((one) => one.id === id && one.tool === tool);
    const origin = this.#asked[asked];
    if (asked >= 0) this.#asked.splice(asked, 1);
    const call = this.#writer.call({
      index: origin?.index ?? this.#index,
      position: origin?.position ?? 0,
      tool,
      args: argumentsOf(at(event, "arguments")),
      providerId: id,
      at: rfc3339OrAbsent(textAt(event, "timestamp")),
      extra: orAbsent(objectOf([["span_id", at(event, "span_id")]])),
    });
    const completed = textAt(event, "completed");
    const result = at(event, "result");
    const error = at(event, "error");
    const failed = error !== undefined && error !== null;
    // A tool event without completion time, result and error was cut off: it has no outcome.
    if (completed !== undefined || failed || !isEmpty(result)) {
      this.#pending.push({
        time: instantOf(completed),
        call,
        write: () =>
          this.#writer.complete({
            call,
            at: rfc3339OrAbsent(completed),
            status: failed ? "failure" : "success",
            result: failed && isEmpty(result) ? undefined : result,
            ...(failed ? { error: textAt(error, "message") ?? error } : {}),
            extra: orAbsent(
              objectOf([
                ["error_type", at(error, "type")],
                ["working_time", at(event, "working_time")],
              ]),
            ),
          }),
      });
    }
    // Older logs nest what happened inside the tool in its event.
    this.all(listAt(event, "events"));
  }

  #sandbox(event: JsonObject): void {
    const action = textAt(event, "action");
    const time = rfc3339OrAbsent(textAt(event, "timestamp"));
    const extra = orAbsent(without(event, "event", "timestamp", "cmd", "file", "working_start", "uuid"));
    const cmd = textAt(event, "cmd");
    const file = textAt(event, "file");
    const code = countAt(event, "result");
    // What happens in the sandbox while a tool is at work is part of that tool's call.
    const call = this.#pending.at(-1)?.call;
    if (action === "exec" && cmd !== undefined) {
      this.#writer.host({
        kind: "process.spawn",
        action: { command: cmd },
        call,
        at: time,
        failed: code !== undefined && code !== 0,
        extra,
      });
    } else if ((action === "read_file" || action === "write_file") && file !== undefined) {
      const kind = action === "read_file" ? "file.read" : "file.write";
      this.#writer.host({ kind, action: { path: file }, call, at: time, failed: false, extra });
    } else {
      this.#ignore("sandbox (incomplete)");
    }
  }

  #span(event: JsonObject, type: string): void {
    if (type === "span_begin" && textAt(event, "type") === "agent") {
      this.#writer.spawned({
        description: textAt(event, "name"),
        at: rfc3339OrAbsent(textAt(event, "timestamp")),
        extra: orAbsent(
          objectOf([
            ["span_id", at(event, "id")],
            ["parent_id", at(event, "parent_id")],
          ]),
        ),
      });
    } else {
      this.#ignore(type);
    }
  }

  #failure(event: JsonObject): void {
    const error = at(event, "error");
    // The run's own failure is in the sample; this is what a solver reported on the way.
    this.#writer.raw({
      kind: "step.failed",
      step: undefined,
      at: rfc3339OrAbsent(textAt(event, "timestamp")),
      action: objectOf([
        ["detail", textAt(error, "message")],
        ["extra", objectOf([["error", error]])],
      ]),
    });
  }
}

function isEmpty(result: JsonValue | undefined): boolean {
  return result === undefined || result === null || (typeof result === "string" && result === "");
}
