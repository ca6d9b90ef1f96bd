/**
 * Walks a log's leaves in order and checks each: its place, its bytes, its link to the one before, its log, its key.
 * Memory does not grow with the log. What a walk alone can't tell (that the last leaves are under a signed root) is
 * told by the tree, which the walker feeds as it goes.
 *
 * @module
 */
import { equalBytes, equalsHex, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import type { Leaf } from "../entry/leaf.ts";
import { encodeStatement } from "../entry/leaf.ts";
import type { ScannedLeaf } from "../entry/scan-leaf.ts";
import { scanLeaf } from "../entry/scan-leaf.ts";
import { RunsealError } from "../errors.ts";
import { leafHash } from "../merkle/hash.ts";
import type { RegistryChain } from "../registry/chain.ts";
import { ROLES } from "../registry/record.ts";
import { signedMessage } from "../signing.ts";
import type { Issue, IssueList } from "./issues.ts";

/** A leaf as it is found in storage or in a bundle. */
export interface FoundLeaf {
  /** The place at which it was found. */
  readonly seq: number;
  readonly leaf: Uint8Array;
  /** Whether the leaf stands behind the byte that its hash takes in front of it: it saves a copy. */
  readonly prefixed?: boolean;
  /** The leaf hash that is recorded beside it, hex. */
  readonly recordedHash?: string;
  /** The leaf hash that a signed head proves for this place. */
  readonly provenHash?: Uint8Array;
}

export interface WalkOptions {
  readonly crypto: CryptoPort;
  readonly logId: Uint8Array;
  readonly registry: RegistryChain;
  readonly issues: IssueList;
  /** First sequence number of the walk. */
  readonly from: number;
  /** Leaf hash of from - 1; null where it is not known. For `from` 1 the log id is used. */
  readonly prev?: Uint8Array | null;
  /** Called with the hash that stands at each place, in order. */
  readonly onHash?: (seq: number, hash: Uint8Array) => void;
}

export class LogWalker {
  readonly #options: WalkOptions;
  #next: number;
  #prev: Uint8Array | null;
  /** The places that the last gap left out: an entry that turns up there later is out of order, not a second one. */
  #missing = { from: 0, to: 0 };
  #lastEpoch = -1;
  #lastHigh = 0;
  #lastLow = 0;
  /** The last audit key that held its role, and at which epoch: most leaves carry the same one. */
  #goodKey: { readonly key: Uint8Array; readonly epoch: number } | null = null;
  #checked = 0;

  constructor(options: WalkOptions) {
    this.#options = options;
    this.#next = options.from;
    this.#prev = options.from === 1 ? options.logId : (options.prev ?? null);
  }

  /** The sequence number that comes next. */
  get next(): number {
    return this.#next;
  }

  /** Leaves looked at. */
  get checked(): number {
    return this.#checked;
  }

  /** The last place and its hash; null before the first. */
  get last(): { readonly seq: number; readonly hash: Uint8Array } | null {
    return this.#prev === null || this.#next === this.#options.from
      ? null
      : { seq: this.#next - 1, hash: this.#prev };
  }

  /**
   * Checks the leaf that was found next.
   *
   * @returns the leaf where its bytes are those of an entry at this place, else null; issues are in the list
   */
  add(found: FoundLeaf): ScannedLeaf | null {
    this.#checked += 1;
    const { crypto } = this.#options;
    const hash = found.prefixed === true ? crypto.sha256(found.leaf) : leafHash(crypto, found.leaf);
    if (!this.#inOrder(found.seq, hash)) return null;
    const sound = this.#checkHash(found, hash);
    const leaf = this.#scan(found);
    if (leaf !== null && sound) this.#checkLeaf(found.seq, leaf);
    this.#advance(found.provenHash ?? hash);
    return sound ? leaf : null;
  }

  /** Steps over a leaf of which only the hash is there. */
  withheld(seq: number, hash: Uint8Array): void {
    if (this.#inOrder(seq, hash)) this.#advance(hash);
  }

  #advance(hash: Uint8Array): void {
    this.#options.onHash?.(this.#next, hash);
    this.#prev = hash;
    this.#next += 1;
  }

  #issue(
    seq: number,
    code: Issue["code"],
    detail: string,
    expected: string | null = null,
    found: string | null = null,
  ): void {
    this.#options.issues.add({ seq, code, detail, expected, found });
  }

  #inOrder(seq: number, hash: Uint8Array): boolean {
    if (seq === this.#next) return true;
    if (seq > this.#next) {
      const one = seq === this.#next + 1;
      const which = one ? `entry ${this.#next} is` : `entries ${this.#next} to ${seq - 1} are`;
      this.#issue(
        seq,
        "sequence-gap",
        `seq ${seq} follows ${this.#next - 1}: ${which} missing`,
        String(this.#next),
        String(seq),
      );
      // What is missing can't be linked; the walk goes on from what is there. (No loop: seq is whatever it says.)
      this.#missing = { from: this.#next, to: seq - 1 };
      this.#prev = null;
      this.#next = seq;
      return true;
    }
    this.#behind(seq, hash);
    return false;
  }

  /** An entry whose place is behind the walk. Only the last entry's hash is at hand to compare with. */
  #behind(seq: number, hash: Uint8Array): void {
    const last = this.#next - 1;
    const [expected, found] = [String(this.#next), String(seq)];
    if (seq >= this.#missing.from && seq <= this.#missing.to) {
      this.#issue(
        seq,
        "sequence-gap",
        `entry ${seq} comes after entry ${last}: out of order`,
        expected,
        found,
      );
    } else if (seq === last && this.#prev !== null && !equalBytes(this.#prev, hash)) {
      this.#issue(
        seq,
        "forked-entry",
        `another entry ${seq} comes after the one that was walked`,
        expected,
        found,
      );
    } else {
      const detail =
        seq === last ? `entry ${seq} comes twice` : `entry ${seq} comes again, after entry ${last}`;
      this.#issue(seq, "duplicate-entry", detail, expected, found);
    }
  }

  #checkHash(found: FoundLeaf, hash: Uint8Array): boolean {
    const { seq, provenHash, recordedHash } = found;
    if (provenHash !== undefined && !equalBytes(provenHash, hash)) {
      const detail = "the leaf's bytes do not give the hash under the signed head";
      this.#issue(seq, "altered-entry", detail, toHex(provenHash), toHex(hash));
      return false;
    }
    if (recordedHash === undefined || equalsHex(hash, recordedHash)) return true;
    // Where the head proves the leaf, it is the record of its hash that was altered.
    if (provenHash !== undefined) {
      const detail = "the hash recorded beside the leaf is not the one that its bytes give";
      this.#issue(seq, "altered-entry", detail, toHex(hash), recordedHash);
    } else {
      const detail = "the leaf's bytes do not give the hash recorded beside it";
      this.#issue(seq, "altered-entry", detail, recordedHash, toHex(hash));
    }
    return false;
  }

  #scan(found: FoundLeaf): ScannedLeaf | null {
    try {
      return scanLeaf(found.leaf, found.prefixed === true ? 1 : 0);
    } catch (error) {
      if (!(error instanceof RunsealError)) throw error;
      const unsupported = error.code === "unsupported-leaf";
      this.#issue(found.seq, unsupported ? "unsupported-entry" : "malformed-entry", error.message);
      return null;
    }
  }

  #checkLeaf(seq: number, leaf: ScannedLeaf): void {
    const { logId } = this.#options;
    if (!leaf.hasLogId(logId)) {
      this.#issue(seq, "log-id-mismatch", "the leaf belongs to another log", toHex(logId), toHex(leaf.logId));
    }
    if (leaf.seq !== seq) {
      this.#issue(
        seq,
        "altered-entry",
        `the leaf of entry ${leaf.seq} stands here`,
        String(seq),
        String(leaf.seq),
      );
    } else if (this.#prev !== null && !leaf.hasPrev(this.#prev)) {
      this.#issue(
        seq,
        "broken-link",
        "prev is not the hash of the entry before",
        toHex(this.#prev),
        toHex(leaf.prev),
      );
    }
    if (leaf.epoch < this.#lastEpoch) this.#issue(seq, "epoch-regression", "the registry epoch goes back");
    const { timeHigh: high, timeLow: low } = leaf;
    if (high < this.#lastHigh || (high === this.#lastHigh && low < this.#lastLow)) {
      this.#issue(seq, "time-regression", "recorded_at goes back");
    }
    this.#lastEpoch = leaf.epoch;
    this.#lastHigh = high;
    this.#lastLow = low;
    this.#checkKey(seq, leaf);
    if (leaf.hasClient) this.#checkClient(seq, leaf.decode());
  }

  #checkKey(seq: number, leaf: ScannedLeaf): void {
    const good = this.#goodKey;
    if (good !== null && good.epoch === leaf.epoch && leaf.hasKey(good.key)) return;
    if (this.#options.registry.holds(ROLES.audit, leaf.key, leaf.epoch)) {
      this.#goodKey = { key: leaf.key.slice(), epoch: leaf.epoch };
      return;
    }
    this.#issue(
      seq,
      "unregistered-key",
      "the audit key did not hold its role at this epoch",
      null,
      toHex(leaf.key),
    );
  }

  #checkClient(seq: number, leaf: Leaf): void {
    if (leaf.client === null) return;
    const { crypto, registry, logId } = this.#options;
    if (!registry.holds(ROLES.client, leaf.client.key, leaf.epoch)) {
      this.#issue(
        seq,
        "unregistered-key",
        "the client key did not hold its role at this epoch",
        null,
        toHex(leaf.client.key),
      );
      return;
    }
    const message = signedMessage("client", crypto.sha256(encodeStatement(logId, leaf)));
    if (!crypto.verifyEd25519(leaf.client.key, message, leaf.client.signature)) {
      this.#issue(seq, "invalid-signature", "the client's signature does not verify");
    }
  }
}
