/**
 * An entry's content where the log's object itself has it: in a segment, or in what is left of it after an erasure.
 *
 * @module
 */
import type { EntryContent } from "../../shared/entry/erase.ts";
import { parseRow } from "../../shared/entry/row.ts";
import type { LogStorage } from "../principal-log/storage.ts";
import type { ContentKeys } from "./content-keys.ts";

export interface ContentSource {
  readonly keys: ContentKeys;
  readonly storage: LogStorage;
}

/**
 * Reads content as the object itself has it; null where it is in R2 alone. Asked in order, it reads a segment once; it
 * must not be kept over an erasure.
 */
export function contentReader({ keys, storage }: ContentSource): (seq: number) => EntryContent | null {
  let first = 0;
  let rows: string[] = [];
  return (seq) => {
    if (seq < first || seq >= first + rows.length) {
      const segment = storage.segmentOf(seq);
      first = segment?.firstSeq ?? 0;
      rows = segment?.rows.split("\n") ?? [];
    }
    const row = rows[seq - first];
    return row === undefined ? keys.left(seq) : parseRow(row);
  };
}
