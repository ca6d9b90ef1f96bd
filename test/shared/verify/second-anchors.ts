/**
 * The `tenant` and `cosignature` lines for the second verifier, written from docs/format.md section 13 alone; proofs by
 * the algorithms of RFC 9162 sections 2.1.3.2 and 2.1.4.2.
 *
 * @module
 */
import type { SecondHead, SecondRegistry } from "./second-formats.ts";
import {
  base64,
  hex,
  Malformed,
  readHeads,
  readNote,
  readTag,
  same,
  sha256,
  Unsupported,
  verify,
} from "./second-formats.ts";
import type { Line } from "./second-lines.ts";

export interface SecondWitness {
  name: string;
  key: Uint8Array;
}

/** What the rest of the verifier knows when the last line was read. */
export interface Known {
  registry: SecondRegistry;
  /** Accepted records, and the audit keys (hex) that each retires. */
  records: { bytes: Uint8Array; retires: string[] }[];
  host: string;
  tenantOrigin: string;
  logId: Uint8Array;
  head: { size: number; root: Uint8Array } | null;
  witnesses: SecondWitness[];
}

type Found = { code: string; seq: number };
const node = (left: Uint8Array, right: Uint8Array) => sha256(Uint8Array.of(1), left, right);
const unhex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

/** RFC 9162 section 2.1.3.2. */
function included(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: Uint8Array[],
  root: Uint8Array,
): boolean {
  if (index >= size) return false;
  let [fn, sn, r] = [BigInt(index), BigInt(size) - 1n, leaf];
  for (const p of path) {
    if (sn === 0n) return false;
    if (fn % 2n === 1n || fn === sn) {
      r = node(p, r);
      while (fn % 2n === 0n && fn !== 0n) [fn, sn] = [fn / 2n, sn / 2n];
    } else r = node(r, p);
    [fn, sn] = [fn / 2n, sn / 2n];
  }
  return sn === 0n && same(r, root);
}

/** RFC 9162 section 2.1.4.2, for sizes from 1. */
function goesOn(m: number, n: number, path: Uint8Array[], old: Uint8Array, now: Uint8Array): boolean {
  if (m === n) return path.length === 0 && same(old, now);
  const proof = Number.isInteger(Math.log2(m)) && 2 ** Math.round(Math.log2(m)) === m ? [old, ...path] : path;
  const [first, ...rest] = proof;
  if (first === undefined || path.length === 0) return false;
  let [fn, sn, fr, sr] = [BigInt(m) - 1n, BigInt(n) - 1n, first, first];
  while (fn % 2n === 1n) [fn, sn] = [fn / 2n, sn / 2n];
  for (const c of rest) {
    if (sn === 0n) return false;
    if (fn % 2n === 1n || fn === sn) {
      [fr, sr] = [node(c, fr), node(c, sr)];
      while (fn % 2n === 0n && fn !== 0n) [fn, sn] = [fn / 2n, sn / 2n];
    } else sr = node(sr, c);
    [fn, sn] = [fn / 2n, sn / 2n];
  }
  return sn === 0n && same(fr, old) && same(sr, now);
}

const keyId = (name: string, type: number, key: Uint8Array) =>
  hex(sha256(Buffer.from(`${name}\n`), Uint8Array.of(type), key).slice(0, 4));

/** Opens a head under keys of its origin: the code of what is wrong, or the head and its signers. */
export function openNote(
  note: string,
  origin: string,
  keys: Uint8Array[],
): string | (SecondHead & { signers: string[] }) {
  let head: SecondHead;
  try {
    head = readNote(note);
  } catch {
    return "malformed-entry";
  }
  if (head.origin !== origin) return "log-id-mismatch";
  const signers: string[] = [];
  for (const key of keys) {
    const line = head.lines.find((one) => one.name === origin && one.keyId === keyId(origin, 1, key));
    if (line === undefined) continue;
    if (!verify(key, Buffer.from(head.text), line.signature)) return "invalid-signature";
    signers.push(hex(key));
  }
  return signers.length === 0 ? "unregistered-key" : { ...head, signers };
}

export class SecondAnchors {
  #tenant: Line[] = [];
  #cosignatures: Line[] = [];

  take(line: Line): void {
    if (base64(line.leaf) === null) throw new Malformed("no base64");
    const lines = line.t === "tenant" ? this.#tenant : this.#cosignatures;
    if (lines.length === 16) throw new Malformed("too many");
    if (line.t === "cosignature" && this.#tenant.length === 0) throw new Malformed("no tenant line");
    if (line.t === "tenant" && this.#tenant.some((one) => one.checkpoint !== line.checkpoint))
      throw new Malformed("two heads");
    lines.push(line);
  }

  judge(known: Known): { issues: Found[]; before: (key: string) => boolean } {
    const issues: Found[] = [];
    const lists: { index: number; size: number; root: Uint8Array }[] = [];
    const records = new Map<number, number>();
    if (this.#tenant.length === 0) return { issues, before: () => false };
    const logKeys = known.registry.held.filter(({ role }) => role === 2);
    const log = openNote(
      this.#tenant[0].checkpoint,
      known.tenantOrigin,
      logKeys.map(({ key }) => unhex(key)),
    );
    if (typeof log === "string") return { issues: [{ code: log, seq: 0 }], before: () => false };
    for (const line of this.#tenant) {
      const found = this.#tenantLine(known, log, line, lists, records);
      if (found !== null) issues.push(found);
    }
    for (const line of this.#cosignatures) {
      const code = this.#cosignature(known, log, line);
      if (code !== null) issues.push({ code, seq: 0 });
    }
    const current = logKeys.some(({ key, until }) => until === Infinity && log.signers.includes(key));
    const before = (key: string): boolean => {
      const { head } = known;
      const at = records.get(known.records.findIndex(({ retires }) => retires.includes(key)));
      if (head === null || at === undefined || !current) return false;
      return lists.some(({ index, size, root }) => index < at && size === head.size && same(root, head.root));
    };
    return { issues, before };
  }

  #list(leaf: Uint8Array, registryId: Uint8Array, logId: Uint8Array) {
    const { registryId: found, heads } = readHeads(leaf);
    const head = heads.find((one) => same(one.logId, logId));
    return same(found, registryId) && head !== undefined ? head : null;
  }

  #tenantLine(
    known: Known,
    log: SecondHead,
    line: Line,
    lists: { index: number; size: number; root: Uint8Array }[],
    records: Map<number, number>,
  ): Found | null {
    const found = (code: string, seq = 0) => ({ code, seq });
    const leaf = base64(line.leaf) ?? new Uint8Array();
    const hash = sha256(Uint8Array.of(0), leaf);
    if (!included(line.index, log.size, hash, line.path.map(unhex), log.root)) return found("root-mismatch");
    try {
      const tag = readTag(leaf);
      if (tag === "runseal.registry.v1") {
        const epoch = known.records.findIndex(({ bytes }) => same(bytes, leaf));
        if (epoch < 0) return found("invalid-registry");
        if (line.consistency.length > 0) return found("malformed-entry");
        records.set(epoch, Math.min(line.index, records.get(epoch) ?? line.index));
        return null;
      }
      const listed = this.#list(leaf, known.registry.id, known.logId);
      if (listed === null) return found("log-id-mismatch");
      if (known.head !== null) {
        const { size, root } = known.head;
        if (listed.size > size) return found("truncated", size + 1);
        const path = line.consistency.map(unhex);
        if (!goesOn(listed.size, size, path, listed.root, root))
          return found("kept-head-mismatch", listed.size);
      }
      lists.push({ index: line.index, size: listed.size, root: listed.root });
      return null;
    } catch (error) {
      if (error instanceof Unsupported) return found("unsupported-entry");
      if (error instanceof Malformed) return found("malformed-entry");
      throw error;
    }
  }

  #cosignature(known: Known, log: SecondHead, line: Line): string | null {
    const [, name = "", id = "", material = ""] =
      /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(line.vkey) ?? [];
    const key = base64(material) ?? new Uint8Array();
    const isKey = name !== "" && !/\p{White_Space}/u.test(name) && key.length === 33 && key[0] === 1;
    if (!isKey || id !== keyId(name, 1, key.slice(1))) return "malformed-entry";
    if (name !== known.host) return "log-id-mismatch";
    const head = openNote(line.checkpoint, name, [key.slice(1)]);
    if (typeof head === "string") return head;
    const leaf = base64(line.leaf) ?? new Uint8Array();
    const hash = sha256(Uint8Array.of(0), leaf);
    if (!included(line.index, head.size, hash, line.path.map(unhex), head.root)) return "root-mismatch";
    try {
      const listed = this.#list(leaf, sha256(Buffer.from(line.vkey)), known.registry.id);
      if (listed === null) return "log-id-mismatch";
      if (listed.size > log.size) return "truncated";
      if (!goesOn(listed.size, log.size, line.consistency.map(unhex), listed.root, log.root))
        return "kept-head-mismatch";
    } catch (error) {
      if (error instanceof Unsupported) return "unsupported-entry";
      if (error instanceof Malformed) return "malformed-entry";
      throw error;
    }
    for (const witness of known.witnesses) {
      const one = head.lines.find(
        (signature) =>
          signature.name === witness.name && signature.keyId === keyId(witness.name, 4, witness.key),
      );
      if (one === undefined) continue;
      const time = one.signature.length === 72 ? Buffer.from(one.signature).readBigUInt64BE(0) : 2n ** 63n;
      const message = Buffer.from(`cosignature/v1\ntime ${time}\n${head.text}`);
      if (time >= 2n ** 63n || !verify(witness.key, message, one.signature.slice(8)))
        return "invalid-signature";
    }
    return null;
  }
}
