/**
 * Reading an entry's fields for the fold: texts, strings and integers, with the first thing that is wrong remembered.
 *
 * @module
 */
import type { FieldViews, Missing } from "../entry/view.ts";
import { doubleHolds } from "./decimal.ts";
import type { Count, Problem } from "./model.ts";

/**
 * A copy of the text that holds nothing else in memory. Engines make a substring as a window on the text that it was cut
 * from: kept, it would keep the whole stored content of its entry.
 */
export function detached(text: string): string {
  return ` ${text}`.slice(1);
}

/** The string that a canonical JSON text stands for; null where it stands for something else. */
export function stringOf(text: string): string | null {
  if (!text.startsWith('"')) return null;
  return text.includes("\\") ? (JSON.parse(text) as string) : text.slice(1, -1);
}

/** The integer that a canonical JSON text writes, as its literal where a double can't hold it; null for anything else. */
export function integerOf(text: string): Count | null {
  if (!/^-?(?:0|[1-9][0-9]*)$/.test(text)) return null;
  return doubleHolds(text) ? Number(text) : detached(text);
}

/** A field that is not there, in words: `erased: args of its policy.evaluated`. */
export function missingProblem(missing: Missing, name: string, of: string): Problem {
  return { reason: missing, words: `${missing}: ${name} of ${of}` };
}

/** Fields of one section. Absent ones read as undefined or "", as agentrt's zero values. */
export class FieldReader {
  readonly #fields: FieldViews;
  /** The first field that was asked for and is erased, withheld or a commitment only. */
  missing: { readonly name: string; readonly why: Missing } | null = null;
  /** The first field that was asked for and has another type. */
  wrong: string | null = null;

  constructor(fields: FieldViews) {
    this.#fields = fields;
  }

  /** The canonical text of the field. */
  text(name: string): string | undefined {
    const field = this.#fields.get(name);
    if (field === undefined) return undefined;
    if ("text" in field) return field.text;
    this.missing ??= { name, why: field.missing };
    return undefined;
  }

  /** As `text`, with null as absent: an optional field that is null is committed, and reads as not set. */
  value(name: string): string | undefined {
    const text = this.text(name);
    return text === "null" ? undefined : text;
  }

  /** The field as a string: "" where it is absent or null. */
  string(name: string): string {
    const text = this.value(name);
    if (text === undefined) return "";
    const value = stringOf(text);
    if (value === null) this.wrong ??= `${name} is not a string`;
    return value ?? "";
  }

  /** What keeps the fields asked for so far from being used: not there, or of another type. */
  problem(of: string): Problem | null {
    if (this.missing !== null) return missingProblem(this.missing.why, this.missing.name, of);
    if (this.wrong !== null) return { reason: "undecodable", words: this.wrong };
    return null;
  }
}
