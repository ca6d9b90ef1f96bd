/**
 * An entry's signed bytes, its leaf: a deterministic CBOR array of twenty members. The encoder
 * is written for this fixed shape. The sender determines the middle of the array (the *body*), which the Worker
 * encodes; the log adds its position before and its key after, so that it can order entries without parsing them.
 *
 * @module
 */

import { CborWriter } from "../cbor/encode.ts";
import { HASH_BYTES, LEAF_PREFIX } from "../merkle/hash.ts";
import { Slab } from "../slab.ts";
import type { SectionName } from "./commitment.ts";

export const ENTRY_TAG = "runseal.entry.v1";
/** Members of the leaf array. */
export const LEAF_MEMBERS = 20;

/** Who reports an entry. */
export const REPORTERS = ["agent", "host", "service", "import"] as const;
export type Reporter = (typeof REPORTERS)[number];

/** Commitments by field name. */
export type Commitments = ReadonlyMap<string, Uint8Array>;

/** Who acted; opaque identifiers in the clear. */
export interface Actor {
  readonly type: string;
  readonly id: string;
  /** SHA-256 of the code that acted, 32 bytes, or null. */
  readonly codeHash: Uint8Array | null;
}

/** A section with a tag of its own: an authorization's `type`, an outcome's `status`. */
export interface TaggedSection {
  readonly tag: string;
  readonly fields: Commitments;
}

/** The members that the sender and the Worker determine. */
export interface LeafBody {
  /** Nanoseconds since the epoch, or null where the time is not known. */
  readonly occurredAt: bigint | null;
  readonly id: string;
  readonly kind: string;
  readonly session: string | null;
  readonly run: string | null;
  readonly step: string | null;
  readonly call: string | null;
  readonly actor: Actor | null;
  /** Credential id, 16 bytes, and who reports. */
  readonly submitter: { readonly credential: Uint8Array; readonly reporter: Reporter };
  readonly action: Commitments;
  readonly authorization: TaggedSection | null;
  readonly outcome: TaggedSection | null;
  /** The client's key (32 bytes) and its signature (64 bytes) over the statement, or null. */
  readonly client: { readonly key: Uint8Array; readonly signature: Uint8Array } | null;
}

/** The members that the log determines. */
export interface LeafPosition {
  /** 32 bytes. */
  readonly logId: Uint8Array;
  /** From 1. */
  readonly seq: number;
  /** Leaf hash of seq - 1; the log id for seq 1. 32 bytes. */
  readonly prev: Uint8Array;
  /** Nanoseconds since the epoch, never less than the predecessor's. */
  readonly recordedAt: bigint;
  /** Registry epoch of the audit key. */
  readonly epoch: number;
  /** The audit key, 32 bytes. */
  readonly key: Uint8Array;
}

/** A whole leaf, decoded. */
export interface Leaf extends LeafBody, LeafPosition {}

function writeOptionalText(writer: CborWriter, value: string | null): void {
  if (value === null) writer.nil();
  else writer.text(value);
}

/**
 * Names in dCBOR map order: by their encoded bytes. For names below 24 bytes the head byte is the length, so shorter
 * names come first; the head of a longer name is larger still, so the rule is: by length, then by bytes.
 */
export function compareFieldNames(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

function writeCommitments(writer: CborWriter, fields: Commitments): void {
  writer.mapHead(fields.size);
  if (fields.size < 2) {
    for (const [name, commitment] of fields) {
      writer.text(name);
      writer.bytes(commitment);
    }
    return;
  }
  for (const name of [...fields.keys()].sort(compareFieldNames)) {
    const commitment = fields.get(name);
    if (commitment === undefined) continue;
    writer.text(name);
    writer.bytes(commitment);
  }
}

function writeTagged(writer: CborWriter, section: TaggedSection | null): void {
  if (section === null) {
    writer.nil();
    return;
  }
  writer.arrayHead(2);
  writer.text(section.tag);
  writeCommitments(writer, section.fields);
}

function writeActor(writer: CborWriter, actor: Actor | null): void {
  if (actor === null) {
    writer.nil();
    return;
  }
  writer.arrayHead(3);
  writer.text(actor.type);
  writer.text(actor.id);
  if (actor.codeHash === null) writer.nil();
  else writer.bytes(actor.codeHash);
}

/** Writes what the leaf's body and the client's statement have in common, from `id` to `call`. */
function writeNames(writer: CborWriter, body: LeafBody): void {
  writeOptionalText(writer, body.session);
  writeOptionalText(writer, body.run);
  writeOptionalText(writer, body.step);
  writeOptionalText(writer, body.call);
}

/** The encoded members from `occurred_at` to `client`, without an array head; in the slab if one is given. */
export function encodeLeafBody(body: LeafBody, slab?: Slab): Uint8Array {
  const writer = new CborWriter(512);
  if (body.occurredAt === null) writer.nil();
  else writer.uint(body.occurredAt);
  writer.text(body.id);
  writer.text(body.kind);
  writeNames(writer, body);
  writeActor(writer, body.actor);
  writer.arrayHead(2);
  writer.bytes(body.submitter.credential);
  writer.text(body.submitter.reporter);
  writeCommitments(writer, body.action);
  writeTagged(writer, body.authorization);
  writeTagged(writer, body.outcome);
  if (body.client === null) writer.nil();
  else {
    writer.arrayHead(2);
    writer.bytes(body.client.key);
    writer.bytes(body.client.signature);
  }
  return writer.finish(slab);
}

/** Bytes that a log adds around a body, at most: head, tag, id, seq, prev, time, epoch, key. */
export const LEAF_OVERHEAD_BYTES = 160;

const BSTR_32 = 0x58;

/**
 * Encodes the leaves of one log one after the other, with what is fixed for all of them encoded once. They lie in slabs (see
 * slab.ts): who keeps one for long takes a copy.
 */
export class LeafSealer {
  /** The byte that RFC 6962 hashes in front of a leaf, and what every leaf begins with. */
  readonly #head: Uint8Array;
  readonly #tail: Uint8Array;
  readonly #slab = new Slab();
  /** The time that was encoded last: a commit has one for all its entries. */
  #time: { readonly value: bigint; readonly encoded: Uint8Array } | null = null;

  constructor(fixed: Pick<LeafPosition, "logId" | "epoch" | "key">) {
    const head = new CborWriter(64);
    head.raw(Uint8Array.of(LEAF_PREFIX));
    head.arrayHead(LEAF_MEMBERS);
    head.text(ENTRY_TAG);
    head.bytes(fixed.logId);
    this.#head = head.finish();
    const tail = new CborWriter(64);
    tail.uint(fixed.epoch);
    tail.bytes(fixed.key);
    this.#tail = tail.finish();
  }

  /** The leaf's bytes. */
  seal(seq: number, prev: Uint8Array, recordedAt: bigint, body: Uint8Array): Uint8Array {
    return this.hashed(seq, prev, recordedAt, body).subarray(1);
  }

  /** What a leaf's hash is taken of: the byte 0x00, and the leaf. */
  hashed(seq: number, prev: Uint8Array, recordedAt: bigint, body: Uint8Array): Uint8Array {
    const time = this.#timeOf(recordedAt);
    const head = this.#head;
    const tail = this.#tail;
    const fixed = head.length + 2 + HASH_BYTES + time.length + tail.length;
    const out = this.#slab.take(fixed + uintBytes(seq) + body.length);
    out.set(head);
    let at = writeUint(out, head.length, seq);
    out[at] = BSTR_32;
    out[at + 1] = HASH_BYTES;
    out.set(prev, at + 2);
    at += 2 + HASH_BYTES;
    out.set(time, at);
    at += time.length;
    out.set(body, at);
    at += body.length;
    out.set(tail, at);
    return out;
  }

  #timeOf(value: bigint): Uint8Array {
    if (this.#time?.value !== value) this.#time = { value, encoded: new CborWriter(16).uint(value).finish() };
    return this.#time.encoded;
  }
}

/** Bytes of a safe integer from 0 as CBOR writes it, the shortest way. */
function uintBytes(value: number): number {
  if (value < 24) return 1;
  return value < 0x100 ? 2 : value < 0x1_0000 ? 3 : value < 0x1_0000_0000 ? 5 : 9;
}

/** Writes it; answers where it ends. */
function writeUint(out: Uint8Array, at: number, value: number): number {
  const bytes = uintBytes(value) - 1;
  if (bytes === 0) {
    out[at] = value;
    return at + 1;
  }
  out[at] = 0x18 + Math.log2(bytes);
  let rest = value;
  for (let i = bytes; i > 0; i--) {
    out[at + i] = rest % 0x100;
    rest = Math.floor(rest / 0x100);
  }
  return at + 1 + bytes;
}

/** The leaf's bytes, for one leaf alone. */
export function encodeLeaf(leaf: Leaf): Uint8Array {
  return new LeafSealer(leaf).seal(leaf.seq, leaf.prev, leaf.recordedAt, encodeLeafBody(leaf));
}

export const STATEMENT_TAG = "runseal.statement.v1";

/**
 * The client's statement: what a key with role `client` signs (through `signedMessage`), so that authorship is
 * provable without disclosing any value. See docs/format.md, `runseal.statement.v1`.
 */
export function encodeStatement(logId: Uint8Array, body: LeafBody): Uint8Array {
  const writer = new CborWriter(512);
  writer.arrayHead(13);
  writer.text(STATEMENT_TAG);
  writer.bytes(logId);
  writer.text(body.id);
  writer.text(body.kind);
  if (body.occurredAt === null) writer.nil();
  else writer.uint(body.occurredAt);
  writeNames(writer, body);
  writeActor(writer, body.actor);
  writeCommitments(writer, body.action);
  writeTagged(writer, body.authorization);
  writeTagged(writer, body.outcome);
  return writer.finish();
}

/** The commitments of one section of a leaf; an empty map where the section is absent. */
export function sectionCommitments(leaf: LeafBody, section: SectionName): Commitments {
  if (section === "action") return leaf.action;
  return leaf[section]?.fields ?? new Map();
}
