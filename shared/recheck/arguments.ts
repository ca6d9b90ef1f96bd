/**
 * Arguments against a tool's input schema: a documented subset of JSON Schema (docs/recheck.md, "Argument schemas").
 * There are three answers. A keyword that is not supported makes "not checked" and never a silent pass.
 *
 * @module
 */
import { jsonPointer } from "../json/pointer.ts";
import { JsonNumber, type JsonValue, parseJsonValue } from "../json/value.ts";
import { compareDecimals, decimalOf, isIntegral } from "./decimal.ts";
import { checkPattern } from "./pattern.ts";

export type ArgumentCheck =
  | { readonly result: "holds" }
  | { readonly result: "fails"; readonly why: string }
  | { readonly result: "unchecked"; readonly why: string };

const HOLDS: ArgumentCheck = { result: "holds" };

/** Schemas visited for one check, and `$ref`s followed without going deeper into the arguments. */
const MAX_VISITS = 100_000;
const MAX_REFS = 64;
/** Schemas within schemas: it bounds the stack. */
const MAX_NESTING = 1_000;

/** Checks the arguments (JSON text) against the schema (JSON text; null holds for everything). */
export function checkArguments(schema: string | null, args: string): ArgumentCheck {
  if (schema === null || schema === "null") return HOLDS;
  return new Checker(parseJsonValue(schema)).check(parseJsonValue(args));
}

const ANNOTATIONS = new Set([
  ...["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"],
  ...["contentEncoding", "contentMediaType", "$schema", "$id", "$comment", "$defs", "definitions"],
]);

type Schema = Map<string, JsonValue>;
type Path = readonly (string | number)[];

interface At {
  readonly path: Path;
  readonly refs: number;
}

class Checker {
  readonly #root: JsonValue;
  #visits = 0;
  #nesting = 0;

  constructor(root: JsonValue) {
    this.#root = root;
  }

  check(value: JsonValue): ArgumentCheck {
    return this.#visit(this.#root, value, { path: [], refs: 0 });
  }

  #visit(schema: JsonValue, value: JsonValue, at: At): ArgumentCheck {
    if (++this.#visits > MAX_VISITS) return unchecked(`it takes more than ${MAX_VISITS} steps`);
    if (this.#nesting >= MAX_NESTING) return unchecked("it nests too deep");
    this.#nesting++;
    const result = this.#inside(schema, value, at);
    this.#nesting--;
    return result;
  }

  #inside(schema: JsonValue, value: JsonValue, at: At): ArgumentCheck {
    if (schema === true) return HOLDS;
    if (schema === false) return fails(at, "nothing is allowed here");
    if (!(schema instanceof Map)) return unchecked("a schema in it is neither an object nor a boolean");
    const results: ArgumentCheck[] = [];
    for (const [keyword, argument] of schema) {
      const result = this.#keyword(keyword, argument, schema, value, at);
      if (result.result === "fails") return result;
      results.push(result);
    }
    return results.find(({ result }) => result === "unchecked") ?? HOLDS;
  }

  #keyword(keyword: string, argument: JsonValue, schema: Schema, value: JsonValue, at: At): ArgumentCheck {
    if (ANNOTATIONS.has(keyword) || keyword.startsWith("x-")) return HOLDS;
    switch (keyword) {
      case "type":
        return checkType(argument, value, at);
      case "enum":
        if (!Array.isArray(argument)) return malformed(keyword);
        return argument.some((each) => sameValue(each, value))
          ? HOLDS
          : fails(at, "not one of the values of enum");
      case "const":
        return sameValue(argument, value) ? HOLDS : fails(at, "not the value of const");
      case "required":
        return checkRequired(argument, value, at);
      case "properties":
        return this.#properties(argument, value, at);
      case "additionalProperties":
        return this.#additional(argument, schema, value, at);
      case "items":
        if (!Array.isArray(value)) return HOLDS;
        return all(value.map((item, index) => () => this.#visit(argument, item, deeper(at, index))));
      case "allOf":
      case "anyOf":
      case "oneOf":
        if (!Array.isArray(argument)) return malformed(keyword);
        return this.#combined(keyword, argument, value, at);
      case "not": {
        const inner = this.#visit(argument, value, at);
        if (inner.result === "unchecked") return inner;
        return inner.result === "fails" ? HOLDS : fails(at, "what not excludes");
      }
      case "$ref":
        return this.#reference(argument, value, at);
      default:
        return (
          checkLimit(keyword, argument, value, at) ?? unchecked(`${JSON.stringify(keyword)} is not supported`)
        );
    }
  }

  #properties(argument: JsonValue, value: JsonValue, at: At): ArgumentCheck {
    if (!(argument instanceof Map)) return malformed("properties");
    if (!(value instanceof Map)) return HOLDS;
    const checks: (() => ArgumentCheck)[] = [];
    for (const [name, schema] of argument) {
      const member = value.get(name);
      if (member !== undefined) checks.push(() => this.#visit(schema, member, deeper(at, name)));
    }
    return all(checks);
  }

  #additional(argument: JsonValue, schema: Schema, value: JsonValue, at: At): ArgumentCheck {
    if (!(value instanceof Map)) return HOLDS;
    // Which properties are additional is not known where patterns name some.
    if (schema.has("patternProperties")) return unchecked('"patternProperties" is not supported');
    const properties = schema.get("properties");
    const named = properties instanceof Map ? properties : new Map<string, JsonValue>();
    const checks: (() => ArgumentCheck)[] = [];
    for (const [name, member] of value) {
      if (named.has(name)) continue;
      const inner = deeper(at, name);
      checks.push(() =>
        argument === false
          ? fails(inner, "a property that is not allowed")
          : this.#visit(argument, member, inner),
      );
    }
    return all(checks);
  }

  #combined(
    keyword: "allOf" | "anyOf" | "oneOf",
    schemas: JsonValue[],
    value: JsonValue,
    at: At,
  ): ArgumentCheck {
    const checks = schemas.map((schema) => () => this.#visit(schema, value, at));
    if (keyword === "allOf") return all(checks);
    const results = checks.map((check) => check());
    const holding = results.filter(({ result }) => result === "holds").length;
    const open = results.find(({ result }) => result === "unchecked");
    if (keyword === "anyOf") {
      if (holding > 0) return HOLDS;
      return open ?? fails(at, "matches none of anyOf");
    }
    if (holding > 1) return fails(at, "matches more than one of oneOf");
    if (open !== undefined) return open;
    return holding === 1 ? HOLDS : fails(at, "matches none of oneOf");
  }

  #reference(argument: JsonValue, value: JsonValue, at: At): ArgumentCheck {
    if (typeof argument !== "string") return malformed("$ref");
    if (at.refs >= MAX_REFS) return unchecked("its $refs lead in a circle");
    const target = this.#resolve(argument);
    if (target === undefined) return unchecked("a $ref leads out of the schema or nowhere");
    return this.#visit(target, value, { path: at.path, refs: at.refs + 1 });
  }

  #resolve(reference: string): JsonValue | undefined {
    if (reference === "#") return this.#root;
    if (!/^#\/(?:\$defs|definitions)\//.test(reference)) return undefined;
    let target: JsonValue | undefined = this.#root;
    for (const token of reference.slice(2).split("/")) {
      const key = decodePointer(token);
      target = key !== null && target instanceof Map ? target.get(key) : undefined;
    }
    return target;
  }
}

function decodePointer(token: string): string | null {
  try {
    return decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
}

function deeper(at: At, step: string | number): At {
  return { path: [...at.path, step], refs: 0 };
}

function fails(at: At, why: string): ArgumentCheck {
  return {
    result: "fails",
    why: `${at.path.length === 0 ? "the arguments" : jsonPointer(...at.path)}: ${why}`,
  };
}

function unchecked(why: string): ArgumentCheck {
  return { result: "unchecked", why };
}

function malformed(keyword: string): ArgumentCheck {
  return unchecked(`${JSON.stringify(keyword)} is not what JSON Schema says`);
}

/** The first failure; else what is not checked; else all hold. */
function all(checks: readonly (() => ArgumentCheck)[]): ArgumentCheck {
  let open: ArgumentCheck | null = null;
  for (const check of checks) {
    const result = check();
    if (result.result === "fails") return result;
    if (result.result === "unchecked") open ??= result;
  }
  return open ?? HOLDS;
}

const TYPES = new Set(["null", "boolean", "object", "array", "number", "string", "integer"]);

function checkType(argument: JsonValue, value: JsonValue, at: At): ArgumentCheck {
  const wanted = Array.isArray(argument) ? argument : [argument];
  const names = wanted.filter((name): name is string => typeof name === "string" && TYPES.has(name));
  if (names.length !== wanted.length || names.length === 0) return malformed("type");
  const type = typeOf(value);
  const integral = value instanceof JsonNumber && isIntegral(decimalOf(value.literal));
  return names.some((name) => name === type || (name === "integer" && integral))
    ? HOLDS
    : fails(at, `type is not ${names.join(" or ")}`);
}

function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  if (value instanceof JsonNumber) return "number";
  if (Array.isArray(value)) return "array";
  return value instanceof Map ? "object" : typeof value;
}

function checkRequired(argument: JsonValue, value: JsonValue, at: At): ArgumentCheck {
  if (!Array.isArray(argument)) return malformed("required");
  if (!(value instanceof Map)) return HOLDS;
  for (const name of argument) {
    if (typeof name !== "string") return malformed("required");
    if (!value.has(name)) return fails(deeper(at, name), "required, and missing");
  }
  return HOLDS;
}

const SIZES: ReadonlyMap<string, (value: JsonValue) => number | null> = new Map([
  ["Length", (value: JsonValue) => (typeof value === "string" ? [...value].length : null)],
  ["Items", (value: JsonValue) => (Array.isArray(value) ? value.length : null)],
  ["Properties", (value: JsonValue) => (value instanceof Map ? value.size : null)],
]);

/** Bounds of numbers and sizes, and patterns; null for another keyword. */
function checkLimit(keyword: string, argument: JsonValue, value: JsonValue, at: At): ArgumentCheck | null {
  if (keyword === "pattern") {
    if (typeof argument !== "string") return malformed(keyword);
    if (typeof value !== "string") return HOLDS;
    const answer = checkPattern(argument, value);
    if (answer === "unchecked") return unchecked("a pattern in it may take long");
    return answer === "matches" ? HOLDS : fails(at, "does not match the pattern");
  }
  const size = /^(min|max)(Length|Items|Properties)$/.exec(keyword);
  const bound = /^(?:minimum|maximum|exclusiveMinimum|exclusiveMaximum)$/.test(keyword);
  if (size === null && !bound) return null;
  if (!(argument instanceof JsonNumber)) return malformed(keyword);
  let literal: string;
  if (size === null) {
    if (!(value instanceof JsonNumber)) return HOLDS;
    literal = value.literal;
  } else {
    const count = SIZES.get(size[2] ?? "")?.(value) ?? null;
    if (count === null) return HOLDS;
    literal = String(count);
  }
  const order = compareDecimals(decimalOf(literal), decimalOf(argument.literal));
  const lower = keyword.startsWith("min") || keyword === "exclusiveMinimum";
  const strict = keyword.startsWith("exclusive");
  const ok = strict ? (lower ? order > 0 : order < 0) : lower ? order >= 0 : order <= 0;
  return ok ? HOLDS : fails(at, `${keyword} does not hold`);
}

/** Equality of JSON values as the standard has it: numbers by value, objects without order. */
function sameValue(a: JsonValue, b: JsonValue): boolean {
  if (a instanceof JsonNumber || b instanceof JsonNumber) {
    if (!(a instanceof JsonNumber && b instanceof JsonNumber)) return false;
    return compareDecimals(decimalOf(a.literal), decimalOf(b.literal)) === 0;
  }
  if (Array.isArray(a)) {
    return (
      Array.isArray(b) && a.length === b.length && a.every((item, index) => sameValue(item, b[index] ?? null))
    );
  }
  if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false;
    return [...a].every(([key, member]) => {
      const other = b.get(key);
      return other !== undefined && sameValue(member, other);
    });
  }
  if (Array.isArray(b) || b instanceof Map) return false;
  return a === b;
}
