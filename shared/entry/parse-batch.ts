/**
 * Splits a request's body into entries: one object, an array of objects, or NDJSON. One bad entry costs only itself;
 * only a body whose structure can't be followed is refused whole.
 *
 * @module
 */

import { RunsealError } from "../errors.ts";
import { JsonError } from "../json/errors.ts";
import { JsonReader } from "../json/reader.ts";
import { decodeUtf8 } from "../json/utf8.ts";
import { MAX_BATCH_ENTRIES } from "./limits.ts";
import type { PrepareContext, PreparedEntry } from "./prepare.ts";
import { prepareEntry } from "./prepare.ts";

export interface EntryProblem {
  readonly code: string;
  readonly pointer: string;
  readonly message: string;
}

/** What became of one entry of the body. */
export type ParsedEntry =
  | { readonly ok: true; readonly entry: PreparedEntry }
  | { readonly ok: false; readonly problem: EntryProblem; readonly id: string | null };

export interface ParsedBatch {
  /** Whether the body was one object, not an array or lines. */
  readonly single: boolean;
  readonly entries: readonly ParsedEntry[];
}

export type BodyForm = "json" | "ndjson";

function problemOf(error: unknown): EntryProblem {
  if (error instanceof RunsealError) {
    return { code: error.code, pointer: error.pointer ?? "", message: error.message };
  }
  throw error;
}

/** The entry's id, where it can be told from a refused entry: the sender needs to know which one it was. */
function idOf(text: string, offset: number, bytesAreBad: boolean): string | null {
  try {
    const reader = new JsonReader(text, offset, text.length, { escapedBytes: bytesAreBad });
    if (reader.peek() !== "object") return null;
    reader.enterObject();
    for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
      if (name === "id" && reader.peek() === "string") {
        const id = reader.readString();
        return /^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : null;
      }
      reader.skipValue();
    }
  } catch {
    // A body that breaks off before its id has none to name.
  }
  return null;
}

/** @param at JSON pointer to the entry within what the reader reads */
function parseOne(
  text: string,
  reader: JsonReader,
  context: PrepareContext,
  bytesAreBad: boolean,
  at: string,
): ParsedEntry {
  const start = reader.mark();
  try {
    return { ok: true, entry: prepareEntry(reader, context) };
  } catch (error) {
    if (error instanceof JsonError && error.code === "json-syntax") throw error;
    const problem = problemOf(error);
    // Skipping finds the entry's end by structure alone; it throws where there is none.
    reader.rewind(start);
    reader.skipValue();
    // The reader's pointers start at the body, an entry's at the entry.
    const pointer = error instanceof JsonError ? problem.pointer.slice(at.length) : problem.pointer;
    return { ok: false, problem: { ...problem, pointer }, id: idOf(text, start.offset, bytesAreBad) };
  }
}

function tooMany(): RunsealError {
  return new RunsealError("batch-too-large", `a request has at most ${MAX_BATCH_ENTRIES} entries`, "");
}

function parseJson(text: string, context: PrepareContext, bytesAreBad: boolean): ParsedBatch {
  const reader = new JsonReader(text, 0, text.length, { escapedBytes: bytesAreBad });
  const entries: ParsedEntry[] = [];
  const single = reader.peek() !== "array";
  if (single) {
    entries.push(parseOne(text, reader, context, bytesAreBad, ""));
  } else {
    reader.enterArray();
    while (reader.nextElement()) {
      if (entries.length >= MAX_BATCH_ENTRIES) throw tooMany();
      entries.push(parseOne(text, reader, context, bytesAreBad, `/${entries.length}`));
    }
  }
  reader.finish();
  return { single, entries };
}

function parseLines(text: string, context: PrepareContext, bytesAreBad: boolean): ParsedBatch {
  const entries: ParsedEntry[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    if (entries.length >= MAX_BATCH_ENTRIES) throw tooMany();
    try {
      const reader = new JsonReader(line, 0, line.length, { escapedBytes: bytesAreBad });
      const parsed = parseOne(line, reader, context, bytesAreBad, "");
      reader.finish();
      entries.push(parsed);
    } catch (error) {
      // A line stands for itself: what follows it is another entry.
      entries.push({ ok: false, problem: problemOf(error), id: idOf(line, 0, bytesAreBad) });
    }
  }
  return { single: false, entries };
}

/**
 * The entries of a body.
 *
 * @throws `JsonError("json-syntax")` for a JSON body that is none, `RunsealError("batch-too-large")` beyond 1,000 entries
 */
export function parseBatch(bytes: Uint8Array, form: BodyForm, context: PrepareContext): ParsedBatch {
  const { text, ok } = decodeUtf8(bytes);
  return form === "ndjson" ? parseLines(text, context, !ok) : parseJson(text, context, !ok);
}
