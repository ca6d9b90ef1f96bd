/**
 * Reads a leaf without building what a walk does not need. It accepts only leaves that `decodeLeaf` accepts (a test
 * holds the two against each other); whatever it is not sure of it leaves to the decoder, which says what is wrong.
 *
 * @module
 */
import { equalBytes } from "../bytes.ts";
import type { SectionName } from "./commitment.ts";
import { decodeLeaf } from "./decode-leaf.ts";
import type { Leaf } from "./leaf.ts";
import { sectionCommitments } from "./leaf.ts";
import { LeafScanner, NIL, OPAQUE } from "./leaf-scanner.ts";
import { MAX_FIELDS, MAX_LEAF_BYTES } from "./limits.ts";

/** What a walk needs of a leaf. Views are into the leaf's bytes. */
export interface ScannedLeaf {
  readonly logId: Uint8Array;
  readonly seq: number;
  readonly prev: Uint8Array;
  /** Comparisons, which need no view. */
  hasLogId(bytes: Uint8Array): boolean;
  hasPrev(bytes: Uint8Array): boolean;
  hasKey(bytes: Uint8Array): boolean;
  /** Nanoseconds, as two halves of 32 bits: a comparison needs no bigint. */
  readonly timeHigh: number;
  readonly timeLow: number;
  readonly epoch: number;
  readonly key: Uint8Array;
  readonly hasClient: boolean;
  /** Fields that it commits to. */
  readonly fields: number;
  /** Whether this is the commitment that the leaf holds for the field. */
  commits(section: SectionName, name: string, commitment: Uint8Array): boolean;
  /** The whole leaf. */
  decode(): Leaf;
}

/** Array head, tag, and the head of the log id: the first bytes of every leaf. */
const PREFIX = Uint8Array.from([0x94, 0x70, ...new TextEncoder().encode("runseal.entry.v1"), 0x58, 0x20]);

/** Bytes of a head whose argument is below 256, and that argument. */
function headBytes(head: number | undefined): number {
  return ((head ?? 0) & 0x1f) < 24 ? 1 : 2;
}

function argument(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) & 0x1f;
  return low < 24 ? low : (bytes[at + 1] ?? 0);
}

/** A leaf's parts, read where they are. */
class LeafView implements ScannedLeaf {
  seq = 0;
  timeHigh = 0;
  timeLow = 0;
  epoch = 0;
  hasClient = false;
  fields = 0;
  // Places in the bytes.
  logIdAt = 0;
  prevAt = 0;
  keyAt = 0;
  actionAt = 0;
  authorizationAt = 0;
  outcomeAt = 0;
  readonly #bytes: Uint8Array;
  readonly #start: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#start = start;
  }

  get logId(): Uint8Array {
    return this.#bytes.subarray(this.logIdAt, this.logIdAt + 32);
  }

  get prev(): Uint8Array {
    return this.#bytes.subarray(this.prevAt, this.prevAt + 32);
  }

  get key(): Uint8Array {
    return this.#bytes.subarray(this.keyAt, this.keyAt + 32);
  }

  hasLogId(bytes: Uint8Array): boolean {
    return this.#has(this.logIdAt, bytes);
  }

  hasPrev(bytes: Uint8Array): boolean {
    return this.#has(this.prevAt, bytes);
  }

  hasKey(bytes: Uint8Array): boolean {
    return this.#has(this.keyAt, bytes);
  }

  commits(section: SectionName, name: string, commitment: Uint8Array): boolean {
    const at = this.#commitmentAt(section, name);
    return at >= 0 && this.#has(at, commitment);
  }

  decode(): Leaf {
    return decodeLeaf(this.#bytes.subarray(this.#start));
  }

  /** Where the commitment to a field is; -1 where the leaf has none. The bytes were scanned: they are as they must be. */
  #commitmentAt(section: SectionName, name: string): number {
    const bytes = this.#bytes;
    let at = { action: this.actionAt, authorization: this.authorizationAt, outcome: this.outcomeAt }[section];
    if (section !== "action") {
      if (bytes[at] === NIL) return -1;
      at += 1;
      at += headBytes(bytes[at]) + argument(bytes, at);
    }
    const count = argument(bytes, at);
    at += headBytes(bytes[at]);
    for (let i = 0; i < count; i++) {
      const length = argument(bytes, at);
      at += headBytes(bytes[at]);
      if (length === name.length && this.#isText(at, name)) return at + length + 2;
      at += length + 2 + 32;
    }
    return -1;
  }

  #isText(at: number, text: string): boolean {
    for (let i = 0; i < text.length; i++) if (this.#bytes[at + i] !== text.charCodeAt(i)) return false;
    return true;
  }

  #has(at: number, other: Uint8Array): boolean {
    if (other.length !== 32) return false;
    for (let i = 0; i < 32; i++) if (this.#bytes[at + i] !== other[i]) return false;
    return true;
  }
}

function scan(bytes: Uint8Array, start: number): ScannedLeaf | null {
  if (bytes.length - start > MAX_LEAF_BYTES) return null;
  for (let i = 0; i < PREFIX.length; i++) if (bytes[start + i] !== PREFIX[i]) return null;
  const leaf = new LeafView(bytes, start);
  const s = new LeafScanner(bytes, start + PREFIX.length);
  leaf.logIdAt = s.at;
  s.at += 32;
  leaf.seq = s.small();
  leaf.prevAt = s.bytes32();
  s.uint();
  leaf.timeHigh = s.high;
  leaf.timeLow = s.low;
  if (bytes[s.at] === NIL) s.at += 1;
  else s.uint();
  s.text(OPAQUE, 128);
  s.kind();
  s.textOrNil();
  s.textOrNil();
  s.textOrNil();
  s.textOrNil();
  s.actor();
  if (s.byte() !== 0x82 || s.byte() !== 0x50) s.fail();
  s.at += 16;
  s.reporter();
  leaf.actionAt = s.at;
  const action = s.commitments();
  leaf.authorizationAt = s.at;
  const authorization = s.tagged();
  leaf.outcomeAt = s.at;
  leaf.fields = action + authorization + s.tagged();
  leaf.hasClient = s.client();
  leaf.epoch = s.small();
  leaf.keyAt = s.bytes32();
  if (!s.good || s.at !== bytes.length || leaf.seq < 1 || leaf.fields > MAX_FIELDS) return null;
  return leaf;
}

/** What the decoder found, in the scanner's form. */
function ofDecoded(leaf: Leaf): ScannedLeaf {
  return {
    logId: leaf.logId,
    seq: leaf.seq,
    prev: leaf.prev,
    timeHigh: Number(leaf.recordedAt >> 32n),
    timeLow: Number(leaf.recordedAt & 0xffff_ffffn),
    epoch: leaf.epoch,
    key: leaf.key,
    hasClient: leaf.client !== null,
    fields: leaf.action.size + (leaf.authorization?.fields.size ?? 0) + (leaf.outcome?.fields.size ?? 0),
    hasLogId: (bytes) => equalBytes(leaf.logId, bytes),
    hasPrev: (bytes) => equalBytes(leaf.prev, bytes),
    hasKey: (bytes) => equalBytes(leaf.key, bytes),
    commits: (section, name, commitment) => {
      const held = sectionCommitments(leaf, section).get(name);
      return held !== undefined && equalBytes(held, commitment);
    },
    decode: () => leaf,
  };
}

/** The leaf in these bytes, from `start` on. Throws what `decodeLeaf` throws. */
export function scanLeaf(bytes: Uint8Array, start = 0): ScannedLeaf {
  return scan(bytes, start) ?? ofDecoded(decodeLeaf(bytes.subarray(start)));
}

/** For the test that holds the two against each other: null where the scanner leaves the leaf to the decoder. */
export const scanAlone = (bytes: Uint8Array): ScannedLeaf | null => scan(bytes, 0);
