/**
 * JSON as a tree that loses nothing: numbers keep their literals, objects are Maps, so that `__proto__` is a key as any
 * other.
 *
 * @module
 */
import { MAX_DEPTH } from "./canonicalize.ts";
import { quote } from "./chars.ts";
import { JsonError } from "./errors.ts";
import { compareUtf8 } from "./order.ts";
import { jsonPointer } from "./pointer.ts";
import { JsonReader } from "./reader.ts";

/** A number, its literal kept as it was sent: 1, 1.0 and 1e0 differ. */
export class JsonNumber {
  readonly literal: string;

  /** Throws `JsonError` where the literal is no JSON number, or one that is refused. */
  constructor(literal: string) {
    if (!/^[-0-9]/.test(literal)) throw new JsonError("json-syntax", "not a number literal", "", 0);
    const reader = new JsonReader(literal);
    this.literal = reader.readNumber();
    if (this.literal !== literal)
      throw new JsonError("json-syntax", "not a number literal", "", reader.offset);
  }

  /** The number as binary64, rounded where it has to be. */
  toNumber(): number {
    return Number(this.literal);
  }
}

export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | Map<string, JsonValue>;

/** Parses one JSON document strictly. Throws `JsonError`; blank text is refused. */
export function parseJsonValue(text: string): JsonValue {
  const check = new JsonReader(text);
  check.readCanonical();
  check.finish();
  return parseTree(new JsonReader(text));
}

/** The canonical text of the tree. Throws `JsonError` where it nests too deep or a text is no Unicode text. */
export function jsonText(value: JsonValue): string {
  try {
    return write(value, 0, null);
  } catch {
    // Once more with the way kept, for the refusal's pointer.
    return write(value, 0, []);
  }
}

function parseTree(reader: JsonReader): JsonValue {
  switch (reader.peek()) {
    case "string":
      return reader.readString();
    case "number":
      return new JsonNumber(reader.readNumber());
    case "array": {
      const elements: JsonValue[] = [];
      reader.enterArray();
      while (reader.nextElement()) elements.push(parseTree(reader));
      return elements;
    }
    case "object": {
      const members = new Map<string, JsonValue>();
      reader.enterObject();
      for (let key = reader.nextKey(); key !== null; key = reader.nextKey())
        members.set(key, parseTree(reader));
      return members;
    }
    default:
      return reader.readLiteral();
  }
}

type Path = (string | number)[];

function write(value: JsonValue, depth: number, path: Path | null): string {
  if (typeof value === "string") return writeString(value, path);
  if (value instanceof JsonNumber) return value.literal;
  if (value === null || typeof value === "boolean") return String(value);
  if (depth >= MAX_DEPTH) {
    throw new JsonError(
      "json-depth",
      `nested deeper than ${MAX_DEPTH} levels`,
      jsonPointer(...(path ?? [])),
      0,
    );
  }
  return Array.isArray(value) ? writeArray(value, depth + 1, path) : writeObject(value, depth + 1, path);
}

function writeArray(elements: readonly JsonValue[], depth: number, path: Path | null): string {
  let out = "[";
  for (let i = 0; i < elements.length; i++) {
    path?.push(i);
    out += `${i > 0 ? "," : ""}${write(elements[i] ?? null, depth, path)}`;
    path?.pop();
  }
  return `${out}]`;
}

function writeObject(members: ReadonlyMap<string, JsonValue>, depth: number, path: Path | null): string {
  let out = "{";
  for (const key of [...members.keys()].sort(compareUtf8)) {
    out += `${out.length > 1 ? "," : ""}${writeString(key, path)}:`;
    path?.push(key);
    out += write(members.get(key) ?? null, depth, path);
    path?.pop();
  }
  return `${out}}`;
}

function writeString(text: string, path: Path | null): string {
  if (/\p{Surrogate}/u.test(text)) {
    throw new JsonError("json-surrogate", "an unpaired surrogate", jsonPointer(...(path ?? [])), 0);
  }
  return quote(text);
}
