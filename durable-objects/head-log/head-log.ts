/**
 * A log of heads: a tenant's, over the heads of its logs; or the service's, over the tenants' logs of
 * heads. Logs report to it from their alarms; its own alarm lists what is new, signs and mirrors. docs/heads.md. This
 * file is its RPC surface; head-core.ts is what it is between two calls.
 *
 * @module
 */
import { DurableObject } from "cloudflare:workers";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex, toHex } from "../../shared/bytes.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { formatVkey, logKey } from "../../shared/note/vkey.ts";
import type { Env } from "../../workers/env.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { LogIdentity } from "../principal-log/types.ts";
import { consistencyPath, inclusionPaths, tileBytes } from "../tile-store/proofs.ts";
import { HeadCore } from "./head-core.ts";
import { judgeAnchor } from "./judge-anchor.ts";
import { lastListing } from "./listings.ts";
import type {
  AnchoredOutcome,
  AnchorOutcome,
  AnchorRequest,
  BytesOutcome,
  HeadLogIdentity,
  HeadReport,
  HeadsOutcome,
  LeavesOutcome,
  ListingsOutcome,
  ProofOutcome,
  ReportOutcome,
  TenantListingOutcome,
  ViewOutcome,
  WitnessesOutcome,
} from "./types.ts";

/** Bytes of leaves that one call answers at most, but for a single leaf. */
const MAX_LEAF_BYTES = 1024 * 1024;

export class HeadLog extends DurableObject<Env> {
  readonly #core: HeadCore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const core = new HeadCore(ctx, env);
    this.#core = core;
    void ctx.blockConcurrencyWhile(() => core.start());
  }

  /** Takes the head of a log. It is durable when this answers, and listed by one of the next batches. */
  async report(identity: HeadLogIdentity, report: HeadReport): Promise<ReportOutcome> {
    return this.#core.report(identity, report);
  }

  /** The signed head and how old it is. */
  async view(identity: HeadLogIdentity): Promise<ViewOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const view = this.#core.view();
    return {
      ok: true,
      view: { ...view, checkpoint: this.#core.witnesses.withCosignatures(view.checkpoint) },
    };
  }

  /** The service's log with its witnesses: what each of them answered last. */
  async witnesses(identity: HeadLogIdentity): Promise<WitnessesOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null && refused.code !== "log-stopped") return refused;
    const { misconfigured } = this.#core.witnesses;
    return { ok: true, view: this.#core.view(), misconfigured, witnesses: this.#core.witnesses.view() };
  }

  /**
   * A page of the heads that are known, by log id (hex), after the given one. Answers for a stopped log, too.
   *
   * @param principals names that may be seen; null for all
   */
  async heads(
    identity: HeadLogIdentity,
    after: string,
    limit: number,
    principals: readonly string[] | null,
  ): Promise<HeadsOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null && refused.code !== "log-stopped") return refused;
    const listed = this.#core.storage.state()?.listedReport ?? 0;
    const page = this.#core.storage.page(after, limit, principals);
    const heads = page.map(({ report, ...head }) => ({ ...head, listed: report <= listed }));
    return { ok: true, view: this.#core.view(), heads };
  }

  /** Size of the last anchor of a log; 0 for none. */
  anchoredSize(identity: HeadLogIdentity, logId: string): number {
    this.#core.bind(identity);
    return this.#core.anchors.get(logId)?.size ?? 0;
  }

  /** Takes a head that is kept elsewhere, whose signature the Worker has checked. Judged and stored in one step. */
  anchor(identity: HeadLogIdentity, request: AnchorRequest): AnchorOutcome {
    this.#core.bind(identity);
    const outcome = judgeAnchor(nativeCrypto, this.#core.anchors.get(request.logId), request);
    if (outcome.status === "advanced") {
      const { from: _from, path: _path, ...anchor } = request;
      this.#core.anchors.set({ ...anchor, anchoredAtMs: Date.now() });
    }
    return outcome;
  }

  /** Raises the alarm that a head with a good signature, kept elsewhere, is not one of the log's. */
  contradicted(identity: HeadLogIdentity, logId: string, detail: string): void {
    this.#core.bind(identity);
    this.#core.storage.raiseAlarm({ name: "anchor-contradicts", logId, detail, atMs: Date.now() });
    logEvent("anchor-contradicts", { owner: identity.owner, log_id: logId });
  }

  /** A page of logs with their last anchors, as `heads`; the tenant's log itself comes first of all. */
  async anchored(
    identity: HeadLogIdentity,
    after: string,
    limit: number,
    principals: readonly string[] | null,
  ): Promise<AnchoredOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null && refused.code !== "log-stopped") return refused;
    const { size, registryId } = this.#core.view();
    const anchor = this.#core.anchors.get(registryId);
    const own = { name: null, generation: 0, logId: registryId, size, anchor };
    const logs = this.#core.storage
      .page(after, limit, principals)
      .map(({ name, generation, logId, size: of }) => {
        return { name, generation, logId, size: of, anchor: this.#core.anchors.get(logId) };
      });
    return { ok: true, own, logs };
  }

  /** Whether the tenant's heads answer without a key. */
  publicHeads(identity: HeadLogIdentity): boolean {
    this.#core.bind(identity);
    return this.#core.anchors.publicHeads();
  }

  setPublicHeads(identity: HeadLogIdentity, enabled: boolean): void {
    this.#core.bind(identity);
    this.#core.anchors.setPublicHeads(enabled);
  }

  /** What this log has to be asked with, where its heads answer without a key; else null. */
  publicIdentity(tenant: string): HeadLogIdentity | null {
    const { identity, anchors } = this.#core;
    return identity?.owner === tenant && anchors.publicHeads() ? identity : null;
  }

  /**
   * Of a log whose heads answer without a key, what its object has to be asked with; null for any other.
   *
   * @param principal 16 bytes of hex
   */
  publicLog(tenant: string, principal: string, generation: number): LogIdentity | null {
    const registryId = this.#core.storage.registryId();
    const identity = this.#core.identity;
    if (registryId === null || identity?.owner !== tenant || !this.#core.anchors.publicHeads()) return null;
    const logId = toHex(computeLogId(nativeCrypto, fromHex(registryId, 32), principal, generation));
    const head = this.#core.storage.head(logId);
    return head === null
      ? null
      : { host: identity.host, tenant, principal, generation, name: head.name, registryId };
  }

  /** Leaves from index `from`, before index `to`, cut to what one call carries. */
  async leaves(identity: HeadLogIdentity, from: number, to: number): Promise<LeavesOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const leaves: Uint8Array[] = [];
    let bytes = 0;
    for (const leaf of this.#core.storage.leaves(from, Math.min(to, this.#core.size))) {
      bytes += leaf.length;
      if (leaves.length > 0 && bytes > MAX_LEAF_BYTES) break;
      leaves.push(leaf);
    }
    return { ok: true, from, leaves, view: this.#core.view() };
  }

  /** The bytes of a tile or bundle, as wide as its path says; null where the log has none so wide. */
  async tile(identity: HeadLogIdentity, tile: TileRef): Promise<BytesOutcome> {
    const refused = await this.#core.prepare(identity);
    return (
      refused ?? { ok: true, bytes: tileBytes(this.#core.tree, this.#core.leaves, this.#core.size, tile) }
    );
  }

  /** Path of the leaf at an index, from 0, in the tree of a size: the head's by default. */
  async inclusion(identity: HeadLogIdentity, index: number, size: number | null): Promise<ProofOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const of = size ?? this.#core.size;
    const paths = of > this.#core.size ? [] : inclusionPaths(nativeCrypto, this.#core.tree, [index + 1], of);
    return { ok: true, size: of, path: paths[0] ?? null, view: this.#core.view() };
  }

  /** Path between two sizes, the second the head's by default. */
  async consistency(identity: HeadLogIdentity, from: number, to: number | null): Promise<ProofOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const size = to ?? this.#core.size;
    const inOrder = from <= size && size <= this.#core.size;
    const path = inOrder ? consistencyPath(nativeCrypto, this.#core.tree, from, size) : null;
    return { ok: true, size, path, view: this.#core.view() };
  }

  /**
   * Of a tenant's log: where it lists a log.
   *
   * @param covered the size that the service's log lists of this one; null for none
   */
  async listings(identity: HeadLogIdentity, logId: string, covered: number | null): Promise<ListingsOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const size = this.#core.size;
    const find = (before: number) => lastListing(this.#core.storage, this.#core.tree, logId, before, size);
    const inReach = covered !== null && covered > 0 && covered <= size;
    const [early, last] = [inReach ? find(covered) : null, find(size)];
    const listings = [early, last].filter((one) => one !== null);
    return {
      ok: true,
      checkpoint: this.#core.view().checkpoint,
      epoch: this.#core.storage.state()?.epoch ?? 0,
      listings: early?.index === last?.index ? listings.slice(0, 1) : listings,
      consistency: inReach ? consistencyPath(nativeCrypto, this.#core.tree, covered, size) : null,
    };
  }

  /** Of the service's log: where it lists a tenant's log. Nothing of another tenant is in the answer. */
  async tenantListing(identity: HeadLogIdentity, registryId: string): Promise<TenantListingOutcome> {
    const refused = await this.#core.prepare(identity);
    if (refused !== null) return refused;
    const view = this.#core.view();
    const find = (size: number) => lastListing(this.#core.storage, this.#core.tree, registryId, size, size);
    const cosigned = this.#core.witnesses.cosigned();
    const covered = cosigned === null ? null : find(cosigned.size);
    const key = logKey(nativeCrypto, view.origin, this.#core.keys.current().signer.publicKey);
    const head = cosigned !== null && covered !== null ? cosigned : view;
    return {
      ok: true,
      vkey: formatVkey(key),
      checkpoint: head.checkpoint,
      size: head.size,
      listing: covered ?? find(view.size),
    };
  }

  /** Lists, signs, mirrors and reports. */
  override async alarm(): Promise<void> {
    await this.#core.alarm();
  }
}
