/**
 * The lines of a bundle that tie its head to the tenant's log, and that to the service's (docs/format.md, section 12).
 * They are evidence on top: where a log of heads is away or lists nothing yet, the bundle goes without.
 *
 * @module
 */
import type { ProvenListing, TenantListingOutcome } from "../../durable-objects/head-log/types.ts";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import type { CosignatureLine, TenantLine } from "../../shared/bundle/format.ts";
import { toBase64 } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import { hashesOf } from "../http/hashes.ts";
import { logEvent } from "../log-event.ts";
import type { OpenLog } from "./open-log.ts";
import { logIdOf } from "./read.ts";

/** What the logs of heads have of a log. */
export interface Anchors {
  /** Epoch of the tenant log's key: the bundle has to hold the registry up to it. */
  readonly epoch: number;
  readonly checkpoint: string;
  readonly listings: readonly ProvenListing[];
  readonly cosignature: CosignatureLine | null;
}

const NONE: Anchors = { epoch: 0, checkpoint: "", listings: [], cosignature: null };

/** Asks both logs of heads. To be called before the log's head is fixed, so that nothing larger is listed. */
export async function findAnchors(env: Env, log: OpenLog): Promise<Anchors> {
  const { host, tenant, registryId } = log.identity;
  try {
    const service = await env.HEAD_LOG.getByName(SERVICE).tenantListing({ host, owner: SERVICE }, registryId);
    const covered = service.ok ? (service.listing?.size ?? null) : null;
    const stub = env.HEAD_LOG.getByName(tenant);
    const outcome = await stub.listings({ host, owner: tenant }, logIdOf(log), covered);
    if (!outcome.ok || outcome.listings.length === 0) return NONE;
    const { epoch, checkpoint, listings, consistency } = outcome;
    return { epoch, checkpoint, listings, cosignature: cosignatureLine(service, consistency) };
  } catch (error) {
    logEvent("anchors-unavailable", { error: error instanceof Error ? error.name : "unknown" });
    return NONE;
  }
}

/** The lines under a head of the log. */
export async function anchorLines(
  log: OpenLog,
  anchors: Anchors,
  headSize: number,
): Promise<(TenantLine | CosignatureLine)[]> {
  const { listings, checkpoint, cosignature } = anchors;
  const lines: TenantLine[] = [];
  for (const listing of listings) {
    const outcome = await log.stub.consistency(log.identity, log.epoch, listing.size, headSize);
    if (!outcome.ok) return [];
    // A log that is shorter than what is listed of it was rewound: the line shows that, and has to be there.
    const consistency = outcome.path === null ? [] : hashesOf(outcome.path);
    lines.push({ t: "tenant", checkpoint, ...proofOf(listing), consistency });
  }
  return cosignature === null ? lines : [...lines, cosignature];
}

function proofOf({ index, leaf, path }: ProvenListing) {
  return { index, leaf: toBase64(leaf), path: hashesOf(path) };
}

function cosignatureLine(
  service: TenantListingOutcome,
  consistency: Uint8Array | null,
): CosignatureLine | null {
  if (!service.ok || service.listing === null || consistency === null) return null;
  const { vkey, checkpoint, listing } = service;
  return { t: "cosignature", vkey, checkpoint, ...proofOf(listing), consistency: hashesOf(consistency) };
}
