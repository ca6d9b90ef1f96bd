/**
 * Checks values against the part of JSON Schema 2020-12 that extension-schema.ts accepts. It ends at the first
 * violation and keeps nothing: a value of a megabyte that is wrong everywhere costs no more than one that is right.
 *
 * @module
 */
import { escapePointer } from "../json/pointer.ts";
import type { FieldCheck, Violation } from "./types.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** The check of a schema that takes any value. */
export const accept: FieldCheck = () => null;

function invalid(message: string): Violation {
  return { code: "invalid-field", path: "", message };
}

/** The violation as seen from the value that holds the member or element. */
function within(name: string | number, { code, path, message }: Violation): Violation {
  return { code, path: `/${escapePointer(String(name))}${path}`, message };
}

/** A check by a schema that extension-schema.ts has accepted: what is no schema is not refused here. */
export function compileSchema(schema: unknown): FieldCheck {
  if (schema === true) return accept;
  const of = schema as Schema;
  if (of.anyOf !== undefined) return anyOf((of.anyOf as readonly unknown[]).map(compileSchema));
  if (of.enum !== undefined) return oneOf(of.enum as readonly unknown[]);
  if (of.const !== undefined) return oneOf([of.const]);
  return of.type === undefined ? accept : typedCheck(of);
}

function anyOf(checks: readonly FieldCheck[]): FieldCheck {
  const refused = invalid("must be as one of the alternatives that the schema has");
  return (value) => {
    for (const check of checks) if (check(value) === null) return null;
    return refused;
  };
}

function oneOf(values: readonly unknown[]): FieldCheck {
  const known = new Set(values);
  const refused = invalid("must be one of the values that the schema lists");
  // A set finds -0 where it holds 0: they are equal in JSON Schema too.
  return (value) => (known.has(value) ? null : refused);
}

/** The types of JSON Schema that a value has: an integer is a number too. */
function hasType(value: unknown, types: ReadonlySet<string>): boolean {
  if (value === null) return types.has("null");
  if (Array.isArray(value)) return types.has("array");
  if (typeof value !== "number") return types.has(typeof value);
  return types.has("number") || (types.has("integer") && Number.isSafeInteger(value));
}

/** Checks of a type alone, which most fields have: one for all of them. */
const TYPE_ALONE: ReadonlyMap<string, FieldCheck> = new Map(
  ["string", "number", "integer", "boolean", "null", "array", "object"].map((type) => {
    const types = new Set([type]);
    return [type, (value) => (hasType(value, types) ? null : wrongType(types))];
  }),
);

function wrongType(types: ReadonlySet<string>): Violation {
  return invalid(`must be of type ${[...types].join(" or ")}`);
}

function typedCheck(schema: Schema): FieldCheck {
  const types = new Set<string>(Array.isArray(schema.type) ? schema.type : [schema.type]);
  const text = types.has("string") ? stringCheck(schema) : accept;
  const number = types.has("number") || types.has("integer") ? numberCheck(schema) : accept;
  const array = types.has("array") ? arrayCheck(schema) : accept;
  const object = types.has("object") ? objectCheck(schema) : accept;
  const alone = types.size === 1 ? TYPE_ALONE.get([...types][0] ?? "") : undefined;
  if (alone !== undefined && [text, number, array, object].every((check) => check === accept)) return alone;
  return (value) => {
    if (!hasType(value, types)) return wrongType(types);
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return number(value);
    if (typeof value !== "object" || value === null) return null;
    return Array.isArray(value) ? array(value) : object(value);
  };
}

/** Characters as JSON Schema counts them: code points. */
function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (isPair) count--;
  }
  return count;
}

function bound(schema: Schema, keyword: string, absent: number): number {
  const value = schema[keyword];
  return typeof value === "number" ? value : absent;
}

/** Whether the schema has none of these keywords. */
function hasNone(schema: Schema, ...keywords: readonly string[]): boolean {
  return keywords.every((keyword) => schema[keyword] === undefined);
}

function stringCheck(schema: Schema): FieldCheck {
  if (hasNone(schema, "minLength", "maxLength")) return accept;
  const least = bound(schema, "minLength", 0);
  const most = bound(schema, "maxLength", Number.POSITIVE_INFINITY);
  return (value) => {
    const { length } = value as string;
    // A character is one UTF-16 unit or two: most texts need not be counted.
    if (length < least || (length < 2 * least && codePoints(value as string) < least))
      return invalid(`must have at least ${least} characters`);
    return length > most && codePoints(value as string) > most
      ? invalid(`must have at most ${most} characters`)
      : null;
  };
}

function numberCheck(schema: Schema): FieldCheck {
  const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
  if (hasNone(schema, ...bounds, "multipleOf")) return accept;
  const least = bound(schema, "minimum", Number.NEGATIVE_INFINITY);
  const most = bound(schema, "maximum", Number.POSITIVE_INFINITY);
  const above = bound(schema, "exclusiveMinimum", Number.NEGATIVE_INFINITY);
  const below = bound(schema, "exclusiveMaximum", Number.POSITIVE_INFINITY);
  const step = bound(schema, "multipleOf", 0);
  return (value) => {
    const number = value as number;
    if (number < least || number > most || number <= above || number >= below)
      return invalid("must be within the bounds that the schema has");
    return step === 0 || isMultiple(number, step) ? null : invalid(`must be a multiple of ${step}`);
  };
}

/** Whether the quotient is an integer, but for what binary64 loses of decimal fractions: 0.3 is three times 0.1. */
function isMultiple(value: number, step: number): boolean {
  const quotient = value / step;
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * 2 ** -50;
}

function arrayCheck(schema: Schema): FieldCheck {
  if (hasNone(schema, "items")) return accept;
  const least = bound(schema, "minItems", 0);
  const most = bound(schema, "maxItems", Number.POSITIVE_INFINITY);
  const check = compileSchema(schema.items);
  return (value) => {
    const elements = value as readonly unknown[];
    if (elements.length < least) return invalid(`must have at least ${least} elements`);
    if (elements.length > most) return invalid(`must have at most ${most} elements`);
    if (check === accept) return null;
    for (let i = 0; i < elements.length; i++) {
      const violation = check(elements[i]);
      if (violation !== null) return within(i, violation);
    }
    return null;
  };
}

const MISSING: Violation = { code: "missing-field", path: "", message: "a member that has to be there" };
const UNKNOWN: Violation = {
  code: "unknown-field",
  path: "",
  message: "a member that the schema does not have",
};

function objectCheck(schema: Schema): FieldCheck {
  if (hasNone(schema, "properties", "required", "additionalProperties")) return accept;
  const members = new Map(
    Object.entries((schema.properties ?? {}) as Schema).map(([name, of]) => [name, compileSchema(of)]),
  );
  const required = (schema.required ?? []) as readonly string[];
  const { additionalProperties = true } = schema;
  const others = additionalProperties === false ? null : compileSchema(additionalProperties);
  return (value) => {
    const object = value as Schema;
    for (const name of required) if (!Object.hasOwn(object, name)) return within(name, MISSING);
    for (const name of Object.keys(object)) {
      const check = members.get(name) ?? others;
      const violation = check === null ? UNKNOWN : check(object[name]);
      if (violation !== null) return within(name, violation);
    }
    return null;
  };
}
