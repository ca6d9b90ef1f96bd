/**
 * Leaves, registry records and notes for the second verifier, written from docs/format.md alone, over cborg and
 * node:crypto. Nothing of shared/ is used, on purpose.
 *
 * @module
 */
import crypto from "node:crypto";
import { decode, encode, rfc8949EncodeOptions } from "cborg";

export type Item = null | boolean | number | bigint | string | Uint8Array | Item[] | Map<Item, Item>;

export const sha256 = (...parts: Uint8Array[]): Uint8Array => {
  const hash = crypto.createHash("sha256");
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
};
export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;
export const cbor = (item: Item): Uint8Array => new Uint8Array(encode(item, rfc8949EncodeOptions));

/** Section 1: base64; null for any other form. */
export function base64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? new Uint8Array(bytes) : null;
}

export class Unsupported extends Error {}
export class Malformed extends Error {}

function check(holds: unknown): asserts holds {
  if (!holds) throw new Malformed("not as the format says");
}

const isFloat = (item: Item) => typeof item === "number" && !Number.isInteger(item);

function depth(item: Item): number {
  if (item instanceof Map) return 1 + Math.max(0, ...[...item].flat().map(depth));
  return Array.isArray(item) ? 1 + Math.max(0, ...item.map(depth)) : 0;
}

/** Section 2: an array that begins with the text. */
function tagged(bytes: Uint8Array, tag: string): Item[] {
  let item: Item;
  try {
    item = decode(bytes, {
      strict: true,
      useMaps: true,
      allowIndefinite: false,
      allowUndefined: false,
      rejectDuplicateMapKeys: true,
    }) as Item;
  } catch {
    throw new Malformed("no CBOR");
  }
  check(Array.isArray(item) && typeof item[0] === "string");
  // cborg lets other things pass (UTF-8 that is none, keys out of order); floating-point numbers it writes its own way.
  const floats = item.some(isFloat);
  check(depth(item) <= 64 && (floats || same(cbor(item), bytes)));
  if (item[0] !== tag) throw new Unsupported("another version");
  check(!floats);
  return item;
}

/** The text that a list of heads or a registry record begins with. */
export function readTag(bytes: Uint8Array): string {
  try {
    tagged(bytes, "runseal.heads.v1");
    return "runseal.heads.v1";
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error;
  }
  tagged(bytes, "runseal.registry.v1");
  return "runseal.registry.v1";
}

const uint = (item: Item | undefined, least = 0n, most = 2n ** 53n - 1n): bigint => {
  // Larger than that, cborg gives integers as bigints and floating-point numbers as numbers.
  check((typeof item === "number" && Number.isSafeInteger(item)) || typeof item === "bigint");
  check(BigInt(item) >= least && BigInt(item) <= most);
  return BigInt(item);
};
const time = (item: Item | undefined): bigint => uint(item, 0n, 2n ** 64n - 1n);
const raw = (item: Item | undefined, length: number): Uint8Array => {
  check(item instanceof Uint8Array && item.length === length);
  return item;
};
const text = (item: Item | undefined, pattern: RegExp): string => {
  check(typeof item === "string" && pattern.test(item));
  return item;
};
const list = (item: Item | undefined, length: number): Item[] => {
  check(Array.isArray(item) && item.length === length);
  return item;
};
const OPAQUE = /^[A-Za-z0-9._:-]{1,128}$/;
const FIELD = /^[a-z0-9_.]{1,64}$/;

export interface SecondLeaf {
  items: Item[];
  seq: bigint;
  recordedAt: bigint;
  epoch: bigint;
  fields: Map<string, Uint8Array>;
}

/** Section 6. */
export function readLeaf(bytes: Uint8Array): SecondLeaf {
  const items = tagged(bytes, "runseal.entry.v1");
  check(items.length === 20 && bytes.length <= 16_384);
  raw(items[1], 32);
  raw(items[3], 32);
  if (items[5] !== null) time(items[5]);
  text(items[6], OPAQUE);
  check(text(items[7], /^[a-z0-9_]+(?:\.[A-Za-z0-9_-]+)+$/).length <= 128);
  for (const item of items.slice(8, 12)) if (item !== null) text(item, OPAQUE);
  if (items[12] !== null) {
    const [type, id, codeHash] = list(items[12], 3);
    text(type, OPAQUE);
    text(id, OPAQUE);
    if (codeHash !== null) raw(codeHash, 32);
  }
  const [credential, reporter] = list(items[13], 2);
  raw(credential, 16);
  text(reporter, /^(?:agent|host|service|import)$/);
  const fields = new Map<string, Uint8Array>();
  const map = (section: string, item: Item | undefined) => {
    check(item instanceof Map);
    for (const [name, commitment] of item) fields.set(`${section}/${text(name, FIELD)}`, raw(commitment, 32));
  };
  map("action", items[14]);
  for (const [section, item] of [
    ["authorization", items[15]],
    ["outcome", items[16]],
  ] as const) {
    if (item === null) continue;
    const [tag, commitments] = list(item, 2);
    text(tag, FIELD);
    map(section, commitments);
  }
  check(fields.size <= 128);
  if (items[17] !== null) {
    const [key, signature] = list(items[17], 2);
    raw(key, 32);
    raw(signature, 64);
  }
  raw(items[19], 32);
  return { items, seq: uint(items[2], 1n), recordedAt: time(items[4]), epoch: uint(items[18]), fields };
}

export interface SecondHeads {
  registryId: Uint8Array;
  heads: { logId: Uint8Array; size: number; root: Uint8Array }[];
}

/** Section 14. */
export function readHeads(bytes: Uint8Array): SecondHeads {
  const items = tagged(bytes, "runseal.heads.v1");
  check(items.length === 5);
  const registryId = raw(items[1], 32);
  uint(items[2], 1n);
  time(items[3]);
  const all = items[4];
  check(Array.isArray(all) && all.length >= 1 && all.length <= 700);
  const heads = all.map((one) => {
    const [logId, size, root, epoch] = list(one, 4);
    uint(epoch);
    return { logId: raw(logId, 32), size: Number(uint(size, 1n)), root: raw(root, 32) };
  });
  check(heads.every(({ logId }, i) => i === 0 || hex(logId) > hex(heads[i - 1]?.logId ?? new Uint8Array())));
  return { registryId, heads };
}

const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

function smallOrder(point: Uint8Array): boolean {
  const y = Uint8Array.from(point);
  y[31] = (y[31] ?? 0) & 0x7f;
  return SMALL_ORDER.includes(hex(y));
}

/** Section 8. Node's library compares R without the cofactor and demands S < L. */
export function verify(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.length !== 32 || signature.length !== 64 || smallOrder(key) || smallOrder(signature.slice(0, 32)))
    return false;
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
  try {
    return crypto.verify(
      null,
      message,
      crypto.createPublicKey({ key: der, format: "der", type: "spki" }),
      signature,
    );
  } catch {
    return false;
  }
}

export const signed = (purpose: string, hash: Uint8Array): Uint8Array =>
  cbor(["runseal.sig.v1", purpose, hash]);

interface Held {
  role: number;
  key: string;
  from: number;
  until: number;
}

/** Section 9. */
export class SecondRegistry {
  readonly held: Held[] = [];
  records = 0;
  origin = "";
  id: Uint8Array = new Uint8Array();
  #last: Uint8Array = new Uint8Array(32);

  active(role: number): string[] {
    return this.held.filter((one) => one.role === role && one.until === Infinity).map(({ key }) => key);
  }

  holds(role: number, key: Uint8Array, epoch: bigint): boolean {
    return this.held.some(
      (one) =>
        one.role === role &&
        one.key === hex(key) &&
        epoch < this.records &&
        one.from <= epoch &&
        epoch < one.until,
    );
  }

  add(bytes: Uint8Array, signatures: { key: string; signature: string }[]): void {
    const items = tagged(bytes, "runseal.registry.v1");
    const op = Number(uint(items[4], 0n, 4n));
    check(items.length === (op === 0 ? 9 : 7) && uint(items[1]) === BigInt(this.records));
    check(same(raw(items[2], 32), this.#last) && (op === 0) === (this.records === 0));
    time(items[3]);
    const bindings = (item: Item | undefined) => {
      check(Array.isArray(item));
      const all = item.map((one) => {
        const [role, key] = list(one, 2);
        return { role: Number(uint(role, 1n, 7n)), key: hex(raw(key, 32)) };
      });
      const order = all.map(({ role, key }) => `${role}${key}`);
      check(order.every((one, i) => i === 0 || one > (order[i - 1] ?? "")));
      return all;
    };
    const add = bindings(items[5]);
    const retire = bindings(items[6]);
    const keys = add.map(({ key }) => key);
    check(
      keys.every((key) => !smallOrder(Buffer.from(key, "hex")) && !this.held.some((one) => one.key === key)),
    );
    check(
      new Set(keys).size === keys.length && retire.every(({ role, key }) => this.active(role).includes(key)),
    );
    const signers = [...keys];
    if (op === 0) {
      check(
        retire.length === 0 &&
          new Set(add.map(({ role }) => role)).size === add.length &&
          add.some(({ role }) => role === 1),
      );
      check(typeof items[7] === "string");
      raw(items[8], 16);
    } else if (op === 1 || op === 4) {
      check(
        add.length === 1 &&
          retire.length === 1 &&
          add[0]?.role === retire[0]?.role &&
          (add[0]?.role ?? 9) <= 2,
      );
      const other =
        op === 1 ? retire[0]?.key : this.held.find((one) => one.role === 7 && one.from === 0)?.key;
      check(other !== undefined);
      signers.push(other);
    } else {
      const [binding, ...more] = [...add, ...retire];
      check(add.length === (op === 2 ? 1 : 0) && more.length === 0 && binding !== undefined);
      check(binding.role >= 3 && binding.role <= 6);
      signers.push(...this.active(1));
    }
    const hash = sha256(bytes);
    check(JSON.stringify(signatures.map(({ key }) => key)) === JSON.stringify(signers.sort()));
    for (const { key, signature } of signatures) {
      check(verify(Buffer.from(key, "hex"), signed("registry", hash), Buffer.from(signature, "hex")));
    }
    const epoch = this.records;
    for (const one of this.held)
      if (retire.some(({ role, key }) => role === one.role && key === one.key)) one.until = epoch;
    this.held.push(...add.map((one) => ({ ...one, from: epoch, until: Infinity })));
    if (op === 0) {
      this.id = hash;
      this.origin = String(items[7]);
    }
    this.#last = hash;
    this.records += 1;
  }
}

export interface SecondHead {
  origin: string;
  size: number;
  root: Uint8Array;
  text: string;
  lines: { name: string; keyId: string; signature: Uint8Array }[];
}

/** Section 11: the note taken apart. */
export function readNote(note: string): SecondHead {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the format refuses them
  check(note.length <= 1_000_000 && !/[\u0000-\u0009\u000b-\u001f]/.test(note) && note.endsWith("\n"));
  const border = note.lastIndexOf("\n\n");
  check(border >= 0);
  const body = note.slice(0, border + 1);
  const lines = note.slice(border + 2, -1).split("\n");
  check(lines.length <= 100);
  const parsed = lines.map((line) => {
    const [dash, name, bytes, ...more] = line.split(" ");
    check(dash === "\u2014" && name !== undefined && bytes !== undefined && more.length === 0);
    check(name !== "" && !/[\p{White_Space}+]/u.test(name));
    const material = base64(bytes);
    check(material !== null && material.length >= 5);
    return { name, keyId: hex(material.slice(0, 4)), signature: material.slice(4) };
  });
  const [origin = "", size = "", root = "", ...extensions] = body.slice(0, -1).split("\n");
  const rootBytes = base64(root);
  check(origin !== "" && /^(?:0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(Number(size)));
  check(rootBytes?.length === 32 && extensions.every((line) => line !== ""));
  return { origin, size: Number(size), root: rootBytes, text: body, lines: parsed };
}
