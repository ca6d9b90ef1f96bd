/**
 * What crosses RPC between a log, the log of heads that lists it, and the Worker. Errors cross as values.
 *
 * @module
 */
import { tenantOrigin } from "../../shared/entry/log-id.ts";
import type { Unavailable } from "../principal-log/types.ts";

/** The owner of the service's own log of heads, which lists the tenants' logs. No tenant has this id. */
export const SERVICE = "service";

/** Which log of heads a Durable Object is. Its object's name is the owner. */
export interface HeadLogIdentity {
  readonly host: string;
  /** A tenant's id, 16 bytes of hex; or `SERVICE`. */
  readonly owner: string;
}

/** The origin and key name: `<host>/t/<tenant>`, and the bare host for the service's. */
export function headLogOrigin({ host, owner }: HeadLogIdentity): string {
  return owner === SERVICE ? host : tenantOrigin(host, owner);
}

/** Key prefix in R2. */
export function headLogPrefix({ owner }: HeadLogIdentity): string {
  return owner === SERVICE ? "log" : `t/${owner}/log`;
}

/** The head that a log has, as it reports it. */
export interface ReportedHead {
  /** 32 bytes of hex; of a tenant's log of heads, its registry id. */
  readonly logId: string;
  /** The principal's name, or the origin of a tenant's log. */
  readonly name: string;
  /** 0 for a tenant's log. */
  readonly generation: number;
  /** 1 or more. */
  readonly size: number;
  /** Hex. */
  readonly root: string;
  readonly epoch: number;
}

export interface HeadReport extends ReportedHead {
  /** The size that the reporter believes to be listed; 0 for none. */
  readonly from: number;
  /** RFC 6962 consistency path from there, hashes joined; empty where `from` is 0 or the size itself. */
  readonly path: Uint8Array;
}

export type ReportOutcome =
  | { readonly status: "taken" }
  /** Another size than `from` is known: report again, with the path from there. */
  | { readonly status: "behind"; readonly size: number }
  /** It contradicts what is listed. An alarm stands from now on. */
  | { readonly status: "refused"; readonly reason: Contradiction };

/** How a reported head contradicts the last one. */
export type Contradiction = "lowered" | "forked" | "inconsistent" | "epoch-regression";

/** A log of heads, as it answers for itself. */
export interface HeadLogView {
  readonly origin: string;
  /** 32 bytes of hex. */
  readonly registryId: string;
  readonly size: number;
  /** Hex. */
  readonly root: string;
  readonly checkpoint: string;
  /** The key that signed, hex. */
  readonly key: string;
  /** Head lists so far. */
  readonly batch: number;
  /** Milliseconds since the epoch: the last head; null before the first. */
  readonly signedAtMs: number | null;
  /** The same of the last listing of every head that is known. */
  readonly fullAtMs: number | null;
  readonly mirroredSize: number;
  /** Heads that were reported since the last list. */
  readonly pending: number;
  readonly alarms: readonly HeadAlarm[];
}

export interface HeadAlarm {
  readonly name: "stopped" | "head-refused";
  /** Hex; of an alarm about one log. */
  readonly logId: string | null;
  readonly detail: string;
  readonly atMs: number;
}

/** A head that is known, and whether the log holds it yet. */
export interface KnownHead extends ReportedHead {
  readonly reportedAtMs: number;
  readonly listed: boolean;
}

export type ViewOutcome = { readonly ok: true; readonly view: HeadLogView } | Unavailable;
export type HeadsOutcome =
  | { readonly ok: true; readonly view: HeadLogView; readonly heads: readonly KnownHead[] }
  | Unavailable;
export type BytesOutcome = { readonly ok: true; readonly bytes: Uint8Array | null } | Unavailable;
export type LeavesOutcome =
  | {
      readonly ok: true;
      readonly from: number;
      readonly leaves: readonly Uint8Array[];
      readonly view: HeadLogView;
    }
  | Unavailable;
/** A proof's hashes joined; null where the sizes or the index are out of range. */
export type ProofOutcome =
  | { readonly ok: true; readonly size: number; readonly path: Uint8Array | null; readonly view: HeadLogView }
  | Unavailable;
