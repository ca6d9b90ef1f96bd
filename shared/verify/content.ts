/**
 * Checks values against the commitments in a leaf. The texts are hashed as they are given, never canonicalised again.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import type { FieldOpening } from "../entry/commitment.ts";
import { FieldCommitter } from "../entry/commitment.ts";
import type { ScannedLeaf } from "../entry/scan-leaf.ts";

/** The first field whose opening is not the committed one, as a pointer; null where all are. */
export function alteredField(
  crypto: CryptoPort,
  leaf: Pick<ScannedLeaf, "commits">,
  openings: Iterable<FieldOpening>,
): string | null {
  const committer = new FieldCommitter(crypto);
  for (const { section, name, salt, text } of openings) {
    const { commitment } = committer.commit(section, name, salt, text);
    if (!leaf.commits(section, name, commitment)) return `/${section}/${name}`;
  }
  return null;
}
