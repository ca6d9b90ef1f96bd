/**
 * What crosses RPC for an erasure (docs/privacy.md).
 *
 * @module
 */
import type { Unavailable } from "../principal-log/types.ts";

/** Entries that one request names: a range, or ids. */
export type ErasureTarget =
  | { readonly from: number; readonly to: number }
  | { readonly ids: readonly string[] };

/** The target's sequence numbers, sorted, each once; or the part of it that the log does not have. */
export type ResolvedTarget =
  | { readonly ok: true; readonly seqs: readonly number[] }
  | { readonly ok: "absent"; readonly id: number | null }
  | Unavailable;

export interface EntryPlace {
  readonly seq: number;
  /** Hex. */
  readonly hash: string;
}

export interface ErasureRequest {
  /** Derived from all that follows: the same request again is the same erasure. 16 bytes of hex. */
  readonly id: string;
  readonly seqs: readonly number[];
  /** As `section.name`, sorted; null: all. */
  readonly fields: readonly string[] | null;
  /** The API key that asked. */
  readonly by: string;
  readonly reason: string;
  /** The `erasure.requested` entry on the tenant's system log. */
  readonly requested: EntryPlace;
}

/** What an erasure has still to do: erase in the log and its keys, in D1, and say so on the system log. */
export const ERASURE_STEPS = ["log", "index", "record"] as const;
export type ErasureStep = (typeof ERASURE_STEPS)[number];

export interface ErasureReport {
  readonly id: string;
  /** Entries that lost content by this erasure so far. */
  readonly entries: number;
  readonly pending: readonly ErasureStep[];
  /** RFC 3339: until when point-in-time recovery could bring the content back. Null while it is not gone everywhere. */
  readonly recoverableUntil: string | null;
  readonly requested: EntryPlace;
  /** The `erasure.done` entry. */
  readonly recorded: EntryPlace | null;
}

export type ErasureOutcome = { readonly ok: true; readonly report: ErasureReport } | Unavailable;
