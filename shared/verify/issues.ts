/**
 * What a walk can find, and how the findings add up to a verdict.
 *
 * @module
 */

import type { VerifyReport } from "../api/schemas.ts";

/** The kind of break, as the report names it. */
export type BreakVerdict =
  | "altered"
  | "missing"
  | "duplicate"
  | "fork"
  | "truncated"
  | "bad-signature"
  | "unknown-key"
  | "malformed";

/** A finding, finer than its verdict. */
export type IssueCode =
  | "invalid-genesis"
  | "invalid-registry"
  | "invalid-signature"
  | "broken-link"
  | "sequence-gap"
  | "duplicate-entry"
  | "forked-entry"
  | "unregistered-key"
  | "log-id-mismatch"
  | "epoch-regression"
  | "time-regression"
  | "malformed-entry"
  | "unsupported-entry"
  | "altered-entry"
  | "altered-content"
  | "altered-index"
  | "root-mismatch"
  | "kept-head-mismatch"
  | "truncated";

/** The kind of break that each finding is. */
export const VERDICT_OF: Readonly<Record<IssueCode, BreakVerdict>> = {
  "invalid-genesis": "malformed",
  "invalid-registry": "malformed",
  "invalid-signature": "bad-signature",
  "broken-link": "altered",
  "sequence-gap": "missing",
  "duplicate-entry": "duplicate",
  "forked-entry": "fork",
  "unregistered-key": "unknown-key",
  "log-id-mismatch": "altered",
  "epoch-regression": "malformed",
  "time-regression": "malformed",
  "malformed-entry": "malformed",
  "unsupported-entry": "malformed",
  "altered-entry": "altered",
  "altered-content": "altered",
  "altered-index": "altered",
  "root-mismatch": "altered",
  "kept-head-mismatch": "fork",
  truncated: "truncated",
};

export interface Issue {
  /** The entry at which it was found; 0 where none is concerned. */
  readonly seq: number;
  readonly code: IssueCode;
  readonly expected: string | null;
  readonly found: string | null;
  readonly detail: string;
}

/** Issues that a report holds at most. */
export const MAX_ISSUES = 1024;

/** Collects issues in the order in which the walk finds them; the first one that is no mere lack of support is the break. */
export class IssueList {
  readonly #issues: Issue[] = [];
  #total = 0;
  #firstBreak: Issue | undefined;

  add(issue: Issue): void {
    this.#total += 1;
    if (issue.code !== "unsupported-entry") this.#firstBreak ??= issue;
    if (this.#issues.length < MAX_ISSUES) this.#issues.push(issue);
  }

  /** The first break; where nothing is broken, the first thing that can't be read. */
  get first(): Issue | undefined {
    return this.#firstBreak ?? this.#issues[0];
  }

  get all(): readonly Issue[] {
    return this.#issues;
  }

  /** Found, whether or not the list had room. */
  get total(): number {
    return this.#total;
  }

  /** `unsupported` only where nothing is broken: what this version can't read it can't judge. */
  get verdict(): "intact" | "broken" | "unsupported" {
    if (this.#total === 0) return "intact";
    return this.#firstBreak === undefined ? "unsupported" : "broken";
  }
}

/** The verdict of a finding. */
export function verdictOf(code: IssueCode): BreakVerdict {
  return VERDICT_OF[code];
}

/** The report's `break`. */
export function breakOf(issue: Issue): NonNullable<VerifyReport["break"]> {
  return {
    seq: issue.seq,
    verdict: verdictOf(issue.code),
    expected: issue.expected,
    found: issue.found,
    detail: issue.detail,
  };
}
