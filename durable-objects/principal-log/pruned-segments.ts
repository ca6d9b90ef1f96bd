/**
 * Entries that left the log's object, read back from R2 as the segments that they were: for the flush that fills D1 again.
 *
 * @module
 */
import { formatRow } from "../../shared/entry/row.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { ArchivedEntries, ArchivedEntry } from "../content/archived-entries.ts";
import type { FramedEntry } from "./frame.ts";
import { encodeFrame } from "./frame.ts";
import type { LogStorage, Segment } from "./storage.ts";

/** Where reading ends, once it has passed one of them. */
export interface ReadBounds {
  readonly entries: number;
  /** Of leaves and rows; what R2's objects take while they are read comes on top. */
  readonly bytes: number;
}

/**
 * Segments with the pruned entries from `first` on, as far as the bounds; null where `first` is not pruned.
 *
 * @throws where not even the first one is to be had: what R2 throws; `RunsealError("archive-altered")` for its leaf,
 *   `RunsealError("content-lost")` for its values, which must not be taken for erased
 */
export async function prunedSegments(
  archived: ArchivedEntries,
  storage: LogStorage,
  first: number,
  bounds: ReadBounds,
): Promise<Segment[] | null> {
  const last = storage.prunedSeq;
  if (first > last) return null;
  const found: ArchivedEntry[] = [];
  let bytes = 0;
  for (let seq = first; seq <= last && found.length < bounds.entries && bytes < bounds.bytes; ) {
    try {
      const end = archived.endOfObjects(seq, last);
      await archived.load(seq, end);
      for (const entry of archived.entries(seq, end)) {
        const { content } = entry;
        if (content === null)
          throw new RunsealError("content-lost", "an entry's values are not in R2 any more");
        found.push(entry);
        bytes += entry.bytes.length + (content.values?.length ?? 0) + (content.salts?.length ?? 0);
      }
      seq = end + 1;
    } catch (error) {
      if (found.length === 0) throw error;
      break;
    }
  }
  return segmentsOf(found);
}

/** As a commit writes them: the entries of one share their time. */
function segmentsOf(entries: readonly ArchivedEntry[]): Segment[] {
  const segments: Segment[] = [];
  let pending: FramedEntry[] = [];
  entries.forEach(({ seq, bytes, leaf, columns, content }, i) => {
    pending.push({
      bytes,
      row: formatRow({ columns, values: content?.values ?? null, salts: content?.salts ?? null }),
    });
    if (entries[i + 1]?.leaf.recordedAt === leaf.recordedAt) return;
    const { bytes: leaves, rows } = encodeFrame(pending);
    segments.push({
      firstSeq: seq - pending.length + 1,
      count: pending.length,
      recordedAtMs: Number(leaf.recordedAt / 1_000_000n),
      leaves,
      rows,
    });
    pending = [];
  });
  return segments;
}
