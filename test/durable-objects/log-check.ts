/**
 * What must hold of a log after anything that was done to it: it verifies, stored and exported; its numbers have no gap;
 * and everything that was acknowledged is in it once, under its number. Runs in workerd and in Node.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64, fromHex } from "../../shared/bytes.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { verifyConsistency } from "../../shared/merkle/verify.ts";
import { parseCheckpoint } from "../../shared/note/checkpoint.ts";
import { BundleVerifier } from "../../shared/verify/bundle.ts";

/** A GET with a key that may read and verify. */
export type Get = (path: string) => Promise<{ readonly status: number; readonly text: string }>;

export interface Receipt {
  readonly id: string;
  readonly seq: number;
  readonly hash: string;
}

/** A head that somebody was given. */
export interface SeenHead {
  readonly size: number;
  readonly root: string;
  readonly checkpoint: string;
}

interface AnswerBody {
  readonly results?: readonly { id?: string; seq?: number; hash?: string; error?: unknown }[];
  readonly head?: { size: number; root: string; checkpoint: string };
}

/** What a client was told: receipts that must stay true, and heads that must stay prefixes. */
export class Told {
  readonly receipts = new Map<string, Receipt>();
  readonly heads = new Map<number, SeenHead>();

  /** Takes over an append's answer. Throws where it contradicts an earlier one. */
  take(text: string): void {
    const { results = [], head } = JSON.parse(text) as AnswerBody;
    for (const { id, seq, hash, error } of results) {
      if (error !== undefined || id === undefined || seq === undefined || hash === undefined) continue;
      const before = this.receipts.get(id);
      if (before !== undefined && (before.seq !== seq || before.hash !== hash)) {
        throw new Error(`${id} has two receipts: ${before.seq} and ${seq}`);
      }
      this.receipts.set(id, { id, seq, hash });
    }
    if (head !== undefined) this.takeHead(head);
  }

  /** Takes over a head. Throws where another one of its size was seen. */
  takeHead({ size, root, checkpoint }: SeenHead): void {
    const before = this.heads.get(size);
    if (before !== undefined && before.root !== root) throw new Error(`two heads of size ${size}`);
    this.heads.set(size, { size, root, checkpoint });
  }
}

export interface CheckedLog {
  readonly size: number;
  /** Ids by sequence number, from 1. */
  readonly ids: readonly string[];
}

async function json<T>(get: Get, path: string): Promise<T> {
  const { status, text } = await get(path);
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as T;
}

/** Walks the stored log over HTTP, as far as it goes. */
async function walk(get: Get, log: string): Promise<number> {
  let checked = 0;
  for (let from: number | undefined = 1; from !== undefined; ) {
    const report: { verdict: string; checked: number; next?: number; break?: unknown } = await json(
      get,
      `${log}/verify?from=${from}`,
    );
    if (report.verdict !== "intact")
      throw new Error(`stored log: ${report.verdict} ${JSON.stringify(report.break)}`);
    checked += report.checked;
    from = report.next;
  }
  return checked;
}

/**
 * Verifies the log and compares it with what was told.
 *
 * @param log `/v1/principals/<name>`
 * @throws Error that says what does not hold
 */
export async function checkLog(get: Get, log: string, registryId: string, told: Told): Promise<CheckedLog> {
  // What is told from here on may come after the export.
  const receipts = [...told.receipts.values()];
  const checked = await walk(get, log);
  const bundle = await get(`${log}/export?content=false`);
  if (bundle.status !== 200) throw new Error(`export: ${bundle.status} ${bundle.text.slice(0, 300)}`);
  const verifier = new BundleVerifier(nativeCrypto, { registryId, verifiedBy: "test" });
  const ids: string[] = [];
  const hashes: string[] = [];
  for (const line of bundle.text.split("\n")) {
    verifier.line(line);
    if (!line.startsWith('{"t":"leaf"')) continue;
    const { seq, leaf, hash } = JSON.parse(line) as { seq: number; leaf: string; hash: string };
    if (seq !== ids.length + 1) throw new Error(`entry ${seq} follows entry ${ids.length}`);
    ids.push(decodeLeaf(fromBase64(leaf)).id);
    hashes.push(hash);
  }
  const report = verifier.finish();
  if (report.verdict !== "intact" || report.pinned !== true)
    throw new Error(`bundle: ${JSON.stringify(report)}`);
  if (report.head?.size !== ids.length)
    throw new Error(`the head has ${report.head?.size} entries, the export ${ids.length}`);
  if (checked > ids.length) throw new Error(`${checked} entries walked, ${ids.length} exported`);
  if (new Set(ids).size !== ids.length) {
    throw new Error(`ids that are stored twice: ${ids.filter((id, i) => ids.indexOf(id) !== i).slice(0, 5)}`);
  }
  for (const { id, seq, hash } of receipts) {
    if (ids[seq - 1] !== id)
      throw new Error(`${id} was acknowledged as ${seq}, where ${ids[seq - 1] ?? "nothing"} is`);
    if (hashes[seq - 1] !== hash) throw new Error(`entry ${seq} has another hash than its receipt`);
  }
  return { size: ids.length, ids };
}

/** Checks by consistency proofs that every head that was seen is a prefix of the log as it is now. */
export async function checkHeads(
  get: Get,
  log: string,
  told: Told,
  atMost = Number.POSITIVE_INFINITY,
): Promise<number> {
  const heads = [...told.heads.values()].sort((a, b) => a.size - b.size);
  const step = Math.max(1, Math.ceil(heads.length / atMost));
  let checked = 0;
  for (let i = heads.length - 1; i >= 0; i -= step) {
    const seen = heads[i] as SeenHead;
    const signed = parseCheckpoint(seen.checkpoint).checkpoint;
    const proof = await json<{ path: string[]; to: number; head: { root: string } }>(
      get,
      `${log}/proof/consistency?from=${seen.size}`,
    );
    const check = verifyConsistency(
      nativeCrypto,
      signed.size,
      proof.to,
      proof.path.map((hash) => fromHex(hash)),
      signed.root,
      fromHex(proof.head.root),
    );
    if (!check.ok) throw new Error(`the head of size ${seen.size} is no prefix of the log: ${check.reason}`);
    checked += 1;
  }
  return checked;
}
