/**
 * What a bundle holds, counted, and so what its verification could not look at.
 *
 * @module
 */

export class BundleCounts {
  /** Leaves in the bundle, and places of which only the hash is there. */
  leaves = 0;
  hashes = 0;
  /** Fields that the leaves commit to, and those that were opened. */
  fields = 0;
  opened = 0;
  tenants = 0;
  cosignatures = 0;

  /** @param lastIsHash whether the last entry's leaf is not there */
  notChecked(lastIsHash: boolean): string[] {
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
    if (this.tenants > 0) out.push("the lines of the tenant's log");
    if (this.cosignatures > 0) out.push("the cosignatures");
    out.push(
      "freshness: nothing that was checked says that there is no later head, or no later registry record",
    );
    return out;
  }
}
