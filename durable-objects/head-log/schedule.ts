/**
 * When a log of heads signs next: a few seconds after news, at longer and longer pauses while news goes on, and at
 * least every ten minutes.
 *
 * @module
 */

/** Milliseconds from the first news after a quiet time to the batch that lists it. */
export const FIRST_PAUSE_MS = 5000;
/** The longest pause while there is news. */
export const LONGEST_PAUSE_MS = 60_000;
/** Every known head is listed again after this long: half a minute before the ten minutes are over. */
export const REPUBLISH_MS = 570_000;

export interface Cadence {
  /** Milliseconds since the epoch. */
  readonly signedAtMs: number;
  readonly fullAtMs: number;
  readonly intervalMs: number;
}

/** Time of the next batch, in milliseconds; null where there is nothing to list. */
export function nextBatchAt(
  cadence: Cadence,
  nowMs: number,
  knows: { readonly news: boolean; readonly heads: boolean },
): number | null {
  const republish = cadence.fullAtMs + REPUBLISH_MS;
  if (knows.news) {
    const soon = Math.max(nowMs + FIRST_PAUSE_MS, cadence.signedAtMs + cadence.intervalMs);
    return cadence.fullAtMs === 0 ? soon : Math.min(soon, Math.max(nowMs + 1000, republish));
  }
  return knows.heads ? Math.max(nowMs + 1000, republish) : null;
}

/** The pause after a batch: doubled where it came soon after the one before it. */
export function nextInterval(cadence: Cadence, nowMs: number): number {
  const soon = nowMs - cadence.signedAtMs < 2 * cadence.intervalMs;
  return soon ? Math.min(LONGEST_PAUSE_MS, 2 * cadence.intervalMs) : FIRST_PAUSE_MS;
}
