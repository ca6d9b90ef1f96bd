/**
 * How blind am I: what the log has taken, where it has got to, and how old the oldest entry is that D1 lacks. Read from
 * storage, for a log that is stopped as well. Cheap at any size.
 *
 * @module
 */
import type { CounterReport } from "../tenant-directory/totals.ts";
import type { Outbox } from "./outbox.ts";
import type { LogStorage } from "./storage.ts";

export interface LogHealth {
  /** Entries in the log: each was acknowledged, or may have been. */
  readonly accepted: number;
  /** Entries that D1 holds. */
  readonly persisted: number;
  /** Entries covered by full tiles and bundles in R2. */
  readonly archived: number;
  /** Entries that left the log's object, and are in R2 and D1. */
  readonly pruned: number;
  /** Size of the head that R2 mirrors. */
  readonly mirrored: number;
  /** Entries that the head counts and neither storage nor D1 holds; null for a stopped log, which can't tell. */
  readonly lost: number | null;
  readonly outboxBytes: number;
  /** Milliseconds since the epoch at which the oldest entry that D1 lacks was recorded; null where it lacks none. */
  readonly oldestMs: number | null;
  /** Why the log takes no entries now: its outbox is full. */
  readonly full: boolean;
  readonly alarms: readonly { readonly name: "stopped" | "index-conflict"; readonly detail: string }[];
}

/** @param outbox null for a log that nothing was ever sent to */
export function logHealth(storage: LogStorage, outbox: Outbox | null, nowMs: number): LogHealth {
  const accepted = storage.size();
  const { flushedSeq, archivedSeq, mirroredSize } = storage.progress();
  const behind = accepted - flushedSeq;
  const alarms = (["stopped", "index-conflict"] as const).flatMap((name) => {
    const detail = storage.standingAlarm(name);
    return detail === null ? [] : [{ name, detail }];
  });
  const stopped = alarms.some(({ name }) => name === "stopped");
  return {
    accepted,
    persisted: Math.min(flushedSeq, accepted),
    archived: archivedSeq,
    pruned: storage.prunedSeq,
    mirrored: mirroredSize,
    lost: stopped ? null : lostOf(storage, flushedSeq, accepted),
    outboxBytes: outbox?.bytes ?? 0,
    oldestMs: behind > 0 ? storage.oldestAfter(flushedSeq) : null,
    full: (outbox?.refusal(nowMs) ?? null) !== null,
    alarms,
  };
}

/**
 * Entries after `flushedSeq` that neither a segment nor, pruned, R2 holds, at either end of the outbox. (A hole within it
 * stops the flush, and so shows as an age that grows.)
 */
function lostOf(storage: LogStorage, flushedSeq: number, size: number): number {
  if (flushedSeq >= size) return 0;
  const held = Math.max(flushedSeq, storage.prunedSeq);
  const bounds = storage.outboxBounds(held);
  if (bounds === null) return size - held;
  return Math.max(0, bounds.first - held - 1) + Math.max(0, size - bounds.last);
}

/** As the log reports itself to its tenant's directory. */
export function counterReport(health: LogHealth): CounterReport {
  const has = (name: string): number => (health.alarms.some((alarm) => alarm.name === name) ? 1 : 0);
  return {
    logs: 1,
    accepted: health.accepted,
    persisted: health.persisted,
    archived: health.archived,
    mirrored: health.mirrored,
    lost: health.lost ?? 0,
    outbox_bytes: health.outboxBytes,
    behind: health.oldestMs === null ? 0 : 1,
    full: health.full ? 1 : 0,
    stopped: has("stopped"),
    conflicting: has("index-conflict"),
    oldest_ms: health.oldestMs,
  };
}
