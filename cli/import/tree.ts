/**
 * Small helpers over the value tree of shared/json: reading members of unknown shape, and building objects.
 *
 * @module
 */
import { JsonNumber, type JsonValue, jsonText, parseJsonValue } from "../../shared/json/value.ts";

/** Deepest nesting of a source's values; the log takes 256 levels, and an entry adds some of its own. */
export const MAX_SOURCE_DEPTH = 240;

/** An object of the tree. */
export type JsonObject = Map<string, JsonValue>;

/** Whether the value is an object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return value instanceof Map;
}

/** The value at a path of member names, or undefined where something on the way is missing or no object. */
export function at(value: JsonValue | undefined, ...path: readonly string[]): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const name of path) {
    if (!isObject(here)) return undefined;
    here = here.get(name);
  }
  return here;
}

/** The string at a path, or undefined. */
export function textAt(value: JsonValue | undefined, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === "string" ? found : undefined;
}

/** The array at a path; empty where there is none. */
export function listAt(value: JsonValue | undefined, ...path: readonly string[]): readonly JsonValue[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The whole number, not negative and exact in a double, at a path; undefined for anything else. */
export function countAt(value: JsonValue | undefined, ...path: readonly string[]): number | undefined {
  const found = at(value, ...path);
  if (!(found instanceof JsonNumber) || !/^[0-9]+$/.test(found.literal)) return undefined;
  const count = Number(found.literal);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** An object of the given members; those that are undefined are left out. */
export function objectOf(members: readonly (readonly [string, JsonValue | undefined])[]): JsonObject {
  const object: JsonObject = new Map();
  for (const [name, value] of members) if (value !== undefined) object.set(name, value);
  return object;
}

/** The members of an object but for some. */
export function without(object: JsonObject, ...names: readonly string[]): JsonObject {
  const rest = new Map(object);
  for (const name of names) rest.delete(name);
  return rest;
}

/** The object, or undefined where it has no member. */
export function orAbsent(object: JsonObject): JsonObject | undefined {
  return object.size > 0 ? object : undefined;
}

/** A whole number as a value. */
export function numberOf(count: number): JsonNumber {
  return new JsonNumber(String(count));
}

/**
 * The text in a message's content: a string itself, or the text blocks of a list, joined by line breaks
 * (`{type: "text", text}` as in OpenAI and Anthropic, `{type: "text", content}` as in AgentDojo 1.2).
 */
export function contentText(content: JsonValue | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const parts: string[] = [];
  for (const block of content) {
    const part = typeof block === "string" ? block : (textAt(block, "text") ?? textAt(block, "content"));
    if (part !== undefined && (typeof block === "string" || textAt(block, "type") !== "thinking"))
      parts.push(part);
  }
  return parts.join("\n");
}

/** Whether objects and arrays nest in more than so many levels. */
export function deeperThan(value: JsonValue, levels: number): boolean {
  if (Array.isArray(value)) return levels === 0 || value.some((element) => deeperThan(element, levels - 1));
  if (isObject(value))
    return levels === 0 || [...value.values()].some((member) => deeperThan(member, levels - 1));
  return false;
}

/** Arguments as the log keeps them. */
export interface Arguments {
  readonly args: JsonValue;
  /** The source's own text, where `args` does not give it back: it is not canonical, or it does not parse. */
  readonly text?: string;
}

/**
 * Arguments that a source gives as JSON text inside a string: the value where the text is an object that the log
 * accepts inside of an entry, else the string as it is. `text` is set where the canonical text of `args` is another one.
 */
export function argumentsOf(value: JsonValue | undefined): Arguments {
  if (value === undefined) return { args: new Map() };
  if (typeof value !== "string") return { args: value };
  let parsed: JsonValue;
  try {
    parsed = parseJsonValue(value);
  } catch {
    return { args: value };
  }
  if (!isObject(parsed) || deeperThan(parsed, MAX_SOURCE_DEPTH)) return { args: value };
  return jsonText(parsed) === value ? { args: parsed } : { args: parsed, text: value };
}
