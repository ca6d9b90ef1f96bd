/**
 * The types of fields, and how sections are put together from them.
 *
 * @module
 */
import { z } from "zod";
import { isTime } from "../time.ts";
import { plainSchema } from "./plain-schema.ts";
import { FIELD_NAME, type FieldSpec, type FieldType, type SectionSpec } from "./types.ts";

/** A string token without escapes, its content in the group. */
const PLAIN_STRING = /^"([^"\\]*)"$/;
/** 2^63 - 1, which no double holds: the nearest one. */
const INT64_MAX = Number(2n ** 63n - 1n);

function isIntegerText(digits: number): (text: string) => boolean {
  const pattern = new RegExp(`^(?:0|[1-9]\\d{0,${digits - 1}})$`);
  return (text) => pattern.test(text);
}

function conformsTo(check: (content: string) => boolean): (text: string) => boolean {
  return (text) => {
    const content = PLAIN_STRING.exec(text)?.[1];
    return content !== undefined && check(content);
  };
}

const isSmallInteger = isIntegerText(15);

/** Opaque JSON. */
export const json: FieldType = { type: "JSON", schema: null, quick: () => true };

/** Text of any length. */
export const text: FieldType = { type: "text", schema: z.string(), quick: (value) => value.startsWith('"') };

/** A short text: a name, a reason code, an identifier of another system. At most 512 UTF-16 units, possibly empty. */
const MAX_LABEL = 512;
export const LABEL = z.string().max(MAX_LABEL);
export const label: FieldType = {
  type: "label",
  schema: LABEL,
  // Escapes only make a token longer than its text.
  quick: (value) => value.startsWith('"') && value.length <= MAX_LABEL + 2,
};

/** Lower-case hex of a SHA-256. */
export const HASH = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 characters of lower-case hex");
const HASH_TOKEN = /^"[0-9a-f]{64}"$/;
export const hash: FieldType = { type: "hash", schema: HASH, quick: (value) => HASH_TOKEN.test(value) };

/**
 * A number of things: an integer from 0 to 2^63 - 1, as the seed systems' counters are. Zod's own integers end at
 * 2^53. The check is on the nearest double; what is kept is the literal.
 */
export const COUNT = z.number().multipleOf(1).min(0).max(INT64_MAX).meta({ type: "integer" });
export const count: FieldType = { type: "count", schema: COUNT, quick: isIntegerText(18) };

/** An integer from 1 to 2^63 - 1. */
export const POSITIVE = COUNT.min(1).meta({ type: "integer" });
export const positive: FieldType = {
  type: "count from 1",
  schema: POSITIVE,
  quick: (value) => value !== "0" && count.quick(value),
};

/** A span of time in nanoseconds: an integer from 0 to 2^63 - 1. */
export const DURATION = COUNT.meta({ type: "integer", description: "nanoseconds" });
export const duration: FieldType = { type: "duration", schema: DURATION, quick: count.quick };

/** A sequence number of one of our logs. */
export const SEQ = z.int().min(1);
export const seq: FieldType = {
  type: "count from 1",
  schema: SEQ,
  quick: (value) => value !== "0" && isSmallInteger(value),
};

export const BOOLEAN = z.boolean();
export const boolean: FieldType = {
  type: "boolean",
  schema: BOOLEAN,
  quick: (value) => value === "true" || value === "false",
};

/** An RFC 3339 time from 1970 to 2554, with at most nine fractional digits. */
export const TIME = z
  .string()
  .refine(isTime, "must be an RFC 3339 time with at most nine fractional digits")
  .meta({ format: "date-time" });
export const time: FieldType = { type: "time", schema: TIME, quick: conformsTo(isTime) };

/** One of a closed set of words. */
export function oneOf<const Word extends string>(...words: readonly [Word, ...Word[]]): FieldType {
  const tokens = new Set(words.map((word) => `"${word}"`));
  const type = `one of ${words.join(", ")}`;
  return { type, schema: z.enum(words), quick: (value) => tokens.has(value) };
}

/**
 * A list, looked through up to its first wrong element: Zod's own keeps an issue for each, and a value holds hundreds of
 * thousands.
 */
export function listOf(element: z.ZodType): z.ZodType {
  return z
    .array(z.unknown())
    .superRefine((list, context) => {
      for (const [index, item] of list.entries()) {
        const issue = element.safeParse(item).error?.issues[0];
        if (issue === undefined) continue;
        context.addIssue({ ...issue, path: [index, ...issue.path] });
        return;
      }
    })
    .meta({ type: "array", items: plainSchema(element) });
}

export const labels: FieldType = typed("list of labels", listOf(LABEL));

/** A type whose values are always parsed; `type` names it in the docs. */
export function typed(type: string, schema: z.ZodType): FieldType {
  return { type, schema, quick: () => false };
}

/** A member of a nested object that may be absent, or null. */
export function maybe<Schema extends z.ZodType>(schema: Schema): z.ZodOptional<z.ZodNullable<Schema>> {
  return schema.nullish();
}

/** An entry that another one names: of the same log, by sequence number and leaf hash. */
export const entryRef: FieldType = typed("entry", z.strictObject({ seq: SEQ, hash: HASH }));

/** A head that an entry names. */
export const headRef: FieldType = typed(
  "head",

  z.strictObject({
    size: COUNT,
    root: HASH,
    seq: maybe(COUNT),
    hash: maybe(HASH),
    checkpoint: maybe(z.string()),
  }),
);

/** A field without its name. */
export type NamelessField = Omit<FieldSpec, "name">;
export type FieldTable = Readonly<Record<string, NamelessField>>;

/** A field that has to be there. */
export function required(type: FieldType, description: string): NamelessField {
  return { ...type, optional: false, description };
}

/** A field that may be absent, or null. */
export function optional(type: FieldType, description: string): NamelessField {
  return { ...type, optional: true, description };
}

/** A section of these fields. Throws on a field name that the format does not allow: a mistake of the catalogue. */
export function section(table: FieldTable, open = false): SectionSpec {
  const fields = Object.entries(table).map(([name, field]): FieldSpec => {
    if (!FIELD_NAME.test(name)) throw new Error(`bad field name ${name}`);
    return { name, ...field };
  });
  return {
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
    required: fields.filter((field) => !field.optional),
    open,
  };
}
