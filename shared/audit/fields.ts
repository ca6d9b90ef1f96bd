/**
 * Reading the fields of an entry for an audit: values, strings and small numbers, each with why it is not there.
 *
 * @module
 */
import type { FieldViews, Missing } from "../entry/view.ts";
import { detached, stringOf } from "../recheck/fields.ts";
import { decodePythonJson } from "./python-json.ts";
import type { PyValue } from "./python-value.ts";

/** Why the field's value is not there; null where it is there, or the entry never had the field. */
export function missingOf(fields: FieldViews, name: string): Missing | null {
  const field = fields.get(name);
  return field !== undefined && "missing" in field ? field.missing : null;
}

/** The field's canonical text; undefined where there is none, and where it is null, which reads as not set. */
export function textOf(fields: FieldViews, name: string): string | undefined {
  const field = fields.get(name);
  return field === undefined || "missing" in field || field.text === "null" ? undefined : field.text;
}

/** The field as a string; undefined where it is no string. It keeps nothing of the entry in memory. */
export function stringAt(fields: FieldViews, name: string): string | undefined {
  const text = textOf(fields, name);
  const value = text === undefined ? null : stringOf(text);
  return value === null ? undefined : detached(value);
}

/** The field as a whole number that a double holds; undefined for anything else. */
export function wholeAt(fields: FieldViews, name: string): number | undefined {
  const text = textOf(fields, name);
  if (text === undefined || !/^(?:0|[1-9][0-9]*)$/.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The field's value; undefined where there is none. What does not decode stays the text that it is. */
export function valueAt(fields: FieldViews, name: string): PyValue | undefined {
  const field = fields.get(name);
  if (field === undefined || "missing" in field) return undefined;
  const decoded = decodePythonJson(field.text);
  return decoded.ok ? decoded.value : field.text;
}

/** The field's value where it is an object. */
export function objectAt(fields: FieldViews, name: string): ReadonlyMap<string, PyValue> | undefined {
  const value = textOf(fields, name)?.startsWith("{") === true ? valueAt(fields, name) : undefined;
  return value instanceof Map ? value : undefined;
}
