/**
 * What an inclusion or consistency proof is made of (RFC 6962 sections 2.1.1 and 2.1.2, and for subtrees
 * draft-ietf-plants-merkle-tree-certs section 4): which stored perfect nodes to fetch, and how their hashes fold into
 * the proof. `verify.ts` checks proofs with the same steps.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import type { NodeCoord } from "./nodes.ts";
import { ascend, coverRange, foldNodes, splitPoint } from "./nodes.ts";

/** One hash of a proof: the root of the subtree over the leaves [begin, end). */
export interface ProofStep {
  readonly begin: number;
  readonly end: number;
  /**
   * Where it goes as the path climbs: `left` or `right` of what is proved; or, in consistency proofs, left of both
   * the old and the new hash (`both`).
   */
  readonly side: "left" | "right" | "both";
}

/** Which perfect nodes to fetch for a proof. */
export interface ProofPlan {
  /** All of them, in the order in which `foldProof` takes their hashes. */
  readonly nodes: readonly NodeCoord[];
  /** How many of them, one after the other, make up each hash of the proof. */
  readonly counts: readonly number[];
}

/** Steps of a consistency proof, and whether it begins with the hash of a subtree that both trees share. */
export interface ConsistencySteps {
  readonly steps: readonly ProofStep[];
  /** The shared subtree, where it is not the whole of the old tree, whose root the verifier has anyway. */
  readonly seed: { readonly begin: number; readonly end: number } | undefined;
}

/** Whether [start, end) is a subtree: `start` is a multiple of the power of two that holds the width; or it is empty. */
export function isSubtree(start: number, end: number): boolean {
  if (!ascend(start, end)) return false;
  return end - start < 2 || start % (2 * splitPoint(end - start)) === 0;
}

/** Steps from the leaf to the root of the subtree [start, end), which must hold the index. */
export function inclusionSteps(index: number, start: number, end: number): ProofStep[] {
  const steps: ProofStep[] = [];
  let begin = start;
  let stop = end;
  while (stop - begin > 1) {
    const middle = begin + splitPoint(stop - begin);
    if (index < middle) {
      steps.push({ begin: middle, end: stop, side: "right" });
      stop = middle;
    } else {
      steps.push({ begin, end: middle, side: "left" });
      begin = middle;
    }
  }
  return steps.reverse();
}

/** Steps from the subtree [start, end), not empty, to the root of the tree of that size. */
export function consistencySteps(start: number, end: number, size: number): ConsistencySteps {
  const steps: ProofStep[] = [];
  let from = start;
  let begin = 0;
  let stop = size;
  while (from !== begin || end !== stop) {
    const middle = begin + splitPoint(stop - begin);
    if (end <= middle) {
      steps.push({ begin: middle, end: stop, side: "right" });
      stop = middle;
    } else if (from >= middle) {
      steps.push({ begin, end: middle, side: "left" });
      begin = middle;
    } else {
      // The subtree begins with this node's whole left half: it is left of the rest in both trees.
      steps.push({ begin, end: middle, side: "both" });
      begin = middle;
      from = middle;
    }
  }
  return { steps: steps.reverse(), seed: from === start ? undefined : { begin, end: stop } };
}

function planOf(ranges: readonly { readonly begin: number; readonly end: number }[]): ProofPlan {
  const covers = ranges.map(({ begin, end }) => coverRange(begin, end));
  return { nodes: covers.flat(), counts: covers.map((cover) => cover.length) };
}

function outOfRange(): RunsealError {
  return new RunsealError("out-of-range", "an index or size is out of range");
}

/**
 * The nodes for the proof that the leaf at `index` is in the tree of that size.
 *
 * @throws `RunsealError("out-of-range")` unless index < size
 */
export function inclusionNodes(index: number, size: number): ProofPlan {
  return subtreeInclusionNodes(index, 0, size);
}

/**
 * The nodes for the proof that the leaf at `index` is in the subtree [start, end).
 *
 * @throws `RunsealError("out-of-range")` unless that is a subtree and holds the index
 */
export function subtreeInclusionNodes(index: number, start: number, end: number): ProofPlan {
  if (!isSubtree(start, end) || !ascend(start, index, end) || index === end) throw outOfRange();
  return planOf(inclusionSteps(index, start, end));
}

/**
 * The nodes for the proof that the tree of size `m` is a prefix of the one of size `n`: none for 0 and for n.
 *
 * @throws `RunsealError("out-of-range")` unless m <= n
 */
export function consistencyNodes(m: number, n: number): ProofPlan {
  return subtreeConsistencyNodes(0, m, n);
}

/**
 * The nodes for the proof that the subtree [start, end) is part of the tree of that size.
 *
 * @throws `RunsealError("out-of-range")` unless that is a subtree within the tree
 */
export function subtreeConsistencyNodes(start: number, end: number, size: number): ProofPlan {
  if (!isSubtree(start, end) || !ascend(end, size)) throw outOfRange();
  if (start === end) return planOf([]);
  const { steps, seed } = consistencySteps(start, end, size);
  return planOf(seed === undefined ? steps : [seed, ...steps]);
}

/**
 * The proof, from the hashes of the plan's nodes in the plan's order.
 *
 * @throws `RunsealError("proof-hashes")` where their number is another
 */
export function foldProof(crypto: CryptoPort, plan: ProofPlan, hashes: readonly Uint8Array[]): Uint8Array[] {
  if (hashes.length !== plan.nodes.length) {
    throw new RunsealError("proof-hashes", "the hashes are not those of the plan");
  }
  let at = 0;
  return plan.counts.map((count) => {
    at += count;
    return foldNodes(crypto, hashes.slice(at - count, at));
  });
}
