/**
 * What is checked when the last line of a bundle was read: its head, and what the caller kept of the log.
 * docs/format.md, "Verification", "At the end".
 *
 * @module
 */
import type { VerifyReport } from "../api/schemas.ts";
import type { BundleHeader } from "../bundle/format.ts";
import { equalBytes, toHex } from "../bytes.ts";
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import { parseCheckpoint } from "../note/checkpoint.ts";
import type { RegistryChain } from "../registry/chain.ts";
import type { AnchorFindings } from "./bundle-anchors.ts";
import type { BundleTree, KeptHead } from "./bundle-tree.ts";
import type { CheckpointCheck } from "./checkpoint.ts";
import { checkCheckpoint } from "./checkpoint.ts";
import type { Issue, IssueList } from "./issues.ts";

/** A head that opened. */
export type GoodHead = Extract<CheckpointCheck, { ok: true }>;

export class BundleEnd {
  readonly #crypto: CryptoPort;
  readonly #registry: RegistryChain;
  readonly #header: BundleHeader;
  readonly #tree: BundleTree;
  readonly #issues: IssueList;

  constructor(
    crypto: CryptoPort,
    registry: RegistryChain,
    header: BundleHeader,
    tree: BundleTree,
    issues: IssueList,
  ) {
    this.#crypto = crypto;
    this.#registry = registry;
    this.#header = header;
    this.#tree = tree;
    this.#issues = issues;
  }

  #add(
    code: Issue["code"],
    seq: number,
    detail: string,
    expected: string | null = null,
    found: string | null = null,
  ): void {
    this.#issues.add({ code, seq, detail, expected, found });
  }

  /**
   * Opens the head.
   *
   * @param note the checkpoint line's note, or null where there was none
   * @param walked places that the bundle gave
   * @param lastEpoch epoch of the last leaf that was read
   */
  openHead(note: string | null, walked: number, lastEpoch: number | null): GoodHead | null {
    if (note === null) {
      this.#add("truncated", walked + 1, "the bundle has no checkpoint: it was cut, or nothing was signed");
      return null;
    }
    const check = checkCheckpoint(this.#crypto, this.#registry, this.#header.origin, note, lastEpoch);
    if (check.ok) return check;
    this.#add(check.code, walked, `the head: ${check.detail}`);
    return null;
  }

  /**
   * Checks the head that was opened.
   *
   * @param keptSize size of the kept checkpoint
   */
  checkHead(
    check: GoodHead | null,
    note: string | null,
    walked: number,
    keptSize: number | undefined,
    anchors: AnchorFindings,
  ): VerifyReport["head"] {
    if (check === null || note === null) return null;
    const { size, root } = check.checkpoint;
    this.#compareWithHead(walked, size, root);
    if (this.#header.to > size) {
      this.#add("truncated", size, "the bundle's range is not inside its signed head");
    }
    // Who holds a retired key can sign an old head today.
    if (!check.current && keptSize !== size && !check.good.some(anchors.isBeforeRetirement)) {
      const detail =
        "only a retired key signed the head, and nothing shows that it did before it was retired";
      this.#add("unregistered-key", size, detail);
    }
    return { seq: size, size, root: toHex(root), key: toHex(check.key), checkpoint: note };
  }

  /** What is wrong with the lines of the logs of heads. */
  addIssues(issues: readonly Issue[]): void {
    for (const issue of issues) this.#issues.add(issue);
  }

  #compareWithHead(walked: number, size: number, root: Uint8Array): void {
    const found = this.#tree.root();
    if (walked < size) {
      const detail = `the signed head has ${size} entries, the bundle ends at ${walked}`;
      this.#add("truncated", walked + 1, detail, String(size), String(walked));
    } else if (walked > size) {
      const detail = `the bundle has entries beyond the signed head of ${size}`;
      this.#add("forked-entry", size + 1, detail, String(size), String(walked));
    } else if (found !== null && !equalBytes(found, root)) {
      this.#add("root-mismatch", walked, "the leaves do not give the signed root", toHex(root), toHex(found));
    }
  }

  /** Checks that the log is the one, or has grown from the one, whose checkpoint was kept. */
  checkKeptCheckpoint(note: string): void {
    const check = checkCheckpoint(this.#crypto, this.#registry, this.#header.origin, note, null);
    if (!check.ok) {
      this.#add(check.code, 0, `the kept checkpoint: ${check.detail}`);
      return;
    }
    const { size, root } = check.checkpoint;
    const found = this.#tree.keptRoot;
    if (found === null) {
      const detail = `the kept checkpoint has ${size} entries, more than the bundle`;
      this.#add("truncated", size, detail, toHex(root), null);
    } else if (!equalBytes(found, root)) {
      const detail = "the log is not an extension of the kept checkpoint";
      this.#add("kept-head-mismatch", size, detail, toHex(root), toHex(found));
    }
  }

  /** Checks that a walk over every leaf comes to the kept hash. */
  checkKeptHead({ seq, hash }: KeptHead): NonNullable<VerifyReport["kept_head"]> {
    const { keptFound: found, withoutLeaf } = this.#tree;
    if (found === null) {
      this.#add("truncated", seq, `the kept head, entry ${seq}, was not reached`, hash, null);
    } else if (found !== hash) {
      const detail = `entry ${seq} is not the one whose hash was kept`;
      this.#add("kept-head-mismatch", seq, detail, hash, found);
    } else if (withoutLeaf > 0) {
      // Each leaf names the hash of the one before: without it, what comes before is not held by the kept hash.
      const detail = `the kept head, entry ${seq}, was not reached by a walk: ${withoutLeaf} leaves up to it are not there`;
      this.#add("truncated", seq, detail);
    }
    return { seq, hash, found, matches: found === hash && withoutLeaf === 0 };
  }
}

/** Size that a kept checkpoint states; whether it holds is checked when the registry is known. */
export function sizeOf(note: string | undefined): number | undefined {
  if (note === undefined) return undefined;
  try {
    return parseCheckpoint(note).checkpoint.size;
  } catch (error) {
    if (error instanceof RunsealError) return undefined;
    throw error;
  }
}
