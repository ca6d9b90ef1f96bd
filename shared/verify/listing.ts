/**
 * One line of a bundle that shows a leaf of a log of heads: is the leaf in that log, and does what it lists agree with
 * the head that is given. docs/format.md, "Verification", "At the end".
 *
 * @module
 */
import type { ListingProof } from "../bundle/format.ts";
import { bundleBytes, bundleHash } from "../bundle/format.ts";
import { equalBytes } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { decodeTagged } from "../entry/tagged-array.ts";
import { RunsealError } from "../errors.ts";
import type { HeadsLeaf } from "../heads/leaf.ts";
import { decodeHeadsLeaf } from "../heads/leaf.ts";
import { leafHash } from "../merkle/hash.ts";
import { verifyConsistency, verifyInclusion } from "../merkle/verify.ts";
import { REGISTRY_TAG } from "../registry/record.ts";
import type { Issue, IssueCode } from "./issues.ts";

/** A tree's head, without its name. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Where a log was listed. */
export interface Listing extends TreeHead {
  /** Index of the leaf in the log of heads. */
  readonly index: number;
  /** The leaf's time, nanoseconds. */
  readonly time: bigint;
}

/** Thrown where a line does not hold, with what is wrong; never out of the verifier. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly issue: Issue;

  constructor(code: IssueCode, detail: string, seq = 0) {
    super(detail);
    this.issue = { code, seq, detail, expected: null, found: null };
  }
}

/** The leaf's bytes, once they are shown to be at the line's index under that head. Throws `Refused`. */
export function provenLeaf(crypto: CryptoPort, line: ListingProof, log: TreeHead): Uint8Array {
  const leaf = bundleBytes(line.leaf);
  const path = line.path.map(bundleHash);
  const { ok } = verifyInclusion(crypto, line.index, log.size, leafHash(crypto, leaf), path, log.root);
  if (!ok)
    throw new Refused("root-mismatch", "a listed leaf is not in the log of heads that it is said to be in");
  return leaf;
}

/** The leaf as a list of heads; null where it is of another form. Throws `Refused`. */
export function headsOf(leaf: Uint8Array): HeadsLeaf | null {
  try {
    return decodeHeadsLeaf(leaf);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Refused("malformed-entry", `a leaf of a log of heads: ${error.message}`);
  }
}

/** Demands that the leaf is a registry record, or was meant to be one. Throws `Refused`. */
export function demandRecord(leaf: Uint8Array): void {
  let items: readonly unknown[] | null;
  try {
    items = decodeTagged(leaf, REGISTRY_TAG);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Refused("malformed-entry", `a leaf of the tenant's log: ${error.message}`);
  }
  if (items === null)
    throw new Refused("unsupported-entry", "a leaf of the tenant's log is of another version");
}

/** What the list says of a log. Throws `Refused` where it is of another log of heads, or does not list the log. */
export function listedIn(leaf: HeadsLeaf, index: number, registryId: Uint8Array, logId: Uint8Array): Listing {
  if (!equalBytes(leaf.registryId, registryId)) {
    throw new Refused("log-id-mismatch", "a list of heads is of another log of heads");
  }
  const head = leaf.heads.find((one) => equalBytes(one.logId, logId));
  if (head === undefined) throw new Refused("log-id-mismatch", "a list of heads does not name the log");
  return { size: head.size, root: head.root, index, time: leaf.time };
}

/**
 * Whether the head goes on from what is listed. Throws `Refused`.
 *
 * @param entries whether the sizes count entries of the bundle's log, at which the issue then is
 */
export function checkGoesOn(
  crypto: CryptoPort,
  listed: TreeHead,
  head: TreeHead,
  consistency: readonly string[],
  entries: boolean,
): void {
  if (listed.size > head.size) {
    const detail = `a head of size ${listed.size} is listed, and the one in the bundle has size ${head.size}`;
    throw new Refused("truncated", detail, entries ? head.size + 1 : 0);
  }
  const path = consistency.map(bundleHash);
  if (!verifyConsistency(crypto, listed.size, head.size, path, listed.root, head.root).ok) {
    const detail = `the head does not go on from the listed one of size ${listed.size}`;
    throw new Refused("kept-head-mismatch", detail, entries ? listed.size : 0);
  }
}
