import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { toHex } from "../../../shared/bytes.ts";
import { IssueList } from "../../../shared/verify/issues.ts";
import type { FoundLeaf } from "../../../shared/verify/walk.ts";
import { LogWalker } from "../../../shared/verify/walk.ts";
import type { TestEntry } from "./test-tenant.ts";
import { TestLog, TestTenant } from "./test-tenant.ts";

const tenant = new TestTenant("walk");
const log = new TestLog(tenant).fill(6);
const found = ({ seq, bytes, hash }: TestEntry): FoundLeaf => ({
  seq,
  leaf: bytes,
  recordedHash: toHex(hash),
});

function walk(leaves: readonly FoundLeaf[], from = 1, prev: Uint8Array | null = null) {
  const issues = new IssueList();
  const hashes: [number, string][] = [];
  const walker = new LogWalker({
    crypto: nativeCrypto,
    logId: log.logId,
    registry: tenant.chain,
    issues,
    from,
    prev,
    onHash: (seq, hash) => hashes.push([seq, toHex(hash)]),
  });
  const taken = leaves.map((leaf) => walker.add(leaf) !== null);
  return { walker, issues: issues.all.map(({ seq, code }) => `${code} at ${seq}`), hashes, taken };
}

describe("a walk", () => {
  it("over every leaf finds nothing, and tells each hash in order", () => {
    const { issues, hashes, walker, taken } = walk(log.entries.map(found));
    expect(issues).toEqual([]);
    expect(hashes).toEqual(log.entries.map(({ seq, hash }) => [seq, toHex(hash)]));
    expect([walker.next, walker.checked, walker.last?.seq]).toEqual([7, 6, 6]);
    expect(taken).toEqual([true, true, true, true, true, true]);
  });

  it("over a part starts with the hash before it, or without", () => {
    const part = log.entries.slice(2, 5).map(found);
    expect(walk(part, 3, log.entries[1]?.hash ?? null).issues).toEqual([]);
    expect(walk(part, 3).issues).toEqual([]);
    expect(walk(part, 3, log.logId).issues).toEqual(["broken-link at 3"]);
    expect(walk([], 3).walker.last).toBeNull();
  });

  it("takes no recorded hash, and what a signed head proves in its place", () => {
    const plain = log.entries.map(({ seq, bytes }) => ({ seq, leaf: bytes }));
    expect(walk(plain).issues).toEqual([]);
    const proven = log.entries.map((entry) => ({ ...found(entry), provenHash: entry.hash }));
    expect(walk(proven).issues).toEqual([]);
  });

  it("finds a leaf that is not the proven one, and goes on from the proven hash", () => {
    const other = new TestLog(tenant).fill(2).append({ run: "another" });
    const leaves = log.entries.map((entry) => ({ ...found(entry), provenHash: entry.hash }));
    leaves[2] = {
      seq: 3,
      leaf: other.bytes,
      recordedHash: toHex(other.hash),
      provenHash: log.entries[2]?.hash ?? other.hash,
    };
    expect(walk(leaves).issues).toEqual(["altered-entry at 3"]);
    const lying = [...leaves];
    lying[2] = { ...leaves[2], leaf: log.entries[2]?.bytes ?? other.bytes } as (typeof leaves)[number];
    expect(walk(lying).issues).toEqual(["altered-entry at 3"]);
  });

  it("is not held up by a place that is very far away", () => {
    const far = { ...found(log.entries[2] as TestEntry), seq: Number.MAX_SAFE_INTEGER };
    const { issues, walker } = walk([found(log.entries[0] as TestEntry), far]);
    expect(issues[0]).toBe(`sequence-gap at ${Number.MAX_SAFE_INTEGER}`);
    expect(walker.checked).toBe(2);
  });

  it("steps over hashes of leaves that are withheld, and links what follows", () => {
    const issues = new IssueList();
    const walker = new LogWalker({
      crypto: nativeCrypto,
      logId: log.logId,
      registry: tenant.chain,
      issues,
      from: 1,
    });
    for (const entry of log.entries) {
      if (entry.seq % 2 === 0) walker.withheld(entry.seq, entry.hash);
      else walker.add(found(entry));
    }
    expect([issues.total, walker.checked, walker.next]).toEqual([0, 3, 7]);
    walker.withheld(7, log.logId);
    walker.add(found(new TestLog(tenant).fill(7).append()));
    expect(issues.all.map(({ code }) => code)).toEqual(["broken-link"]);
  });
});
