/**
 * Judges entries that were found outside a log's own storage, as the verifier does: each must be the next one of this
 * log, bound to the one before, under a key that was registered for it.
 *
 * @module
 */
import { fromHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { columnsOf } from "../../shared/entry/columns.ts";
import type { FieldOpening } from "../../shared/entry/commitment.ts";
import { splitSections } from "../../shared/entry/content.ts";
import { formatRow } from "../../shared/entry/row.ts";
import type { ScannedLeaf } from "../../shared/entry/scan-leaf.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import { alteredField } from "../../shared/verify/content.ts";
import { IssueList } from "../../shared/verify/issues.ts";
import { LogWalker } from "../../shared/verify/walk.ts";
import type { FoundEntry } from "./refill-source.ts";

/** What the next entry has to go on from. */
export interface RefillPlace {
  readonly size: number;
  readonly lastHash: Uint8Array;
  readonly recordedAt: bigint;
  readonly epoch: number;
}

/** An entry that goes on from the ones before. */
export interface CheckedEntry {
  readonly seq: number;
  readonly hash: Uint8Array;
  readonly id: string;
  readonly leaf: Uint8Array;
  /** The row of a segment. */
  readonly row: string;
  readonly recordedAt: bigint;
  readonly epoch: number;
  /** Whether it has its values; an entry without any has them, too. */
  readonly hasContent: boolean;
}

/** The entries up to the first that does not go on from the ones before, and what is wrong with that one. */
export interface CheckedPage {
  readonly entries: readonly CheckedEntry[];
  readonly wrong: string | null;
}

/** Checks entries that follow a place. */
export function checkFound(
  context: { readonly crypto: CryptoPort; readonly logId: Uint8Array; readonly registry: RegistryChain },
  place: RefillPlace,
  found: readonly FoundEntry[],
): CheckedPage {
  const { crypto, logId, registry } = context;
  const issues = new IssueList();
  let hash = place.lastHash;
  const walker = new LogWalker({
    crypto,
    logId,
    registry,
    issues,
    from: place.size + 1,
    prev: place.lastHash,
    onHash: (_seq, one) => {
      hash = one;
    },
  });
  const entries: CheckedEntry[] = [];
  let { recordedAt, epoch } = place;
  for (const [i, { leaf: bytes, content }] of found.entries()) {
    const seq = place.size + 1 + i;
    const scanned = walker.add({ seq, leaf: bytes });
    if (scanned === null || issues.total > 0) return { entries, wrong: wrongOf(seq, issues.first?.detail) };
    const leaf = scanned.decode();
    if (leaf.recordedAt < recordedAt || leaf.epoch < epoch)
      return { entries, wrong: wrongOf(seq, "its time or its registry epoch goes back") };
    ({ recordedAt, epoch } = leaf);
    const kept = content !== null && opensTo(crypto, scanned, content) ? content : null;
    const columns = columnsOf(leaf, kept?.values ?? null);
    const row = formatRow({ columns, values: kept?.values ?? null, salts: kept?.salts ?? null });
    entries.push({
      seq,
      hash,
      id: leaf.id,
      // A copy: the bytes found are a window on a whole bundle.
      leaf: bytes.slice(),
      row,
      recordedAt,
      epoch,
      hasContent: kept !== null,
    });
  }
  return { entries, wrong: null };
}

function wrongOf(seq: number, detail: string | undefined): string {
  return `entry ${seq}: ${detail ?? "the bytes are not those of an entry"}`;
}

/** Whether the values are the ones that the leaf commits to: others are none of the entry's. */
function opensTo(
  crypto: CryptoPort,
  leaf: Pick<ScannedLeaf, "commits">,
  content: { readonly values: string; readonly salts: string },
): boolean {
  try {
    const salts = splitSections(content.salts);
    const openings: FieldOpening[] = [];
    for (const [section, fields] of splitSections(content.values)) {
      for (const [name, text] of fields) {
        const salt = salts.get(section)?.get(name);
        if (salt === undefined) return false;
        openings.push({ section, name, salt: fromHex(salt.slice(1, -1), 16), text });
      }
    }
    return alteredField(crypto, leaf, openings) === null;
  } catch (error) {
    if (error instanceof RunsealError) return false;
    throw error;
  }
}
