/**
 * The walk over chat messages that three formats share: OpenAI-style messages, AgentDojo's, SWE-agent's histories.
 * One assistant message is one model exchange; its tool calls are made at once, and their results follow it.
 *
 * @module
 */
import { type JsonValue, jsonText } from "../../shared/json/value.ts";
import { sourceTime } from "./times.ts";
import {
  argumentsOf,
  at,
  contentText,
  isObject,
  type JsonObject,
  listAt,
  orAbsent,
  textAt,
  without,
} from "./tree.ts";
import type { RunWriter } from "./writer.ts";

/** What differs between the formats in a tool's result. */
export interface ResultParts {
  readonly status: "success" | "failure";
  readonly result?: JsonValue | undefined;
  readonly error?: JsonValue | undefined;
  readonly extra?: JsonObject | undefined;
}

/** How a format reads its messages; the defaults are OpenAI's. */
export interface ChatDialect {
  /** The model, where the messages themselves do not name it. */
  readonly model?: string | undefined;
  /** The result in a message of role `tool`; `ordinal` counts the results of the run from 0. */
  resultOf(message: JsonObject, ordinal: number): ResultParts;
}

/** Text of the first message of role `user` (later ones can come from the harness). */
export function firstUserText(messages: readonly JsonValue[]): string | undefined {
  const first = messages.find((message) => textAt(message, "role") === "user");
  return first === undefined ? undefined : contentText(at(first, "content"));
}

/** Writes every message, in order. */
export function writeMessages(writer: RunWriter, messages: readonly JsonValue[], dialect: ChatDialect): void {
  let results = 0;
  messages.forEach((message, index) => {
    const role = textAt(message, "role");
    if (!isObject(message) || role === undefined) {
      writer.note(`message ${index} has no role; it is not imported`);
    } else if (role === "assistant") {
      writeAssistant(writer, message, index, dialect);
    } else if (role === "tool" || role === "function") {
      writeResult(writer, message, index, dialect.resultOf(message, results));
      results += 1;
    } else {
      writer.message({
        index,
        role,
        content: at(message, "content") ?? null,
        at: sourceTime(message),
        extra: orAbsent(without(message, "role", "content")),
      });
    }
  });
}

function writeAssistant(writer: RunWriter, message: JsonObject, index: number, dialect: ChatDialect): void {
  const calls = listAt(message, "tool_calls");
  // Before tool_calls there was one function_call, without an id.
  const legacy = at(message, "function_call");
  const all = calls.length === 0 && isObject(legacy) ? [legacy] : calls;
  const time = sourceTime(message);
  writer.exchange({
    index,
    model: textAt(message, "model") ?? dialect.model,
    content: at(message, "content") ?? null,
    calls: all.length,
    completedAt: time,
    extra: orAbsent(without(message, "role", "content", "tool_calls", "function_call", "model")),
  });
  all.forEach((call, position) => {
    const named = callParts(call);
    if (named === undefined) {
      writer.note(`message ${index}: tool call ${position} names no function; it is not imported`);
      return;
    }
    writer.call({
      index,
      position,
      tool: named.tool,
      args: argumentsOf(named.args),
      providerId: textAt(call, "id"),
      at: time,
      extra: named.extra,
    });
  });
}

/** `{function: {name, arguments}}` as in OpenAI, `{function, args}` as in AgentDojo 1.2, or `{name, arguments}`. */
function callParts(
  call: JsonValue,
): { tool: string; args: JsonValue | undefined; extra: JsonObject | undefined } | undefined {
  if (!isObject(call)) return undefined;
  const nested = call.get("function");
  const tool = isObject(nested)
    ? textAt(nested, "name")
    : typeof nested === "string"
      ? nested
      : textAt(call, "name");
  if (tool === undefined) return undefined;
  const args = isObject(nested) ? nested.get("arguments") : (call.get("args") ?? call.get("arguments"));
  const rest = without(call, "id", "function", "args", "arguments", "name");
  if (rest.get("type") === "function") rest.delete("type");
  return { tool, args, extra: orAbsent(rest) };
}

/** Members of a result that are read; the others stay under `extra`. */
const RESULT_MEMBERS = [
  "role",
  "content",
  "tool_call_id",
  "tool_call_ids",
  "tool_call",
  "name",
  "function",
  "error",
];

function writeResult(writer: RunWriter, message: JsonObject, index: number, parts: ResultParts): void {
  const call = at(message, "tool_call");
  const args = at(call, "args");
  const ids = listAt(message, "tool_call_ids");
  const rest = without(message, ...RESULT_MEMBERS);
  writer.result({
    index,
    hint: {
      providerId: textAt(message, "tool_call_id") ?? (typeof ids[0] === "string" ? ids[0] : undefined),
      tool: textAt(call, "function") ?? textAt(message, "name") ?? textAt(message, "function"),
      argsText: args === undefined ? undefined : jsonText(args),
    },
    at: sourceTime(message),
    ...parts,
    extra: orAbsent(new Map([...rest, ...(parts.extra ?? [])])),
  });
}
