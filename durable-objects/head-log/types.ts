/**
 * What crosses RPC between a log, the log of heads that lists it, and the Worker. Errors cross as values.
 *
 * @module
 */
import { tenantOrigin } from "../../shared/entry/log-id.ts";
import type { Unavailable } from "../principal-log/types.ts";
import type { Anchor } from "./anchor-storage.ts";
import type { WitnessView } from "./witness-client.ts";

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
  readonly name: "stopped" | "head-refused" | "witness-disagrees" | "anchor-contradicts";
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

/** What the service's log has of its witnesses; `misconfigured` says why the setting can't be read. */
export type WitnessesOutcome =
  | {
      readonly ok: true;
      readonly view: HeadLogView;
      readonly misconfigured: string | null;
      readonly witnesses: readonly WitnessView[];
    }
  | Unavailable;

/** A head that somebody keeps elsewhere. */
export interface AnchorRequest extends Omit<Anchor, "anchoredAtMs"> {
  /** Size of the last anchor, as the caller knows it; 0 for none. */
  readonly from: number;
  /** RFC 6962 consistency path between that and this one, the smaller first; hashes joined. */
  readonly path: Uint8Array;
}

export type AnchorOutcome =
  | { readonly status: "advanced" | "unchanged" | "rejected" }
  /** The last anchor has another size than `from`. */
  | { readonly status: "behind"; readonly size: number };

/** A log with its last anchor. */
export interface AnchoredLog {
  /** Null for the tenant's log itself. */
  readonly name: string | null;
  readonly generation: number;
  readonly logId: string;
  /** Of the head that was reported last. */
  readonly size: number;
  readonly anchor: Anchor | null;
}

export type AnchoredOutcome =
  | { readonly ok: true; readonly own: AnchoredLog; readonly logs: readonly AnchoredLog[] }
  | Unavailable;

/** A leaf that lists a log, proved under a head of the log of heads. */
export interface ProvenListing {
  readonly index: number;
  readonly leaf: Uint8Array;
  /** Inclusion path, hashes joined. */
  readonly path: Uint8Array;
  /** What it lists: size, and root in hex. */
  readonly size: number;
  readonly root: string;
}

/**
 * A tenant's log with the leaves that list one log: the last one, and the last one that the service's log covers, where
 * that is another.
 */
export type ListingsOutcome =
  | {
      readonly ok: true;
      readonly checkpoint: string;
      /** Registry epoch of the key that signed it. */
      readonly epoch: number;
      readonly listings: readonly ProvenListing[];
      /** Consistency path from the size that the service's log lists, hashes joined; null where there is none. */
      readonly consistency: Uint8Array | null;
    }
  | Unavailable;

/** The service's log with the leaf that lists one tenant's log; null where none does yet. */
export type TenantListingOutcome =
  | {
      readonly ok: true;
      readonly vkey: string;
      /** The head under which it is proved: the last cosigned one that covers it, or else the last one. */
      readonly checkpoint: string;
      readonly size: number;
      readonly listing: ProvenListing | null;
    }
  | Unavailable;

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
