/**
 * What the audit finds beyond the run ledger: the kinds of finding, what each says, and the list that they are gathered
 * in (docs/audit.md "Findings").
 *
 * @module
 */
import type { EntryView, Missing } from "../entry/view.ts";

/** An entry that shows something: with its leaf hash it can be proved to be in the log. */
export interface EntryRef {
  readonly seq: number;
  /** Leaf hash, lower-case hex. */
  readonly hash: string;
}

/** A failure fails the audit, a warning does not. */
export type Severity = "failure" | "warning";

interface FindingSpec {
  readonly severity: Severity;
  /** One sentence; the same for every finding of the kind. */
  readonly message: string;
  /** Which entries the finding names, in this order. */
  readonly entries: string;
}

/** Every kind of finding. */
export const FINDING_KINDS = {
  http_request_without_response: {
    severity: "failure",
    message: "an HTTP request was committed, and no response to it",
    entries: "the request",
  },
  http_response_without_request: {
    severity: "failure",
    message: "an HTTP response has no request of its sequence number before it",
    entries: "the response",
  },
  http_response_repeated: {
    severity: "failure",
    message: "an HTTP request has more than one response",
    entries: "the further response",
  },
  http_request_entry_mismatch: {
    severity: "failure",
    message: "an HTTP response names another entry than its request's",
    entries: "the request, the response",
  },
  http_sequence_repeated: {
    severity: "failure",
    message: "an HTTP request has the sequence number of an earlier one",
    entries: "the request",
  },
  http_sequence_gap: {
    severity: "failure",
    message: "sequence numbers of HTTP requests are missing: entries of the run are not there",
    entries: "the requests on both sides of the gap; at the start only the one after it",
  },
  approval_decision_without_request: {
    severity: "failure",
    message: "an approval was decided that nobody requested before",
    entries: "the decision",
  },
  approval_request_entry_mismatch: {
    severity: "failure",
    message: "an approval's decision names another entry than its request's",
    entries: "the request, the decision",
  },
  approval_after_act: {
    severity: "failure",
    message: "an approval was decided after the act that it allows",
    entries: "the request, the act, the decision",
  },
  act_without_approval: {
    severity: "failure",
    message: "an act needs an approval, and none was granted",
    entries: "the request, or the policy evaluation that asks for one, where there is one; the act",
  },
  act_despite_refusal: {
    severity: "failure",
    message: "an act was begun though its approval was denied or expired",
    entries: "the decision, the act",
  },
  act_outside_approval: {
    severity: "failure",
    message: "an act is another one than its approval allows",
    entries: "the request, the decision, the act",
  },
  approval_used_again: {
    severity: "failure",
    message: "an approval that allows one act was used for another",
    entries: "the decision, the first act, the further one",
  },
  call_despite_policy: {
    severity: "failure",
    message: "a tool was called though the policy denied the call",
    entries: "the policy evaluation, the call",
  },
  capability_not_granted: {
    severity: "failure",
    message: "a capability was used that nobody granted",
    entries: "the use",
  },
  capability_used_before_grant: {
    severity: "failure",
    message: "a capability was used before it was granted",
    entries: "the use, the grant",
  },
  capability_used_after_revocation: {
    severity: "failure",
    message: "a capability was used after it was revoked",
    entries: "the revocation, the use",
  },
  code_hash_differs: {
    severity: "failure",
    message: "code was loaded with another hash than it was installed with",
    entries: "the installation, the load",
  },
  code_not_installed: {
    severity: "warning",
    message: "code was loaded, and its installation is not on record",
    entries: "the load",
  },
  recorded_clock_regression: {
    severity: "failure",
    message: "the log's clock went back",
    entries: "the earlier entry, the later one",
  },
  occurred_clock_regression: {
    severity: "warning",
    message: "the sender's clock went back",
    entries: "the earlier entry, the later one",
  },
  host_run_contradicts_itself: {
    severity: "failure",
    message: "what a host folded into one entry does not add up",
    entries: "the folded entry",
  },
  declared_loss: {
    severity: "failure",
    message: "the host declares calls that it did not record one by one",
    entries: "the declaration",
  },
  declared_gap: {
    severity: "failure",
    message: "the host declares a time that may lack entries",
    entries: "the declaration",
  },
} as const satisfies Readonly<Record<string, FindingSpec>>;

export type FindingKind = keyof typeof FINDING_KINDS;

export interface Finding {
  readonly kind: FindingKind;
  readonly severity: Severity;
  readonly message: string;
  /** The entries that show it. */
  readonly entries: readonly EntryRef[];
  /** The sequence numbers that a gap lacks, both ends included. */
  readonly missing?: { readonly from: number; readonly to: number };
}

/** Something that could not be looked at, so that what there is to find in it is not known. */
export interface NotChecked {
  /** Absent where it is no single entry. */
  readonly entry?: EntryRef;
  /** The field, `action.args`, or what was too much to hold. */
  readonly what: string;
  /** `not-recorded`: whoever made the record does not write it down. */
  readonly why: Missing | "limit" | "not-recorded";
}

/** Findings that are listed; `counts` has all of them. */
export const MAX_FINDINGS = 1000;
const MAX_NOT_CHECKED = 1000;

export const refOf = ({ seq, hash }: EntryView): EntryRef => ({ seq, hash });

export class FindingList {
  readonly #lists: Readonly<Record<Severity, Finding[]>> = { failure: [], warning: [] };
  readonly #counts = new Map<FindingKind, number>();
  readonly #notChecked: NotChecked[] = [];
  readonly #limits = new Set<string>();
  readonly #notes = new Set<string>();
  #failures = 0;
  #notCheckedCount = 0;

  /** `severity` is for the cases where a kind's own is too hard. */
  add(
    kind: FindingKind,
    entries: readonly EntryRef[],
    more: Pick<Finding, "missing"> & { readonly severity?: Severity } = {},
  ): void {
    const { severity, message } = { ...FINDING_KINDS[kind], ...more };
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    if (severity === "failure") this.#failures += 1;
    const list = this.#lists[severity];
    // Failures and warnings are listed each up to the bound, so that no flood of the ones hides the others.
    if (list.length >= MAX_FINDINGS) return;
    const missing = more.missing === undefined ? {} : { missing: more.missing };
    list.push({ kind, severity, message, entries, ...missing });
  }

  /** A field that is not there any more. */
  notChecked(entry: EntryRef, what: string, why: Missing): void {
    this.#miss({ entry, what, why });
  }

  /** More was open at once than is held; said once. */
  limit(what: string): void {
    if (this.#limits.has(what)) return;
    this.#limits.add(what);
    this.#miss({ what, why: "limit" });
  }

  /** Something that no entry was ever going to say. */
  notRecorded(what: string): void {
    this.#miss({ what, why: "not-recorded" });
  }

  #miss(one: NotChecked): void {
    this.#notCheckedCount += 1;
    if (this.#notChecked.length < MAX_NOT_CHECKED) this.#notChecked.push(one);
  }

  /** Something to know that changes no verdict; said once. */
  note(note: string): void {
    this.#notes.add(note);
  }

  /** In the order of the last entry that each names. */
  get findings(): readonly Finding[] {
    const place = ({ entries }: Finding): number => entries.at(-1)?.seq ?? 0;
    return [...this.#lists.failure, ...this.#lists.warning].sort((a, b) => place(a) - place(b));
  }
  get counts(): Readonly<Partial<Record<FindingKind, number>>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  /** Findings of severity failure, listed or not. */
  get failures(): number {
    return this.#failures;
  }
  get notCheckedList(): readonly NotChecked[] {
    return this.#notChecked;
  }
  get notCheckedCount(): number {
    return this.#notCheckedCount;
  }
  get notes(): readonly string[] {
    return [...this.#notes];
  }
}
