/**
 * An entry's row on its way to D1: the index columns as a JSON object, the values, and the salts, with U+0001 between.
 * No JSON text holds that character unescaped, so that values need no second escaping, which could double them.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";

/** Stands between the parts. */
export const ROW_SEPARATOR = "\u0001";

export interface EntryRowText {
  /** A JSON object: i id, k kind, e session, r run, p step, c call, o tool, u status. */
  readonly columns: string;
  /** Values by section, JSON; null once erased. */
  readonly values: string | null;
  /** Salts by section, JSON; null once erased. */
  readonly salts: string | null;
}

export function formatRow({ columns, values, salts }: EntryRowText): string {
  return `${columns}${ROW_SEPARATOR}${values ?? ""}${ROW_SEPARATOR}${salts ?? ""}`;
}

/** The parts of a row. Throws `RunsealError("malformed-content")`. */
export function parseRow(row: string): EntryRowText {
  const [columns, values, salts, ...more] = row.split(ROW_SEPARATOR);
  if (columns === undefined || values === undefined || salts === undefined || more.length > 0) {
    throw new RunsealError("malformed-content", "a stored row is not of the form that it was stored in");
  }
  return { columns, values: values === "" ? null : values, salts: salts === "" ? null : salts };
}
