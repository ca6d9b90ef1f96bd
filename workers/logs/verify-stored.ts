/**
 * Verifies what D1 holds of a log: every leaf against the hash that the signed head proves for its place, every value
 * against its commitment, every index column against the leaf that it was taken from. Page by page, in bounded memory.
 *
 * @module
 */
import type { HeadView } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import type { VerifyReport } from "../../shared/api/schemas.ts";
import { equalBytes, fromBase64, fromHex, toHex } from "../../shared/bytes.ts";
import type { FieldOpening } from "../../shared/entry/commitment.ts";
import { splitSections } from "../../shared/entry/content.ts";
import type { Leaf } from "../../shared/entry/leaf.ts";
import { formatOrigin } from "../../shared/entry/log-id.ts";
import type { ScannedLeaf } from "../../shared/entry/scan-leaf.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RangeRoot } from "../../shared/merkle/range.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import type { KeptHead } from "../../shared/verify/bundle.ts";
import { checkCheckpoint } from "../../shared/verify/checkpoint.ts";
import { alteredField } from "../../shared/verify/content.ts";
import { breakOf, IssueList } from "../../shared/verify/issues.ts";
import { LogWalker } from "../../shared/verify/walk.ts";
import type { Env } from "../env.ts";
import { headOut } from "../http/head.ts";
import { Problem } from "../http/problem.ts";
import type { IndexedEntryRow } from "../index-db/entries.ts";
import { queryForVerify } from "../index-db/entries.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";
import { indexSession, logIdOf, requireIndexed } from "./read.ts";
import { registryChain } from "./registry.ts";

/** Entries that one request walks; the caller goes on at `next`. */
export const MAX_WALK = 5000;
const PAGE = 250;

export interface VerifyRange {
  readonly from: number;
  readonly to: number | undefined;
  readonly keptHead: KeptHead | undefined;
}

function chunks(joined: Uint8Array): Uint8Array[] {
  const out: Uint8Array[] = [];
  for (let at = 0; at < joined.length; at += 32) out.push(joined.subarray(at, at + 32));
  return out;
}

/** Values and salts of a row as openings. Throws `RunsealError("malformed-content")`. */
function openingsOf(row: IndexedEntryRow): FieldOpening[] {
  if (row.content === null || row.salts === null) return [];
  const salts = splitSections(row.salts);
  const out: FieldOpening[] = [];
  for (const [section, fields] of splitSections(row.content)) {
    for (const [name, text] of fields) {
      const salt = salts.get(section)?.get(name);
      if (salt === undefined) throw new RunsealError("malformed-content", "a value has lost its salt");
      out.push({ section, name, salt: fromHex(salt.slice(1, -1), 16), text });
    }
  }
  return out;
}

/** The first index column that does not say what the leaf and the values say; null where all do. */
function alteredColumn(row: IndexedEntryRow, leaf: Leaf, openings: readonly FieldOpening[]): string | null {
  const toolText = openings.find(({ section, name }) => section === "action" && name === "tool")?.text;
  const tool = toolText?.startsWith('"') && toolText.length <= 1024 ? (JSON.parse(toolText) as string) : null;
  const expected: readonly [string, string | null, string | null][] = [
    ["id", row.id, leaf.id],
    ["kind", row.kind, leaf.kind],
    ["session", row.session, leaf.session],
    ["run", row.run, leaf.run],
    ["step", row.step, leaf.step],
    ["call", row.call, leaf.call],
    ["status", row.status, leaf.outcome?.tag ?? null],
    ["recorded_at", row.recorded_at, String(leaf.recordedAt)],
    ["tool", row.tool, row.content === null ? row.tool : tool],
  ];
  return expected.find(([, found, wanted]) => found !== wanted)?.[0] ?? null;
}

function checkRow(row: IndexedEntryRow, leaf: ScannedLeaf, issues: IssueList): void {
  const add = (code: "altered-content" | "altered-index", detail: string): void => {
    issues.add({ seq: row.seq, code, detail, expected: null, found: null });
  };
  try {
    const openings = openingsOf(row);
    const field = alteredField(nativeCrypto, leaf, openings);
    if (field !== null)
      add("altered-content", `the stored value of ${field} is not the one that the leaf commits to`);
    const column = alteredColumn(row, leaf.decode(), openings);
    if (column !== null) add("altered-index", `the index column ${column} does not say what the leaf says`);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    add("altered-content", error.message);
  }
}

/** What a page of leaf hashes is worth: the head's signature, and that they are under its root. */
function checkEvidence(
  chain: RegistryChain,
  origin: string,
  evidence: { head: HeadView; begin: number; leaves: Uint8Array; left: Uint8Array; right: Uint8Array },
  issues: IssueList,
): boolean {
  const check = checkCheckpoint(nativeCrypto, chain, origin, evidence.head.checkpoint, evidence.head.epoch);
  if (!check.ok) {
    issues.add({
      seq: evidence.head.size,
      code: check.code,
      detail: check.detail,
      expected: null,
      found: null,
    });
    return false;
  }
  const range = new RangeRoot(nativeCrypto, evidence.begin, chunks(evidence.left));
  for (const hash of chunks(evidence.leaves)) range.add(hash);
  const root = range.root(check.checkpoint.size, chunks(evidence.right));
  if (equalBytes(root, check.checkpoint.root)) return true;
  issues.add({
    seq: evidence.begin + 1,
    code: "root-mismatch",
    detail: "the log's stored hashes do not give the signed root",
    expected: toHex(check.checkpoint.root),
    found: toHex(root),
  });
  return false;
}

/** Walks the range, or its first part, and reports. Throws 503 problems where a part is away. */
export async function verifyStored(env: Env, log: OpenLog, range: VerifyRange): Promise<VerifyReport> {
  const barrier = await log.stub.barrier(log.identity, log.epoch);
  // A D1 that contradicts the log is what verification is for; one that is merely behind is not.
  if (!barrier.ok && barrier.code !== "index-conflict") {
    if (barrier.code !== "index-unavailable") throw refusal(barrier);
    throw new Problem("index-rebuilding", { retryAfter: barrier.retryAfter, detail: barrier.detail });
  }
  // Where it contradicts the log, what it lacks is a finding, too.
  const mayLack = !barrier.ok;
  const evidence = await log.stub.range(log.identity, log.epoch, range.from - 1, range.from - 1 + MAX_WALK);
  if (!evidence.ok) throw refusal(evidence);
  const { head } = evidence;
  const chain = await registryChain(env, log.identity.tenant, { epoch: head.epoch });
  const to = Math.min(range.to ?? head.size, head.size);
  const end = Math.min(to, range.from - 1 + MAX_WALK);
  const issues = new IssueList();
  const proven = checkEvidence(chain, formatOrigin(log.identity), evidence, issues) ? evidence.leaves : null;
  const walker = new LogWalker({
    crypto: nativeCrypto,
    logId: fromHex(logIdOf(log)),
    registry: chain,
    issues,
    from: range.from,
    prev: null,
  });
  const kept = range.keptHead;
  let keptFound: string | null = null;
  for (let at = range.from; at <= end; ) {
    const { rows, indexed } = await queryForVerify(indexSession(env), logIdOf(log), at, end, PAGE);
    if (!mayLack) await requireIndexed(log, indexed, end);
    if (rows.length === 0) break;
    for (const row of rows) {
      const offset = (row.seq - range.from) * 32;
      const provenHash = proven?.subarray(offset, offset + 32);
      const leaf = walker.add({
        seq: row.seq,
        leaf: bytesOf(row.leaf),
        recordedHash: row.hash,
        ...(provenHash === undefined ? {} : { provenHash }),
      });
      if (leaf !== null) checkRow(row, leaf, issues);
      if (kept?.seq === row.seq) keptFound = row.hash;
      at = row.seq + 1;
    }
  }
  if (walker.next <= end) {
    issues.add({
      seq: walker.next,
      code: "truncated",
      detail: `the signed head has ${head.size} entries, the stored ones end at ${walker.next - 1}`,
      expected: String(end),
      found: String(walker.next - 1),
    });
  }
  return report({ range, end, to, head, walker, issues, keptFound });
}

/** A leaf column that is not base64 any more was written by somebody else: it gives bytes that are no leaf. */
function bytesOf(leaf: string): Uint8Array {
  try {
    return fromBase64(leaf);
  } catch {
    return new Uint8Array();
  }
}

function report(parts: {
  range: VerifyRange;
  end: number;
  to: number;
  head: HeadView;
  walker: LogWalker;
  issues: IssueList;
  keptFound: string | null;
}): VerifyReport {
  const { range, end, to, head, walker, issues, keptFound } = parts;
  const kept = range.keptHead;
  const beyond = kept !== undefined && kept.seq > head.size;
  const reached = kept !== undefined && (beyond || kept.seq <= end);
  if (kept !== undefined && reached && issues.first === undefined && keptFound !== kept.hash) {
    issues.add({
      seq: kept.seq,
      code: beyond ? "truncated" : "kept-head-mismatch",
      detail: beyond
        ? `the kept head, entry ${kept.seq}, was not reached: the log has ${head.size} entries`
        : `entry ${kept.seq} is not the one whose hash was kept`,
      expected: kept.hash,
      found: keptFound,
    });
  }
  const first = issues.first;
  const { last } = walker;
  return {
    verdict: issues.verdict,
    from: range.from,
    to: Math.max(end, 0),
    checked: walker.checked,
    head: headOut(head),
    last: last === null ? null : { seq: last.seq, hash: toHex(last.hash) },
    issues: issues.all.map(({ seq, code, detail }) => ({ seq, code, detail })),
    ...(first === undefined ? {} : { break: breakOf(first) }),
    ...(kept === undefined || !reached
      ? {}
      : {
          kept_head: { seq: kept.seq, hash: kept.hash, found: keptFound, matches: keptFound === kept.hash },
        }),
    trusted: [
      "the tenant's key registry as this service holds it: compare its registry id with the one you kept",
      "this service's own verification: export the log and verify it offline to trust nobody",
      ...(range.from === 1
        ? []
        : [`the entries before ${range.from}: this call did not walk them, an earlier one may have`]),
    ],
    verified_by: "runseal service",
    ...(end < to ? { next: end + 1 } : {}),
  };
}
