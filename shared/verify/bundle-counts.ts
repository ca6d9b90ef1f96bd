/**
 * What a bundle holds, counted, and so what its verification could not look at.
 *
 * @module
 */

import type { AnchorFindings } from "./bundle-anchors.ts";
import { timeText } from "./freshness.ts";

export class BundleCounts {
  /** Leaves in the bundle, and places of which only the hash is there. */
  leaves = 0;
  hashes = 0;
  /** Fields that the leaves commit to, and those that were opened. */
  fields = 0;
  opened = 0;

  /**
   * @param lastIsHash whether the last entry's leaf is not there
   * @param anchors what the lines of the logs of heads showed
   */
  notChecked(lastIsHash: boolean, anchors: AnchorFindings): string[] {
    const out: string[] = [];
    if (this.hashes > 0) {
      out.push(`${this.hashes} leaves of ${this.leaves + this.hashes}: only their hashes are in the bundle`);
    }
    if (lastIsHash) {
      out.push(
        "whether the head's signer held its role at the last entry's epoch: that entry's leaf is not in the bundle",
      );
    }
    if (this.fields > this.opened) {
      out.push(`${this.fields - this.opened} values of ${this.fields}: they are committed to, not disclosed`);
    }
    if (anchors.stale !== null) out.push(anchors.stale);
    if (anchors.unknownCosignatures > 0) {
      out.push(`${anchors.unknownCosignatures} cosignatures: the keys of their witnesses were not given`);
    }
    out.push(notFresh(anchors));
    return out;
  }
}

/** What nothing in a bundle can show, as far as it is left open. */
function notFresh({ listed, witnessed }: AnchorFindings): string {
  const times = [
    ...(listed === null ? [] : [listed.time]),
    ...witnessed.map(({ time }) => time * 1_000_000_000n),
  ];
  const last = times.reduce((a, b) => (a > b ? a : b), -1n);
  const since = last < 0n ? "" : ` after ${timeText(last)}`;
  return `freshness: nothing that was checked says that there is no later head, or no later registry record${since}`;
}
