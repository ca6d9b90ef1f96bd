/**
 * The JSON Schema that a tenant declares for a kind of its own, turned into a section of the
 * catalogue. Only what is enforced is accepted: a keyword that schema-check.ts does not know is refused when the schema
 * is declared. `pattern` is refused too: it would let one tenant's expression run in everybody's Worker. Integers end
 * at 2^53.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { escapePointer } from "../json/pointer.ts";
import { type ExtensionSections, withCommonFields } from "./extension.ts";
import { json, type NamelessField } from "./fields.ts";
import { accept, compileSchema, type Schema } from "./schema-check.ts";
import { COMMON_ACTION, COMMON_OUTCOME } from "./sections.ts";
import { FIELD_NAME, type FieldType, type SectionSpec } from "./types.ts";

/** Keywords that only explain. */
const ANNOTATIONS = ["title", "description", "examples", "deprecated", "$comment"];
/** Keywords that are enforced, by the type that they need beside them. */
const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  string: ["minLength", "maxLength"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  boolean: [],
  null: [],
  array: ["items", "minItems", "maxItems"],
  object: ["properties", "required", "additionalProperties"],
};
const SECTION_KEYWORDS = [
  "$schema",
  "type",
  "properties",
  "required",
  "additionalProperties",
  ...ANNOTATIONS,
];
const DIALECT = "https://json-schema.org/draft/2020-12/schema";
/** Keywords that count something. */
const COUNTS = ["minLength", "maxLength", "minItems", "maxItems"];
/** Levels of a schema. */
export const MAX_LEVELS = 32;
/** Alternatives on the way to one place of a value: each of them may look at all that is there. */
export const MAX_ALTERNATIVES = 16;

function refuse(pointer: string, why: string): RunsealError<"bad-schema"> {
  return new RunsealError("bad-schema", why, pointer);
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function child(pointer: string, name: string): string {
  return `${pointer}/${escapePointer(name)}`;
}

/**
 * The sections of an extension's kind from the JSON Schemas of its action and its outcome. Each describes an object,
 * whose properties become fields; fields that are not described are accepted unless `additionalProperties` is false.
 * Throws `RunsealError("bad-schema")` with a pointer into `{action, outcome}`.
 */
export function extensionSections(declared: {
  readonly description?: string;
  readonly action: unknown;
  readonly outcome?: unknown;
}): ExtensionSections {
  return {
    ...(declared.description === undefined ? {} : { description: declared.description }),
    action: sectionOf("action", declared.action),
    ...(declared.outcome === undefined ? {} : { outcome: sectionOf("outcome", declared.outcome) }),
  };
}

function sectionOf(name: "action" | "outcome", schema: unknown): SectionSpec {
  const pointer = `/${name}`;
  if (!isObject(schema)) throw refuse(pointer, "a schema is an object");
  checkKeywords(schema, pointer, SECTION_KEYWORDS);
  if (schema.type !== "object") throw refuse(child(pointer, "type"), "a section is an object");
  if (schema.$schema !== undefined && schema.$schema !== DIALECT) {
    throw refuse(child(pointer, "$schema"), "only JSON Schema 2020-12 is known");
  }
  const open = openness(schema, pointer);
  const needed = requiredNames(schema, pointer);
  const table: Record<string, NamelessField> = {};
  for (const [field, of] of Object.entries(propertiesOf(schema, pointer))) {
    const at = child(`${pointer}/properties`, field);
    if (!FIELD_NAME.test(field)) throw refuse(at, "a field's name is 1 to 64 of [a-z0-9_.]");
    if (name === "outcome" && field === "status") throw refuse(at, "the status of an outcome is not a field");
    if (Object.hasOwn(name === "action" ? COMMON_ACTION : COMMON_OUTCOME, field))
      throw refuse(at, "a field that every kind has is not declared");
    checkSchema(of, at, 1, 1);
    const description = isObject(of) && typeof of.description === "string" ? of.description : "";
    table[field] = { ...declaredType(of), optional: !needed.has(field), description };
  }
  for (const field of needed) {
    if (!Object.hasOwn(table, field))
      throw refuse(`${pointer}/required`, "a required field has to be described");
  }
  return withCommonFields(name, table, open);
}

function declaredType(schema: unknown): FieldType {
  const check = compileSchema(schema);
  return check === accept ? json : { type: "declared", schema: null, quick: () => false, check };
}

function openness(schema: Schema, pointer: string): boolean {
  const { additionalProperties = true } = schema;
  if (typeof additionalProperties !== "boolean") {
    throw refuse(child(pointer, "additionalProperties"), "must be true or false");
  }
  return additionalProperties;
}

function propertiesOf(schema: Schema, pointer: string): Schema {
  const { properties = {} } = schema;
  if (!isObject(properties)) throw refuse(child(pointer, "properties"), "must be an object");
  if (Object.hasOwn(properties, "__proto__"))
    throw refuse(child(pointer, "properties"), "__proto__ is not supported");
  return properties;
}

function requiredNames(schema: Schema, pointer: string): ReadonlySet<string> {
  const { required = [] } = schema;
  if (!Array.isArray(required) || !required.every((name): name is string => typeof name === "string")) {
    throw refuse(child(pointer, "required"), "must be a list of names");
  }
  return new Set(required);
}

function checkDescribed(schema: Schema, properties: Schema, pointer: string): void {
  for (const name of requiredNames(schema, pointer)) {
    if (!Object.hasOwn(properties, name)) {
      throw refuse(child(pointer, "required"), "what is required has to be described under properties");
    }
  }
}

function checkKeywords(schema: Schema, pointer: string, known: readonly string[]): void {
  for (const keyword of Object.keys(schema)) {
    if (!known.includes(keyword))
      throw refuse(child(pointer, keyword), "a keyword that is not supported here");
  }
}

/**
 * Refuses what would not be enforced as the standard says.
 *
 * @param ways alternatives that lead here
 */
function checkSchema(schema: unknown, pointer: string, level: number, ways: number): void {
  if (level > MAX_LEVELS) throw refuse(pointer, `nested deeper than ${MAX_LEVELS} levels`);
  if (schema === true) return;
  if (!isObject(schema)) throw refuse(pointer, "a schema is an object, or true");
  if (schema.anyOf !== undefined) {
    checkKeywords(schema, pointer, ["anyOf", ...ANNOTATIONS]);
    const all = ways * (Array.isArray(schema.anyOf) ? schema.anyOf.length : 1);
    if (all > MAX_ALTERNATIVES)
      throw refuse(child(pointer, "anyOf"), `more than ${MAX_ALTERNATIVES} alternatives for one place`);
    checkList(schema.anyOf, child(pointer, "anyOf"), (one, at) => checkSchema(one, at, level + 1, all));
  } else if (schema.enum !== undefined) {
    checkKeywords(schema, pointer, ["enum", ...ANNOTATIONS]);
    checkList(schema.enum, child(pointer, "enum"), checkScalar);
  } else if (schema.const !== undefined) {
    checkKeywords(schema, pointer, ["const", ...ANNOTATIONS]);
    checkScalar(schema.const, child(pointer, "const"));
  } else if (schema.type === undefined) {
    checkKeywords(schema, pointer, ANNOTATIONS);
  } else {
    checkTyped(schema, pointer, level, ways);
  }
}

function checkTyped(schema: Schema, pointer: string, level: number, ways: number): void {
  const types: unknown[] = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.length === 0) throw refuse(child(pointer, "type"), "no type of JSON");
  const keywords: string[] = ["type", ...ANNOTATIONS];
  for (const type of types) {
    const own = typeof type === "string" && Object.hasOwn(KEYWORDS, type) ? KEYWORDS[type] : undefined;
    if (own === undefined) throw refuse(child(pointer, "type"), "no type of JSON");
    keywords.push(...own);
  }
  checkKeywords(schema, pointer, keywords);
  if (schema.items !== undefined) checkSchema(schema.items, child(pointer, "items"), level + 1, ways);
  else if (schema.minItems !== undefined || schema.maxItems !== undefined) {
    throw refuse(pointer, "minItems and maxItems need items beside them");
  }
  const properties = propertiesOf(schema, pointer);
  for (const [name, of] of Object.entries(properties)) {
    checkSchema(of, child(`${pointer}/properties`, name), level + 1, ways);
  }
  checkDescribed(schema, properties, pointer);
  if (typeof (schema.additionalProperties ?? true) !== "boolean") {
    checkSchema(schema.additionalProperties, child(pointer, "additionalProperties"), level + 1, ways);
  }
  checkBounds(schema, pointer);
}

function checkBounds(schema: Schema, pointer: string): void {
  for (const [keyword, bound] of Object.entries(schema)) {
    if (!/^(min|max|exclusive|multiple)/.test(keyword)) continue;
    const at = child(pointer, keyword);
    if (typeof bound !== "number") throw refuse(at, "must be a number");
    if (COUNTS.includes(keyword) && !(Number.isSafeInteger(bound) && bound >= 0))
      throw refuse(at, "must be a count");
    if (keyword === "multipleOf" && !(bound > 0)) throw refuse(at, "must be more than 0");
  }
}

function checkList(list: unknown, pointer: string, check: (one: unknown, at: string) => void): void {
  if (!Array.isArray(list) || list.length === 0) throw refuse(pointer, "must be a list that is not empty");
  list.forEach((one, index) => {
    check(one, child(pointer, String(index)));
  });
}

function checkScalar(value: unknown, pointer: string): void {
  if (typeof value === "object" && value !== null) throw refuse(pointer, "must be a scalar");
}
