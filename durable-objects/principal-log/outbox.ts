/**
 * The outbox's bound (design section 2, promise 5): beyond it appends are refused with 503, and nothing is dropped.
 *
 * The arithmetic: a Durable Object stores 10 GB; the outbox may take a fifth of it. At the documented 500 bytes to
 * 2 KB an entry that is one million entries, and a day is the time in which an operator can be expected to notice.
 *
 * @module
 */
import type { LogStorage, Progress } from "./storage.ts";
import type { Unavailable } from "./types.ts";
import { unavailable } from "./types.ts";

export const MAX_OUTBOX_BYTES = 2 * 1024 ** 3;
export const MAX_OUTBOX_ENTRIES = 1_000_000;
export const MAX_OUTBOX_AGE_MS = 24 * 3_600_000;

/** Null while the outbox has room. */
export function outboxState(
  storage: LogStorage,
  progress: Progress,
  size: number,
  bytes: number,
  nowMs: number,
): Unavailable | null {
  const entries = size - progress.flushedSeq;
  if (entries === 0) return null;
  const full = bytes > MAX_OUTBOX_BYTES || entries > MAX_OUTBOX_ENTRIES;
  // The age is read only where it can matter: a log that is a few entries behind is not a day behind.
  const oldest = full || entries < 1000 ? null : storage.oldestAfter(progress.flushedSeq);
  if (!full && (oldest === null || nowMs - oldest < MAX_OUTBOX_AGE_MS)) return null;
  return unavailable(
    "outbox-full",
    "D1 has been away for too long: the log takes no more entries until it is back",
    30,
  );
}
