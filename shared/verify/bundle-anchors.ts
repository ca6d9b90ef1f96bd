/**
 * The lines of a bundle that tie its head to the tenant's log, and that to the service's and its witnesses: what they
 * show of the head's age, and whether a retired key signed it before it was retired. docs/format.md, "Verification".
 *
 * @module
 */
import type { CosignatureLine, TenantLine } from "../bundle/format.ts";
import { BundleError, bundleBytes } from "../bundle/format.ts";
import { equalBytes, utf8 } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { openNote } from "../note/signed-note.ts";
import type { NoteKey } from "../note/vkey.ts";
import { parseVkey, SIGNATURE_TYPES } from "../note/vkey.ts";
import type { RegistryChain } from "../registry/chain.ts";
import { ROLES } from "../registry/record.ts";
import { openHead } from "./checkpoint.ts";
import type { Issue } from "./issues.ts";
import type { Listing, TreeHead } from "./listing.ts";
import { checkGoesOn, demandRecord, headsOf, listedIn, provenLeaf, Refused } from "./listing.ts";

/** Lines of either kind that a bundle may have. */
export const MAX_ANCHOR_LINES = 16;

/** What the registry's lines gave, by epoch. */
export interface RecordNote {
  /** Hash of the record. */
  readonly hash: Uint8Array;
  /** The audit keys that it retires. */
  readonly retiresAudit: readonly Uint8Array[];
}

export interface AnchorContext {
  readonly registry: RegistryChain;
  readonly records: readonly RecordNote[];
  readonly host: string;
  /** The tenant's origin, which names its log. */
  readonly tenantOrigin: string;
  readonly logId: Uint8Array;
  /** The bundle's head; null where it could not be opened. */
  readonly head: TreeHead | null;
  readonly witnesses: readonly NoteKey[];
}

/** A witness' word, under a key that the caller gave. */
export interface WitnessedAt {
  readonly witness: string;
  /** POSIX seconds. */
  readonly time: bigint;
  /** The last listing that this covers; null where what is listed came later. */
  readonly covers: Listing | null;
}

export interface AnchorFindings {
  readonly issues: readonly Issue[];
  /** The listing with the highest index; null for none. */
  readonly listed: Listing | null;
  /** Leaves of the tenant's log under its head; null where no line holds. */
  readonly tenantLogSize: number | null;
  readonly witnessed: readonly WitnessedAt[];
  /** Lines of the service's log that hold and that no witness vouches for. */
  readonly unwitnessed: number;
  /** Cosignatures by keys that the caller did not give. */
  readonly unknownCosignatures: number;
  /** Why tenant lines don't count, though nothing is wrong with them; null where they do. */
  readonly stale: string | null;
  /** Whether the head is shown to be older than the record that retires the key. */
  readonly isBeforeRetirement: (key: Uint8Array) => boolean;
}

interface Draft {
  readonly issues: Issue[];
  readonly listings: Listing[];
  /** Index of the leaf that each record is. */
  readonly recordAt: Map<number, number>;
  readonly witnessed: WitnessedAt[];
  unwitnessed: number;
  unknownCosignatures: number;
}

export class BundleAnchors {
  readonly #crypto: CryptoPort;
  readonly #tenant: TenantLine[] = [];
  readonly #cosignatures: CosignatureLine[] = [];

  constructor(crypto: CryptoPort) {
    this.#crypto = crypto;
  }

  /** Takes a line. Throws `BundleError` for one that the format does not allow here. */
  take(line: TenantLine | CosignatureLine): void {
    const [first] = this.#tenant;
    const lines = line.t === "tenant" ? this.#tenant : this.#cosignatures;
    const refused =
      lines.length >= MAX_ANCHOR_LINES
        ? "there are too many lines of a log of heads"
        : line.t === "cosignature" && first === undefined
          ? "a line of the service's log comes without one of the tenant's"
          : line.t === "tenant" && first !== undefined && first.checkpoint !== line.checkpoint
            ? "the lines of the tenant's log are of two heads"
            : null;
    if (refused !== null) throw new BundleError("malformed-bundle", refused);
    bundleBytes(line.leaf);
    if (line.t === "tenant") this.#tenant.push(line);
    else this.#cosignatures.push(line);
  }

  /** Judges the lines, in their order. */
  judge(context: AnchorContext): AnchorFindings {
    const draft: Draft = {
      issues: [],
      listings: [],
      recordAt: new Map(),
      witnessed: [],
      unwitnessed: 0,
      unknownCosignatures: 0,
    };
    const [first] = this.#tenant;
    const none = { listed: null, tenantLogSize: null, stale: null, isBeforeRetirement: () => false };
    if (first === undefined) return { ...draft, ...none };
    const { registry, tenantOrigin } = context;
    const opened = openHead(this.#crypto, tenantOrigin, first.checkpoint, registry.ever(ROLES.log));
    if (!opened.ok) {
      const detail = `the head of the tenant's log: ${opened.detail}`;
      draft.issues.push({ code: opened.code, seq: 0, detail, expected: null, found: null });
      return { ...draft, ...none };
    }
    const log = opened.checkpoint;
    for (const line of this.#tenant) {
      this.#guard(draft, () => this.#judgeTenant(draft, context, log, line));
    }
    for (const line of this.#cosignatures) {
      this.#guard(draft, () => this.#judgeCosignature(draft, context, log, line));
    }
    const current = opened.keys.some((key) => registry.holds(ROLES.log, key, registry.epoch));
    const stale = current ? null : "the lines of the tenant's log: a key signed it that is retired since";
    return {
      ...draft,
      listed: current ? latest(draft.listings, log.size) : null,
      tenantLogSize: log.size,
      stale,
      isBeforeRetirement: (key) => current && isBefore(draft, context, key),
    };
  }

  #guard(draft: Draft, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      draft.issues.push(error.issue);
    }
  }

  #judgeTenant(draft: Draft, context: AnchorContext, log: TreeHead, line: TenantLine): void {
    const leaf = provenLeaf(this.#crypto, line, log);
    const heads = headsOf(leaf);
    if (heads !== null) {
      const listed = listedIn(heads, line.index, context.registry.registryId, context.logId);
      if (context.head !== null) checkGoesOn(this.#crypto, listed, context.head, line.consistency, true);
      draft.listings.push(listed);
      return;
    }
    demandRecord(leaf);
    const hash = this.#crypto.sha256(leaf);
    const epoch = context.records.findIndex((record) => equalBytes(record.hash, hash));
    if (epoch < 0) {
      throw new Refused(
        "invalid-registry",
        "the tenant's log holds a registry record that the bundle does not",
      );
    }
    if (line.consistency.length > 0) {
      throw new Refused("malformed-entry", "a line of a registry record has a consistency proof");
    }
    draft.recordAt.set(epoch, Math.min(line.index, draft.recordAt.get(epoch) ?? line.index));
  }

  #judgeCosignature(draft: Draft, context: AnchorContext, log: TreeHead, line: CosignatureLine): void {
    const key = serviceKey(this.#crypto, line.vkey);
    if (key.name !== context.host)
      throw new Refused("log-id-mismatch", "the service's log is of another host");
    const opened = openHead(this.#crypto, key.name, line.checkpoint, [key.publicKey]);
    if (!opened.ok) throw new Refused(opened.code, `the head of the service's log: ${opened.detail}`);
    const heads = headsOf(provenLeaf(this.#crypto, line, opened.checkpoint));
    if (heads === null)
      throw new Refused("unsupported-entry", "a leaf of the service's log is of another version");
    const serviceId = this.#crypto.sha256(utf8(line.vkey));
    const listed = listedIn(heads, line.index, serviceId, context.registry.registryId);
    checkGoesOn(this.#crypto, listed, log, line.consistency, false);
    this.#takeCosignatures(draft, context, line.checkpoint, listed.size);
  }

  /** @param covered leaves of the tenant's log that the cosigned head of the service's log covers */
  #takeCosignatures(draft: Draft, context: AnchorContext, note: string, covered: number): void {
    const covers = latest(draft.listings, covered);
    try {
      const { verified, unverified } = openNote(this.#crypto, note, context.witnesses);
      for (const { key, timestamp } of verified) {
        if (timestamp !== null) draft.witnessed.push({ witness: key.name, time: timestamp, covers });
      }
      // One of those is the log's own.
      draft.unknownCosignatures += unverified.length - 1;
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      if (error.code !== "unverified-note") {
        throw new Refused("invalid-signature", `a cosignature: ${error.message}`);
      }
      draft.unwitnessed += 1;
      draft.unknownCosignatures += openedLines(note) - 1;
    }
  }
}

function openedLines(note: string): number {
  return note.split("\n").filter((line) => line.startsWith("\u2014 ")).length;
}

function serviceKey(crypto: CryptoPort, vkey: string): NoteKey {
  let key: NoteKey;
  try {
    key = parseVkey(crypto, vkey);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Refused("malformed-entry", `the service log's key: ${error.message}`);
  }
  if (key.type !== SIGNATURE_TYPES.ed25519) {
    throw new Refused("malformed-entry", "the service log's key is no Ed25519 log key");
  }
  return key;
}

/** The listing with the highest index before `end`. */
function latest(listings: readonly Listing[], end: number): Listing | null {
  let last: Listing | null = null;
  for (const one of listings) if (one.index < end && one.index >= (last?.index ?? 0)) last = one;
  return last;
}

/** Whether this very head is listed before the record that retires the key. */
function isBefore(draft: Draft, { head, records }: AnchorContext, key: Uint8Array): boolean {
  if (head === null) return false;
  const epoch = records.findIndex(({ retiresAudit }) => retiresAudit.some((one) => equalBytes(one, key)));
  const recordAt = draft.recordAt.get(epoch);
  if (recordAt === undefined) return false;
  return draft.listings.some(
    ({ index, size, root }) => index < recordAt && size === head.size && equalBytes(root, head.root),
  );
}
