/**
 * From the bytes of a file to text. Bad UTF-8 does not stop an import: each bad byte becomes an unpaired surrogate,
 * which the lenient reader repairs and reports in the very string that held it.
 *
 * @module
 */
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import type { SourceRecord } from "./split.ts";

/** The text of a file, without a byte order mark. */
export function decodeText(bytes: Uint8Array): string {
  const { text } = decodeUtf8(bytes);
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** The whole file as one record. */
export function decodeSource(bytes: Uint8Array, where: string): SourceRecord {
  return { text: decodeText(bytes), where };
}
