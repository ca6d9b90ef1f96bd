/**
 * A second verifier of bundles, written from docs/format.md alone: where the two disagree, the page or one of them is
 * wrong. It collects the issues that section 13 prescribes, and keeps every hash in memory, which is simpler.
 *
 * @module
 */
import type { Known, SecondWitness } from "./second-anchors.ts";
import { openNote, SecondAnchors } from "./second-anchors.ts";
import type { SecondHead, SecondLeaf } from "./second-formats.ts";
import {
  base64,
  cbor,
  hex,
  Malformed,
  readLeaf,
  readNote,
  SecondRegistry,
  same,
  sha256,
  signed,
  Unsupported,
  verify,
} from "./second-formats.ts";
import type { Line } from "./second-lines.ts";
import { NoJson, readLine, stageOf } from "./second-lines.ts";

export interface Given {
  registryId?: string;
  checkpoint?: string;
  keptHead?: { seq: number; hash: string };
  witnessKeys?: SecondWitness[];
}
export interface SecondReport {
  verdict: "intact" | "broken" | "unsupported";
  issues: { seq: number; code: string }[];
}

const ORIGIN = /^([A-Za-z0-9][A-Za-z0-9.:-]{0,252}\/t\/[0-9a-f]{32})\/p\/([0-9a-f]{32})\.([1-9][0-9]{0,8})$/;

/** Section 7. */
function root(leaves: Uint8Array[]): Uint8Array {
  const [one] = leaves;
  if (one === undefined) return sha256();
  if (leaves.length === 1) return one;
  let k = 1;
  while (2 * k < leaves.length) k *= 2;
  return sha256(Uint8Array.of(1), root(leaves.slice(0, k)), root(leaves.slice(k)));
}

const bytesOf = (text: string): Uint8Array => {
  const bytes = base64(text);
  if (bytes === null) throw new Malformed("no base64");
  return bytes;
};

class Second {
  readonly issues: { seq: number; code: string }[] = [];
  readonly registry = new SecondRegistry();
  readonly #given: Given;
  #header: Line = null;
  #stage = 0;
  #logId: Uint8Array | null = null;
  #next = 1;
  #prev: Uint8Array | null = null;
  #missing: [number, number] = [0, 0];
  #hashes: Uint8Array[] = [];
  #gap = false;
  #gapAt = 0;
  #lastEpoch = -1n;
  #lastTime = -1n;
  #headEpoch: bigint | null = null;
  #entry: { seq: number; leaf: SecondLeaf | null; isHash: boolean; seen: string[] } | null = null;
  #checkpoint: string | null = null;
  #anchors = new SecondAnchors();
  #records: Known["records"] = [];
  #kept: { found: string | null; hashes: number } = { found: null, hashes: 0 };

  constructor(given: Given) {
    this.#given = given;
  }

  #issue(code: string, seq: number): void {
    this.issues.push({ seq, code });
  }

  line(text: string): void {
    const line = readLine(text, this.#header === null);
    if (this.#header === null) {
      if (!ORIGIN.test(line.origin) || line.from > line.to + 1) throw new Malformed("line 1");
      this.#header = line;
      return;
    }
    const stage = stageOf(line.t);
    if (stage < this.#stage || (line.t === "checkpoint" && this.#checkpoint !== null))
      throw new Malformed("order");
    this.#stage = stage;
    if (stage > 0) this.#begin();
    if (line.t === "registry") this.#record(line);
    else if (line.t === "leaf") this.#leaf(line);
    else if (line.t === "hash") {
      this.#entry = { seq: line.seq, leaf: null, isHash: true, seen: [] };
      const h = new Uint8Array(Buffer.from(line.hash, "hex"));
      if (this.#place(line.seq, h)) this.#advance(line.seq, h, true);
    } else if (line.t === "content" || line.t === "disclosure") this.#fields(line);
    else if (line.t === "checkpoint") this.#checkpoint = line.checkpoint;
    else this.#anchors.take(line);
  }

  #record(line: Line): void {
    const bytes = bytesOf(line.record);
    const code = this.registry.records === 0 ? "invalid-genesis" : "invalid-registry";
    if (line.epoch !== this.registry.records) {
      this.#issue(code, 0);
      return;
    }
    try {
      const before = this.registry.active(1);
      this.registry.add(bytes, line.signatures);
      const after = this.registry.active(1);
      this.#records.push({ bytes, retires: before.filter((key) => !after.includes(key)) });
    } catch (error) {
      if (error instanceof Unsupported) throw error;
      this.#issue(code, 0);
    }
  }

  #begin(): void {
    if (this.#logId !== null) return;
    if (this.registry.records === 0) throw new Malformed("no registry");
    const id = hex(this.registry.id);
    const [, tenant = "", principal = "", generation = ""] = ORIGIN.exec(this.#header.origin) ?? [];
    if (id !== this.#header.registry_id) this.#issue("invalid-genesis", 0);
    if (this.#given.registryId !== undefined && id !== this.#given.registryId)
      this.#issue("invalid-genesis", 0);
    if (this.registry.origin !== tenant) this.#issue("log-id-mismatch", 0);
    const principalId = new Uint8Array(Buffer.from(principal, "hex"));
    this.#logId = sha256(cbor(["runseal.log.v1", this.registry.id, principalId, Number(generation)]));
    this.#prev = this.#logId;
  }

  #place(seq: number, h: Uint8Array): boolean {
    if (seq > this.#next) {
      this.#issue("sequence-gap", seq);
      this.#missing = [this.#next, seq - 1];
      if (!this.#gap) this.#gapAt = this.#next;
      this.#gap = true;
      this.#prev = null;
      this.#next = seq;
    } else if (seq < this.#next) {
      const inMissing = seq >= this.#missing[0] && seq <= this.#missing[1];
      const forked = seq === this.#next - 1 && this.#prev !== null && !same(h, this.#prev);
      this.#issue(inMissing ? "sequence-gap" : forked ? "forked-entry" : "duplicate-entry", seq);
      return false;
    }
    return true;
  }

  #advance(seq: number, h: Uint8Array, isHash: boolean): void {
    this.#prev = h;
    this.#hashes.push(h);
    this.#next += 1;
    const kept = this.#given.keptHead;
    if (kept !== undefined && seq <= kept.seq && isHash) this.#kept.hashes += 1;
    if (kept?.seq === seq) this.#kept.found = hex(h);
  }

  #leaf(line: Line): void {
    const { seq } = line;
    if (seq === this.#next && (seq < this.#header.from || seq > this.#header.to))
      throw new Malformed("range");
    const bytes = bytesOf(line.leaf);
    const h = sha256(Uint8Array.of(0), bytes);
    this.#entry = { seq, leaf: null, isHash: false, seen: [] };
    if (!this.#place(seq, h)) return;
    let good = hex(h) === line.hash;
    if (!good) this.#issue("altered-entry", seq);
    let leaf: SecondLeaf | null = null;
    try {
      leaf = readLeaf(bytes);
    } catch (error) {
      this.#issue(error instanceof Unsupported ? "unsupported-entry" : "malformed-entry", seq);
      good = false;
    }
    if (good && leaf !== null) {
      this.#checkLeaf(seq, leaf);
      this.#entry.leaf = leaf;
      this.#headEpoch = leaf.epoch;
    }
    this.#advance(seq, h, false);
  }

  #checkLeaf(seq: number, leaf: SecondLeaf): void {
    const { items } = leaf;
    const logId = items[1] as Uint8Array;
    if (!same(logId, this.#logId ?? new Uint8Array())) this.#issue("log-id-mismatch", seq);
    if (leaf.seq !== BigInt(seq)) this.#issue("altered-entry", seq);
    else if (this.#prev !== null && !same(items[3] as Uint8Array, this.#prev))
      this.#issue("broken-link", seq);
    if (leaf.epoch < this.#lastEpoch) this.#issue("epoch-regression", seq);
    if (leaf.recordedAt < this.#lastTime) this.#issue("time-regression", seq);
    this.#lastEpoch = leaf.epoch;
    this.#lastTime = leaf.recordedAt;
    if (!this.registry.holds(1, items[19] as Uint8Array, leaf.epoch)) this.#issue("unregistered-key", seq);
    if (items[17] === null) return;
    const [key, signature] = items[17] as [Uint8Array, Uint8Array];
    if (!this.registry.holds(3, key, leaf.epoch)) {
      this.#issue("unregistered-key", seq);
      return;
    }
    const [
      ,
      ,
      ,
      ,
      ,
      occurredAt = null,
      id = null,
      kind = null,
      session = null,
      run = null,
      step = null,
      call = null,
      actor = null,
    ] = items;
    const [action = null, authorization = null, outcome = null] = items.slice(14, 17);
    const statement = [
      "runseal.statement.v1",
      this.#logId,
      id,
      kind,
      occurredAt,
      session,
      run,
      step,
      call,
      actor,
      action,
      authorization,
      outcome,
    ];
    if (!verify(key, signed("client", sha256(cbor(statement))), signature))
      this.#issue("invalid-signature", seq);
  }

  #fields(line: Line): void {
    const entry = this.#entry;
    if (entry === null || entry.seq !== line.seq || entry.isHash)
      throw new Malformed("values without their leaf");
    if (entry.seen.includes("disclosure") || entry.seen.includes(line.t))
      throw new Malformed("values out of order");
    entry.seen.push(line.t);
    for (const { section, name } of line.fields) {
      if (entry.seen.includes(`${section}/${name}`)) throw new Malformed("a field twice");
      entry.seen.push(`${section}/${name}`);
    }
    const { leaf } = entry;
    if (leaf === null) return;
    const altered = line.fields.some(({ section, name, salt, text }: Record<string, string>) => {
      const opened = sha256(
        cbor([
          "runseal.field.v1",
          section ?? "",
          name ?? "",
          new Uint8Array(Buffer.from(salt ?? "", "hex")),
          text ?? "",
        ]),
      );
      const committed = leaf.fields.get(`${section}/${name}`);
      return committed === undefined || !same(committed, opened);
    });
    if (altered) this.#issue("altered-content", line.seq);
  }

  /** Section 11: the code of what is wrong with a head, or the head and whether a signer still holds audit. */
  #open(
    note: string,
    epoch: bigint | null,
  ): string | (SecondHead & { current: boolean; counting: string[] }) {
    const { origin } = this.#header;
    const audit = this.registry.held.filter(({ role }) => role === 1);
    const head = openNote(
      note,
      origin,
      audit.map(({ key }) => new Uint8Array(Buffer.from(key, "hex"))),
    );
    if (typeof head === "string") return head;
    const signers = new Set(head.signers);
    const last = this.registry.records - 1;
    const counting = this.registry.held.filter(
      (one) =>
        one.role === 1 &&
        signers.has(one.key) &&
        (epoch === null || BigInt(Math.min(one.until - 1, last)) >= epoch),
    );
    if (counting.length === 0) return "unregistered-key";
    const current = counting.some(({ until }) => until === Infinity);
    return { ...head, current, counting: counting.map(({ key }) => key) };
  }

  end(): void {
    this.#begin();
    const { checkpoint, keptHead } = this.#given;
    const walked = this.#next - 1;
    const keptSize = checkpoint === undefined ? null : readSize(checkpoint);
    const head = this.#checkpoint === null ? "truncated" : this.#open(this.#checkpoint, this.#headEpoch);
    const [, tenantOrigin = ""] = ORIGIN.exec(this.#header.origin) ?? [];
    const anchors = this.#anchors.judge({
      registry: this.registry,
      records: this.#records,
      host: tenantOrigin.split("/")[0] ?? "",
      tenantOrigin,
      logId: this.#logId ?? new Uint8Array(),
      head: typeof head === "string" ? null : head,
      witnesses: this.#given.witnessKeys ?? [],
    });
    if (typeof head === "string") this.#issue(head, head === "truncated" ? this.#next : walked);
    else {
      if (head.size > walked) this.#issue("truncated", this.#next);
      else if (head.size < walked) this.#issue("forked-entry", head.size + 1);
      else if (!this.#gap && !same(root(this.#hashes), head.root)) this.#issue("root-mismatch", head.size);
      if (this.#header.to > head.size) this.#issue("truncated", head.size);
      if (!head.current && keptSize !== head.size && !head.counting.some(anchors.before))
        this.#issue("unregistered-key", head.size);
    }
    if (checkpoint !== undefined) {
      const kept = this.#open(checkpoint, null);
      if (typeof kept === "string") this.#issue(kept, 0);
      else if (kept.size > (this.#gap ? this.#gapAt - 1 : walked)) this.#issue("truncated", kept.size);
      else if (!same(root(this.#hashes.slice(0, kept.size)), kept.root))
        this.#issue("kept-head-mismatch", kept.size);
    }
    if (keptHead !== undefined) {
      const { found, hashes } = this.#kept;
      if (found === null) this.#issue("truncated", keptHead.seq);
      else if (found !== keptHead.hash) this.#issue("kept-head-mismatch", keptHead.seq);
      else if (hashes > 0) this.#issue("truncated", keptHead.seq);
    }
    for (const { code, seq } of anchors.issues) this.#issue(code, seq);
  }

  unreadable(error: unknown, cut: boolean): void {
    if (!(error instanceof Malformed || error instanceof Unsupported)) throw error;
    const code =
      error instanceof Unsupported
        ? "unsupported-entry"
        : cut && error instanceof NoJson
          ? "truncated"
          : "malformed-entry";
    this.#issue(code, this.#logId === null ? 0 : this.#next);
  }
}

function readSize(note: string): number | null {
  try {
    return readNote(note).size;
  } catch {
    return null;
  }
}

/** Verifies a bundle's lines. */
export function secondVerify(lines: readonly string[], given: Given): SecondReport {
  const second = new Second(given);
  const real = lines.filter((line) => !/^[ \t\r]*$/.test(line));
  let at = 0;
  try {
    if (real.length === 0) throw new Malformed("empty");
    for (; at < real.length; at++) second.line(real[at] ?? "");
    second.end();
  } catch (error) {
    second.unreadable(error, at === real.length - 1 && !/\}[ \t\r]*$/.test(real[at] ?? ""));
  }
  const { issues } = second;
  const broken = issues.some(({ code }) => code !== "unsupported-entry");
  return {
    verdict: issues.length === 0 ? "intact" : broken ? "broken" : "unsupported",
    issues: issues.slice(0, 1024),
  };
}
