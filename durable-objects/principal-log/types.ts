/**
 * What crosses RPC between the Worker and a log. Errors cross as values: an exception would break the stub.
 *
 * @module
 */

import type { Frame } from "./frame.ts";

/** Which log a Durable Object is: fixed at its first append, compared at every later one. */
export interface LogIdentity {
  readonly host: string;
  /** 16 bytes of hex. */
  readonly tenant: string;
  /** 16 bytes of hex. */
  readonly principal: string;
  readonly generation: number;
  /** The principal's name. */
  readonly name: string;
  /** 32 bytes of hex. */
  readonly registryId: string;
}

/** The name of the log's Durable Object. */
export function logObjectName(log: Pick<LogIdentity, "tenant" | "principal" | "generation">): string {
  return `${log.tenant}/${log.principal}.${log.generation}`;
}

export interface AppendRequest {
  readonly log: LogIdentity;
  /** The registry epoch that the Worker knows of. */
  readonly epoch: number;
  /** The epoch at which client keys were checked, where an entry is signed by one: the log stores it under no other. */
  readonly signedEpoch?: number;
  /** All or nothing. */
  readonly atomic: boolean;
  /** Entry ids, in the order of the frame. */
  readonly ids: readonly string[];
  /** The leaves' bodies and their rows (see frame.ts). */
  readonly frame: Frame;
}

/** A log's signed head. */
export interface HeadView {
  readonly size: number;
  /** Hash of the last leaf, the log id of an empty log; hex. */
  readonly hash: string;
  /** Hex. */
  readonly root: string;
  /** The signed note. */
  readonly checkpoint: string;
  readonly epoch: number;
  /** The audit key that signed, hex. */
  readonly key: string;
  readonly mirroredSize: number;
}

/** What became of one entry of a request. */
export type ItemOutcome =
  | { readonly status: "stored" | "seen"; readonly seq: number; readonly hash: string }
  /** The id is taken by an entry with other content; `differs` names members, never values. */
  | { readonly status: "conflict"; readonly differs: readonly string[] }
  /** The id is taken by an entry whose content was erased: it can't be compared. */
  | { readonly status: "erased"; readonly seq: number; readonly hash: string }
  /** Refused because another entry of an atomic request was. */
  | { readonly status: "not-stored" };

/** Why a log can't answer now; each is a 503 with Retry-After. */
export type UnavailableCode =
  | "overloaded"
  | "outbox-full"
  | "index-unavailable"
  | "index-conflict"
  | "mirror-unavailable"
  | "log-stopped"
  | "registry-unavailable"
  | "storage-failed";

export interface Unavailable {
  readonly ok: false;
  readonly code: UnavailableCode;
  /** A plain sentence without any value that was sent. */
  readonly detail: string;
  /** Seconds. */
  readonly retryAfter: number;
  /** The log's registry epoch, where the request was checked at another one. */
  readonly epoch?: number;
}

export type AppendOutcome =
  | { readonly ok: true; readonly items: readonly ItemOutcome[]; readonly head: HeadView }
  | Unavailable;

export type HeadOutcome = { readonly ok: true; readonly head: HeadView } | Unavailable;

/** Whether D1 holds all that the log had acknowledged when it was asked. */
export type BarrierOutcome = { readonly ok: true; readonly size: number } | Unavailable;

/** Hashes with which a page of leaves is checked against the log's signed head (shared/merkle/range.ts). */
export interface RangeEvidence {
  readonly head: HeadView;
  /** Index of the first leaf. */
  readonly begin: number;
  /** Leaf hashes from `begin` on, 32 bytes each. */
  readonly leaves: Uint8Array;
  /** Perfect subtrees left of `begin`, 32 bytes each. */
  readonly left: Uint8Array;
  /** Perfect subtrees right of the leaves. */
  readonly right: Uint8Array;
}

export type RangeOutcome = ({ readonly ok: true } & RangeEvidence) | Unavailable;

/** Inclusion paths in the tree of `size`, one per entry; none where an entry is not in that tree. */
export type InclusionOutcome =
  | {
      readonly ok: true;
      readonly head: HeadView;
      readonly size: number;
      readonly paths: readonly Uint8Array[];
    }
  | Unavailable;

/** A consistency path to the tree of `size`; null where the sizes are not in order. */
export type ConsistencyOutcome =
  | { readonly ok: true; readonly head: HeadView; readonly size: number; readonly path: Uint8Array | null }
  | Unavailable;

export type TileOutcome = { readonly ok: true; readonly bytes: Uint8Array | null } | Unavailable;

export function unavailable(code: UnavailableCode, detail: string, retryAfter = 1): Unavailable {
  return { ok: false, code, detail, retryAfter };
}
