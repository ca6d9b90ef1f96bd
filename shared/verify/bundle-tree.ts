/**
 * What a bundle's hashes add up to: the tree's root, the root at the size of a checkpoint that was kept, and whether a
 * kept head was reached by a walk over every leaf before it.
 *
 * @module
 */
import { toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RightEdge } from "../merkle/edge.ts";

/** `SEQ:HASH`, as `runseal head` prints it. */
export interface KeptHead {
  readonly seq: number;
  /** Hex. */
  readonly hash: string;
}

export class BundleTree {
  readonly #edge: RightEdge;
  readonly #keptHead: KeptHead | undefined;
  readonly #keptSize: number | undefined;
  #gap = false;
  #keptRoot: Uint8Array | null;
  #keptHash: Uint8Array | null = null;
  #withoutLeaf = 0;

  /** @param keptSize size of the checkpoint that was kept */
  constructor(crypto: CryptoPort, keptHead: KeptHead | undefined, keptSize: number | undefined) {
    this.#edge = new RightEdge(crypto);
    this.#keptHead = keptHead;
    this.#keptSize = keptSize;
    this.#keptRoot = keptSize === 0 ? this.#edge.root() : null;
  }

  /** Takes the hash of the next place. `walked`: its leaf was there and was read. */
  add(seq: number, hash: Uint8Array, walked: boolean): void {
    const missing = seq - 1 - this.#edge.size;
    if (missing > 0) this.#gap = true;
    if (this.#keptHead !== undefined && seq <= this.#keptHead.seq && !walked) this.#withoutLeaf += 1;
    if (this.#keptHead?.seq === seq) this.#keptHash = hash;
    if (this.#gap) return;
    this.#edge.take(hash);
    if (this.#edge.size === this.#keptSize) this.#keptRoot = this.#edge.root();
  }

  /** Root over all the hashes; null where one is missing. */
  root(): Uint8Array | null {
    return this.#gap ? null : this.#edge.root();
  }

  /** Root at the size of the kept checkpoint; null where that many hashes are not there. */
  get keptRoot(): Uint8Array | null {
    return this.#keptRoot;
  }

  /** Hash at the kept head's place, hex; null where it was not reached. */
  get keptFound(): string | null {
    return this.#keptHash === null ? null : toHex(this.#keptHash);
  }

  /** Places up to the kept head whose leaf was not there to be walked. */
  get withoutLeaf(): number {
    return this.#withoutLeaf;
  }
}
