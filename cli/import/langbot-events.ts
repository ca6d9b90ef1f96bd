/**
 * The events of a LangBot run as entries: each type is one of our kinds, the whole row stays under `extra.langbot`.
 *
 * @module
 */
import { JsonNumber, type JsonValue, parseJsonValue } from "../../shared/json/value.ts";
import { naiveUtc } from "./times.ts";
import { at, isObject, type JsonObject, objectOf, textAt, without } from "./tree.ts";
import type { RunWriter } from "./writer.ts";

/** Whose state an event is of that is none of LangBot's known types: the catalogue has no kind for "something else". */
const OTHER_SCOPE = "langbot.event";

/** Writes one row of `agent_run_event`; `index` is what its call is named by. */
export function writeEvent(writer: RunWriter, row: JsonObject, index: number): void {
  const type = textAt(row, "type") ?? "";
  const raw = row.get("data_json") ?? null;
  const data = decoded(raw) ?? new Map<string, JsonValue>();
  const broken = raw !== null && raw !== "" && decoded(raw) === undefined;
  if (broken) writer.note("events whose data_json is no JSON are kept as text");
  const sequence = sequenceOf(row);
  const time = naiveUtc(textAt(row, "created_at"));
  const fields = objectOf([
    ["imported.system", "langbot"],
    ["imported.seq", sequence === undefined ? undefined : row.get("sequence")],
  ]);
  const extra = objectOf([["langbot", row]]);
  if (type === "tool.call.started") {
    writer.call({
      index,
      position: 0,
      tool: textAt(data, "tool_name") ?? "",
      args: { args: broken ? raw : (at(data, "parameters") ?? new Map()) },
      providerId: textAt(data, "tool_call_id"),
      at: time,
      fields,
      extra,
    });
  } else if (type === "tool.call.completed") {
    const error = truthy(at(data, "error"));
    const result = broken ? raw : at(data, "result");
    writer.result({
      index,
      hint: { providerId: textAt(data, "tool_call_id"), tool: textAt(data, "tool_name") },
      at: time,
      status: error !== undefined ? "failure" : broken ? "unknown" : "success",
      result,
      error,
      fields,
      extra,
    });
  } else {
    const mapped = actionOf(type, data, broken ? raw : undefined);
    writer.raw({
      kind: mapped.kind,
      at: time,
      action: new Map([...objectOf(mapped.fields), ...fields, ["extra", extra]]),
    });
  }
}

/** The sequence number of a row, where it is a whole one. */
export function sequenceOf(row: JsonObject): number | undefined {
  const value = row.get("sequence");
  return value instanceof JsonNumber && /^(?:0|[1-9][0-9]{0,14})$/.test(value.literal)
    ? Number(value.literal)
    : undefined;
}

/**
 * The value of a JSON text, or undefined where it does not decode. Nothing (null, or an empty text) is an empty object,
 * as in LangBot's own reader.
 */
export function decoded(column: JsonValue | undefined): JsonValue | undefined {
  if (column === undefined || column === null || column === "") return new Map();
  if (typeof column !== "string") return column;
  try {
    return parseJsonValue(column);
  } catch {
    return undefined;
  }
}

interface Mapped {
  readonly kind: string;
  readonly fields: readonly (readonly [string, JsonValue | undefined])[];
}

/** The kind of an event and its fields; `text` is a payload that does not decode. */
function actionOf(type: string, data: JsonValue, text: JsonValue | undefined): Mapped {
  const any = (name: string): JsonValue => text ?? at(data, name) ?? null;
  const optional = (name: string): JsonValue | undefined => at(data, name) ?? undefined;
  switch (type) {
    case "message.delta":
      return { kind: type, fields: [["chunk", any("chunk")]] };
    case "message.completed":
      return { kind: type, fields: [["message", any("message")]] };
    case "state.updated":
      return {
        kind: type,
        fields: [
          ["scope", label(at(data, "scope")) ?? ""],
          ["key", label(at(data, "key")) ?? ""],
          ["value", any("value")],
        ],
      };
    case "action.requested":
      return {
        kind: type,
        fields: [
          ["action", label(at(data, "action")) ?? ""],
          ["target", optional("target")],
          ["payload", text ?? optional("payload")],
        ],
      };
    case "run.completed":
      return {
        kind: type,
        fields: [
          ["finish_reason", label(at(data, "finish_reason"))],
          ["message", text ?? optional("message")],
        ],
      };
    case "run.failed":
      return {
        kind: type,
        fields: [
          ["error", textAt(data, "error")],
          ["code", label(at(data, "code"))],
          ["retryable", flag(at(data, "retryable"))],
        ],
      };
    case "steering.injected":
    case "steering.dropped":
      return {
        kind: type,
        fields: [["message", text ?? (isObject(data) && data.size > 0 ? data : undefined)]],
      };
    default:
      return type.startsWith("admin.")
        ? adminRequest(type, data, text)
        : { kind: "state.updated", fields: other(type, data, text) };
  }
}

/** A host audit event (`admin.<action>`). */
function adminRequest(type: string, data: JsonValue, text: JsonValue | undefined): Mapped {
  const known = ["action", "permission", "target_run_id", "target_runtime_id"];
  return {
    kind: "admin.request",
    fields: [
      ["method", label(at(data, "action")) ?? type.slice("admin.".length).slice(0, 512)],
      ["required_capability", label(at(data, "permission"))],
      ["target_run_id", label(at(data, "target_run_id"))],
      ["target_runtime_id", label(at(data, "target_runtime_id"))],
      ["params", text ?? (isObject(data) ? without(data, ...known) : data)],
    ],
  };
}

function other(type: string, data: JsonValue, text: JsonValue | undefined): Mapped["fields"] {
  return [
    ["scope", OTHER_SCOPE],
    ["key", type.slice(0, 512)],
    ["value", text ?? data],
  ];
}

/** A text that the catalogue takes as a label; anything else is only in the raw row. */
export function label(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value.length <= 512 ? value : undefined;
}

function flag(value: JsonValue | undefined): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** The value where Python takes it for true: what LangBot calls an error. */
function truthy(value: JsonValue | undefined): JsonValue | undefined {
  if (value === undefined || value === null || value === false || value === "") return undefined;
  if (value instanceof JsonNumber) return Number(value.literal) === 0 ? undefined : value;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value;
  if (isObject(value)) return value.size === 0 ? undefined : value;
  return value;
}
