/**
 * What crosses RPC between the Worker and a log. Errors cross as values: an exception would break the stub.
 *
 * @module
 */

import type { Frame } from "./frame.ts";
import type { SealRecord, StopRecord } from "./stop-store.ts";

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
  /** The caller knows that this may be a generation of the past: a sealed log answers nobody else. Not a part of it. */
  readonly past?: boolean;
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
  /** Where the request came with an Idempotency-Key. */
  readonly idempotency?: IdempotentRequest;
}

/** What a request with an Idempotency-Key is known by. */
export interface IdempotentRequest {
  /** SHA-256 over the operation and the key, hex. */
  readonly key: string;
  /** Keyed hash over all that the answer depends on, hex (workers/http/fingerprint.ts). */
  readonly fingerprint: string;
  /** Kept with the answer and given back with it. */
  readonly note: string;
}

/** An answer from memory, or about to be kept there: what the Worker makes the same answer of each time. */
export interface KeptAnswer {
  readonly ids: readonly string[];
  readonly note: string;
  /** Whether the request was answered before. */
  readonly replayed: boolean;
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

/** Why a log does not answer; each is a 503 with Retry-After, but for two of the Idempotency-Key's. */
export type UnavailableCode =
  | "overloaded"
  | "outbox-full"
  | "index-unavailable"
  | "index-conflict"
  | "mirror-unavailable"
  | "log-stopped"
  | "log-refilling"
  | "registry-unavailable"
  | "storage-failed"
  | "idempotency-mismatch"
  | "idempotency-in-flight"
  | "idempotency-full";

export interface Unavailable {
  readonly ok: false;
  readonly code: UnavailableCode;
  /** A plain sentence without any value that was sent. */
  readonly detail: string;
  /** Seconds; 0 where trying again does not help. */
  readonly retryAfter: number;
  /** Whether the entries are stored all the same. */
  readonly stored?: true;
  /** The log's registry epoch, where the request was checked at another one. */
  readonly epoch?: number;
  /** The principal, where its log is another generation by now. */
  readonly moved?: { readonly tenant: string; readonly name: string };
}

export type AppendOutcome = Appended | Unavailable;

export interface Appended {
  readonly ok: true;
  readonly items: readonly ItemOutcome[];
  readonly head: HeadView;
  /** Where the request came with an Idempotency-Key; the head is then the one that was first answered. */
  readonly kept?: KeptAnswer;
}

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

/** How far D1 holds the log after one step of filling it. */
export type RefillIndexOutcome =
  | { readonly ok: true; readonly size: number; readonly indexed: number }
  | Unavailable;

/** How a log stands, as its operator sees it. */
export type LogStanding =
  | { readonly ok: true; readonly state: "running"; readonly head: HeadView }
  | { readonly ok: true; readonly state: "stopped"; readonly stop: StopRecord; readonly seal: null }
  | { readonly ok: true; readonly state: "sealed"; readonly stop: StopRecord; readonly seal: SealRecord };

export type StandingOutcome = LogStanding | Unavailable;

/** The seal of a stopped log; `log-not-stopped` for one that runs. */
export type SealOutcome =
  | { readonly ok: true; readonly seal: SealRecord }
  | { readonly ok: false; readonly code: "log-not-stopped" }
  | Unavailable;

/** Entries as the log's own storage holds them. */
export type StoredPageOutcome = { readonly ok: true; readonly rows: readonly StoredRow[] } | Unavailable;

export interface StoredRow {
  readonly seq: number;
  /** Hex. */
  readonly hash: string;
  /** Base64. */
  readonly leaf: string;
  readonly content: string | null;
  readonly salts: string | null;
}
