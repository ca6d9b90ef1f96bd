/**
 * Recorded JSON as JSON that Cedar reads. Cedar has no null and no floating point, and reads three keys as escapes
 * (docs/policies.md, "cedar: values"): what it has no value for is mapped by a stated rule and noted, or is a failure.
 *
 * @module
 */
import { quote } from "../json/chars.ts";
import { JsonNumber, type JsonValue, parseJsonValue } from "../json/value.ts";
import { type Decimal, decimalOf, isIntegral } from "./decimal.ts";

/** What was mapped, so that the report can say so. */
export interface Mapped {
  /** A null was left out. */
  nulls: boolean;
  /** A number that is no Long became a decimal, or its text. */
  numbers: boolean;
}

/** Why a recorded value can't be handed to Cedar at all. */
export class CedarValueError extends Error {
  override readonly name = "CedarValueError";
}

/** Levels of nesting that Cedar's reader takes, less those of the call around a value. */
const MAX_LEVELS = 100;

/** Keys that Cedar reads as escapes: an agent's arguments must not become an entity of the policy's. */
const ESCAPES: ReadonlySet<string> = new Set(["__entity", "__extn", "__expr"]);

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const ESCAPE_KEY = /"__(?:entity|extn|expr)":/;
/** A null, or a number that is no plain integer of at most 18 digits; strings may have the same and are looked past. */
const SUSPECT = /null|[0-9][.eE]|-0|[0-9]{19}/;

/**
 * Cedar's JSON for a canonical JSON text. "" for null, which Cedar has no value for.
 *
 * @param mapped is told what was mapped
 * @throws CedarValueError for a value that Cedar would take for something else, or nests too deep
 */
export function cedarText(canonical: string, mapped: Mapped): string {
  if (canonical.length > 2 * MAX_LEVELS && nestsTooDeep(canonical))
    throw new CedarValueError(`it nests deeper than ${MAX_LEVELS} levels`);
  const plain =
    !ESCAPE_KEY.test(canonical) &&
    (!SUSPECT.test(canonical) || !SUSPECT.test(canonical.replace(STRING, '""')));
  return plain ? canonical : valueText(parseJsonValue(canonical), mapped);
}

/** Cedar's JSON for a count, which is a number or a literal. */
export function cedarCount(count: number | string, mapped: Mapped): string {
  return Number.isSafeInteger(count) && !Object.is(count, -0)
    ? String(count)
    : numberText(String(count), mapped);
}

function nestsTooDeep(canonical: string): boolean {
  let levels = 0;
  for (const [bracket] of canonical.replace(STRING, "").matchAll(/[[\]{}]/g)) {
    levels += bracket === "[" || bracket === "{" ? 1 : -1;
    if (levels > MAX_LEVELS) return true;
  }
  return false;
}

function valueText(value: JsonValue, mapped: Mapped): string {
  if (value === null) {
    mapped.nulls = true;
    return "";
  }
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return quote(value);
  if (value instanceof JsonNumber) return numberText(value.literal, mapped);
  if (Array.isArray(value)) {
    return `[${value
      .map((item) => valueText(item, mapped))
      .filter((text) => text !== "")
      .join(",")}]`;
  }
  const members: string[] = [];
  for (const [key, member] of value) {
    if (ESCAPES.has(key)) throw new CedarValueError(`it has a member ${key}, which Cedar reads as an escape`);
    const text = valueText(member, mapped);
    if (text !== "") members.push(`${quote(key)}:${text}`);
  }
  return `{${members.join(",")}}`;
}

const MAX_LONG = 2n ** 63n - 1n;
/** Digits after the point that a Cedar decimal has. */
const DECIMAL_PLACES = 4;

/** An integer that fits a Long is one, however it is written; else a decimal where it fits; else the literal's text. */
function numberText(literal: string, mapped: Mapped): string {
  const value = decimalOf(literal);
  if (value.digits === "") return "0";
  const size = value.digits.length + value.exponent;
  if (isIntegral(value) && size <= 19) {
    const long = scaled(value, 0);
    if (long <= MAX_LONG && long >= -MAX_LONG - 1n) return String(long);
  }
  mapped.numbers = true;
  if (!isIntegral(value) && value.exponent >= -DECIMAL_PLACES && size <= 15) {
    const units = scaled(value, DECIMAL_PLACES);
    if (units <= MAX_LONG && units >= -MAX_LONG - 1n) {
      const digits = String(units < 0n ? -units : units).padStart(DECIMAL_PLACES + 1, "0");
      const point = digits.length - DECIMAL_PLACES;
      const text = `${value.negative ? "-" : ""}${digits.slice(0, point)}.${digits.slice(point)}`;
      return `{"__extn":{"arg":"${text}","fn":"decimal"}}`;
    }
  }
  return quote(literal);
}

/** The decimal times 10 to the `places`, which has to be whole. */
function scaled({ negative, digits, exponent }: Decimal, places: number): bigint {
  const size = BigInt(digits + "0".repeat(exponent + places));
  return negative ? -size : size;
}
