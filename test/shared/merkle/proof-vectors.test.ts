import { expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromBase64, toHex, utf8 } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { EMPTY_ROOT, leafHash } from "../../../shared/merkle/hash.ts";
import type { ProofPlan } from "../../../shared/merkle/proof.ts";
import {
  foldProof,
  isSubtree,
  subtreeConsistencyNodes,
  subtreeInclusionNodes,
} from "../../../shared/merkle/proof.ts";
import {
  verifyConsistency,
  verifyInclusion,
  verifySubtreeConsistency,
  verifySubtreeInclusion,
} from "../../../shared/merkle/verify.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";
import { naiveRoot } from "./naive-tree.ts";

interface Case {
  file: string;
  wantErr: boolean;
  proof: string[] | null;
  root: string;
  leafHash: string;
  leafIdx: number;
  treeSize: number;
  root1: string;
  root2: string;
  size1: number;
  size2: number;
  size: number;
  start: number;
  end: number;
}

/** The files of cases that `verifies` answers wrongly. */
function wrong(name: string, count: number, verifies: (one: Case, proof: Uint8Array[]) => boolean): string[] {
  const { cases } = readSharedJson<{ cases: Case[] }>(`vectors/merkle/${name}.bundle.json`);
  expect(cases).toHaveLength(count);
  return cases
    .filter((one) => verifies(one, (one.proof ?? []).map(fromBase64)) === one.wantErr)
    .map((one) => one.file);
}

describeWithShared("the vectors of transparency-dev/merkle", "vectors/merkle/inclusion.bundle.json", () => {
  const PORTS = [["pure", pureCrypto] as const, ["native", nativeCrypto] as const];

  it.each(PORTS)("98 of inclusion (%s)", (_name, crypto) => {
    const failed = wrong("inclusion", 98, (one, proof) => {
      const [leaf, root] = [fromBase64(one.leafHash), fromBase64(one.root)];
      return verifyInclusion(crypto, one.leafIdx, one.treeSize, leaf, proof, root).ok;
    });
    expect(failed).toEqual([]);
  });

  it.each(PORTS)("98 of consistency (%s)", (_name, crypto) => {
    const failed = wrong("consistency", 98, (one, proof) => {
      const [root1, root2] = [fromBase64(one.root1), fromBase64(one.root2)];
      return verifyConsistency(crypto, one.size1, one.size2, proof, root1, root2).ok;
    });
    expect(failed).toEqual([]);
  });

  it.each(PORTS)("204 of inclusion in subtrees (%s)", (_name, crypto) => {
    const failed = wrong("subtreeinclusion", 204, (one, proof) => {
      const [leaf, root] = [fromBase64(one.leafHash), fromBase64(one.root)];
      return verifySubtreeInclusion(crypto, one.leafIdx, one.start, one.end, leaf, proof, root).ok;
    });
    expect(failed).toEqual([]);
  });

  it.each(PORTS)("118 of consistency of subtrees (%s)", (_name, crypto) => {
    const failed = wrong("subtreeconsistency", 118, (one, proof) => {
      const [root1, root2] = [fromBase64(one.root1), fromBase64(one.root2)];
      return verifySubtreeConsistency(crypto, one.start, one.end, one.size, proof, root1, root2).ok;
    });
    expect(failed).toEqual([]);
  });
});

/*
 * draft-ietf-plants-merkle-tree-certs appendix C.1: the outputs of each algorithm over every valid input up to 130
 * leaves, the empty subtrees among them, folded into one hash.
 */
describeWithShared("all subtree proofs up to 130 leaves", "vectors/extracted/rfc6962-reference.json", () => {
  const MAX = 130;
  const leaves = Array.from({ length: MAX }, (_, i) => leafHash(nativeCrypto, new Uint8Array([i])));
  const expected = () =>
    readSharedJson<{ subtree_accumulated_sha256: Record<string, string> }>(
      "vectors/extracted/rfc6962-reference.json",
    ).subtree_accumulated_sha256;

  const roots = new Map<string, Uint8Array>();
  const rootOf = (start: number, end: number): Uint8Array => {
    const key = `${start} ${end}`;
    const known = roots.get(key) ?? naiveRoot(leaves.slice(start, end));
    roots.set(key, known);
    return known;
  };

  const hashOf = (lines: string[]): string => toHex(nativeCrypto.sha256(utf8(lines.join(""))));

  function* subtrees(max: number): Generator<[number, number]> {
    for (let end = 0; end <= max; end++) {
      for (let start = 0; start <= end; start++) if (isSubtree(start, end)) yield [start, end];
    }
  }

  function proofOf(plan: ProofPlan): Uint8Array[] {
    const hashes = plan.nodes.map(({ level, index }) => rootOf(index * 2 ** level, (index + 1) * 2 ** level));
    return foldProof(nativeCrypto, plan, hashes);
  }

  function line(prefix: string, proof: readonly Uint8Array[]): string {
    return `${prefix}${proof.map((hash) => ` ${toHex(hash)}`).join("")}\n`;
  }

  it("are subtrees with the published roots", () => {
    const lines = [...subtrees(MAX)].map(([start, end]) => {
      return `[${start}, ${end}) ${toHex(rootOf(start, end))}\n`;
    });
    expect(hashOf(lines)).toBe(expected().subtree_hash);
  });

  it("are the published proofs of inclusion, and verify", () => {
    const lines: string[] = [];
    for (const [start, end] of subtrees(MAX)) {
      for (let index = start; index < end; index++) {
        const proof = proofOf(subtreeInclusionNodes(index, start, end));
        lines.push(line(`${index} [${start}, ${end})`, proof));
        const root = rootOf(start, end);
        const check = verifySubtreeInclusion(nativeCrypto, index, start, end, leaves[index]!, proof, root);
        if (!check.ok) expect.fail(`${index} of [${start}, ${end}): ${check.reason}`);
      }
    }
    expect(hashOf(lines)).toBe(expected().subtree_inclusion_proof);
  });

  it("are the published proofs of consistency, and verify", () => {
    const lines: string[] = [];
    for (let size = 0; size <= MAX; size++) {
      for (const [start, end] of subtrees(size)) {
        const proof = proofOf(subtreeConsistencyNodes(start, end, size));
        lines.push(line(`[${start}, ${end}) ${size}`, proof));
        const [old, root] = [rootOf(start, end), rootOf(0, size)];
        const check = verifySubtreeConsistency(nativeCrypto, start, end, size, proof, old, root);
        if (!check.ok) expect.fail(`[${start}, ${end}) of ${size}: ${check.reason}`);
      }
    }
    expect(hashOf(lines)).toBe(expected().subtree_consistency_proof);
    expect(rootOf(0, 0)).toEqual(EMPTY_ROOT);
  });
});

describeWithShared(
  "the Argon2020 log at 961,984,011 entries",
  "vectors/ct-argon2020/http_get/get-sth",
  () => {
    const get = <T>(name: string): T => readSharedJson<T>(`vectors/ct-argon2020/http_get/${name}`);
    const head = () => get<{ tree_size: number; sha256_root_hash: string }>("get-sth");

    it("includes entry 10,000", () => {
      const entries = get<{ entries: { leaf_input: string }[] }>("get-entries-start-10000-end-10000");
      const answer = get<{ leaf_index: number; audit_path: string[] }>(
        "get-proof-by-hash-tree-size-961984011-hash-nCs3mfIydh9x4CKyQ-2Bu2xtmpxmFggA5MLymHwNQSlLg-3D",
      );
      const leaf = leafHash(nativeCrypto, fromBase64(entries.entries[0]!.leaf_input));
      const proof = answer.audit_path.map(fromBase64);
      const root = fromBase64(head().sha256_root_hash);
      const verify = (index: number, size: number) =>
        verifyInclusion(nativeCrypto, index, size, leaf, proof, root);
      expect(answer.leaf_index).toBe(10_000);
      expect(verify(10_000, head().tree_size)).toEqual({ ok: true });
      expect(verify(10_001, head().tree_size)).toEqual({ ok: false, reason: "root-mismatch" });
      // The proof's length, and so the sides, are those of any size whose right edge looks alike from this leaf.
      expect(verify(10_000, 2 ** 29)).toEqual({ ok: false, reason: "proof-length" });
    });

    it("is consistent with the log at 3,654,490 entries", () => {
      const { consistency } = get<{ consistency: string[] }>(
        "get-sth-consistency-first-3654490-second-961984011",
      );
      const proof = consistency.map(fromBase64);
      // The old root, as golang/mod's sumdb/tlog/ct_test.go has it.
      const old = fromBase64("AuIZ5V6sDUj1vn3Y1K85oOaQ7y+FJJKtyRTl1edIKBQ=");
      const root = fromBase64(head().sha256_root_hash);
      const verify = (m: number, hashes: Uint8Array[]) =>
        verifyConsistency(nativeCrypto, m, head().tree_size, hashes, old, root);
      expect(verify(3_654_490, proof)).toEqual({ ok: true });
      expect(verify(3_654_489, proof).ok).toBe(false);
      expect(verify(3_654_490, proof.slice(1))).toEqual({ ok: false, reason: "proof-length" });
      expect(verify(3_654_490, [...proof].reverse())).toEqual({ ok: false, reason: "old-root-mismatch" });
    });
  },
);
