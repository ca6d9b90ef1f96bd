/**
 * Checks values against the commitments in a leaf. The texts are hashed as they are given, never canonicalised again.
 *
 * @module
 */
import { equalBytes } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import type { FieldOpening } from "../entry/commitment.ts";
import { FieldCommitter } from "../entry/commitment.ts";
import type { Leaf } from "../entry/leaf.ts";
import { sectionCommitments } from "../entry/leaf.ts";

/** The first field whose opening is not the committed one, as a pointer; null where all are. */
export function alteredField(
  crypto: CryptoPort,
  leaf: Leaf,
  openings: Iterable<FieldOpening>,
): string | null {
  const committer = new FieldCommitter(crypto);
  for (const { section, name, salt, text } of openings) {
    const commitment = sectionCommitments(leaf, section).get(name);
    const opened = committer.commit(section, name, salt, text).commitment;
    if (commitment === undefined || !equalBytes(commitment, opened)) return `/${section}/${name}`;
  }
  return null;
}
