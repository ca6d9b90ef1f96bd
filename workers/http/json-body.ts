/**
 * Reads a JSON body as strictly as an entry: what two readers could take for two different things, and text that has
 * no UTF-8, is refused before a schema sees it.
 *
 * @module
 */
import { JsonError } from "../../shared/json/errors.ts";
import { JsonReader } from "../../shared/json/reader.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { Problem } from "./problem.ts";

/** The body's value. Throws a problem with a pointer to the place. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  const { text, ok } = decodeUtf8(bytes);
  if (!ok)
    throw new Problem("json-syntax", { pointer: "", detail: "the body is not a JSON document in UTF-8" });
  try {
    const reader = new JsonReader(text);
    reader.readCanonical();
    reader.finish();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Problem(error.code, { pointer: error.pointer, detail: error.message });
  }
  return JSON.parse(text);
}
