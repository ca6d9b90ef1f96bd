/**
 * How a log gets its memory back when its object starts, from storage alone.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { idOfColumns } from "../../shared/entry/columns.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { EMPTY_ROOT, leafHash } from "../../shared/merkle/hash.ts";
import { TILE_WIDTH } from "../../shared/merkle/tiles.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import type { OpenAuditKey } from "./audit-keys.ts";
import { decodeBytes } from "./frame.ts";
import { ID_LIMITS, IdIndex } from "./id-index.ts";
import type { LogStorage, StoredHead } from "./storage.ts";

/** The signed head of a log without entries: size 0, hash = log id, root SHA-256(""). */
export function emptyHead(
  crypto: CryptoPort,
  origin: string,
  logId: Uint8Array,
  key: OpenAuditKey,
): StoredHead {
  return {
    size: 0,
    lastHash: logId,
    recordedAt: 0n,
    epoch: key.epoch,
    edge: new RightEdge(crypto),
    checkpoint: signCheckpoint(crypto, origin, [key.signer], { origin, size: 0, root: EMPTY_ROOT }),
    futureUntil: 0,
  };
}

/** Leaf hashes after the last full tile. */
export function loadPartialTile(crypto: CryptoPort, storage: LogStorage, size: number): Uint8Array[] {
  const first = Math.floor(size / TILE_WIDTH) * TILE_WIDTH + 1;
  const hashes: Uint8Array[] = [];
  if (first > size) return hashes;
  for (const segment of storage.segmentsFrom(first)) {
    // What lies behind is not the log's yet: a refill that is under way put it there.
    if (segment.firstSeq > size) break;
    let seq = segment.firstSeq;
    for (const leaf of decodeBytes(segment.leaves)) {
      if (seq >= first) hashes.push(leafHash(crypto, leaf));
      seq += 1;
    }
  }
  return hashes;
}

/** Segments whose ids a reader keeps: a request that comes again has its entries in one, or in a few. */
const KEPT_SEGMENTS = 4;

/** Reads the id of a stored entry. It throws `RunsealError("storage-inconsistent")` where there is no such entry. */
export function idReader(storage: LogStorage): (seq: number) => string {
  const kept: { readonly firstSeq: number; readonly ids: readonly string[] }[] = [];
  const read = (seq: number): { readonly firstSeq: number; readonly ids: readonly string[] } | undefined => {
    const segment = storage.segmentOf(seq);
    if (segment === null) return undefined;
    if (kept.length === KEPT_SEGMENTS) kept.shift();
    kept.push({ firstSeq: segment.firstSeq, ids: segment.rows.split("\n").map(idOfColumns) });
    return kept.at(-1);
  };
  return (seq) => {
    const holds = kept.find(({ firstSeq, ids }) => seq >= firstSeq && seq < firstSeq + ids.length);
    const segment = holds ?? read(seq);
    const id = segment?.ids[seq - segment.firstSeq];
    if (id === undefined) throw new RunsealError("storage-inconsistent", "an entry of the log is missing");
    return id;
  };
}

/**
 * The ids of the newest entries, at least of all that D1 lacks.
 *
 * @param evictions see `IdIndex`
 */
export function loadIds(
  storage: LogStorage,
  size: number,
  flushedSeq: number,
  futureUntil: number,
  evictions: number,
): IdIndex {
  const ids = new IdIndex(idReader(storage), futureUntil, evictions);
  let count = 0;
  let from = 1;
  let completeFrom = 0;
  let oldest: { readonly firstSeq: number; readonly recordedAtMs: number } | null = null;
  for (const segment of storage.segmentHeadsBackwards(size)) {
    const flushed = segment.firstSeq + segment.count - 1 <= flushedSeq;
    if (flushed && count + segment.count > ID_LIMITS.remembered / 2) {
      from = segment.firstSeq + segment.count;
      // Recorded times are whole milliseconds and never fall: what lies before may share this one.
      completeFrom = segment.recordedAtMs + 1;
      break;
    }
    count += segment.count;
    oldest = segment;
  }
  if (from === 1 && oldest !== null && oldest.firstSeq > 1) {
    // The ones before left the object: D1 knows their ids. The last of them may share the time of the oldest here.
    from = oldest.firstSeq;
    completeFrom = oldest.recordedAtMs + 1;
  }
  if (count > 0) {
    for (const segment of storage.segmentsFrom(from)) {
      if (segment.firstSeq > size) break;
      let seq = segment.firstSeq;
      for (const row of segment.rows.split("\n")) {
        if (seq >= from) ids.add(idOfColumns(row), seq, segment.recordedAtMs);
        seq += 1;
      }
    }
  }
  ids.setCompleteFrom(completeFrom, from - 1);
  return ids;
}
