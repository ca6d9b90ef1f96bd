/**
 * A run as the fold leaves it: what `docs/recheck.md` ("The fold") says, as types. Texts are canonical JSON.
 *
 * @module
 */
import type { Missing } from "../entry/view.ts";

export type Outcome = "allow" | "require_approval" | "deny" | "abort";
export const OUTCOMES = ["allow", "require_approval", "deny", "abort"] as const;

export const INTERRUPTED_SIDE_EFFECT = "interrupted_side_effect";
export const WAITING_FOR_APPROVAL = "WAITING_FOR_APPROVAL";

/** A policy decision, recorded or new. Absent texts are "" (agentrt's zero values); an outcome may be any text. */
export interface Decision {
  readonly outcome: string;
  readonly reason: string;
  readonly kind: string;
  /** JSON text; null where absent. Canonical in a recorded decision. */
  readonly capability: string | null;
  readonly presentation: string | null;
}

export const NO_DECISION: Decision = {
  outcome: "",
  reason: "",
  kind: "",
  capability: null,
  presentation: null,
};

/** An integer that a double holds, or else its literal. */
export type Count = number | string;

/** What the policy saw of the run, as the evaluation recorded it: two states, and counts. */
export interface RecordedView {
  readonly status: string;
  readonly step_count: Count;
  readonly model_calls: Count;
  readonly input_tokens: Count;
  readonly output_tokens: Count;
  readonly cached_input_tokens: Count;
  readonly estimated_cost_micros: Count;
  readonly active_ms: Count;
  readonly steps: Count;
  readonly approvals: Count;
}

/** Why an evaluation was not re-checked; the report's `detail` says it in words. */
export type NotRecheckableReason =
  | Missing
  | "policy-failed"
  | "undecodable"
  | "too-long"
  | "before-v0.5.0"
  | "no-spec"
  | "no-step"
  | "no-tool-call"
  | "no-run-created"
  | "view-out-of-range"
  | "too-many-approvals"
  | "spec-missing"
  | "spec-undecodable"
  | "spec-mismatch"
  | "text-budget"
  | "no-decision";

/** Why a record can't be used: a code to count by, and the words. */
export interface Problem {
  readonly reason: NotRecheckableReason;
  readonly words: string;
}

export interface CreatedRecord {
  /** Nanoseconds; null where the log does not know it. */
  readonly at: bigint | null;
  readonly goal: string;
  /** JSON text; null where the entry has none. */
  readonly limits: string | null;
  readonly toolsRecorded: boolean;
  readonly problem: Problem | null;
}

export type StepStatus = "deciding" | "awaiting_approval" | "executing" | "done" | "failed" | "interrupted";

export interface StepRecord {
  readonly id: string;
  readonly index: number;
  readonly status: StepStatus;
  /** `kind` of the step's decision; null where it decided nothing. */
  readonly decisionKind: string | null;
  readonly tool: string;
  /** Arguments; null where absent, or where texts are not kept. */
  readonly args: string | null;
  readonly policy: Decision | null;
  readonly observation: { readonly kind: string; readonly content: string | null } | null;
  readonly specHash: string;
  readonly policyId: string;
  readonly startedAt: bigint | null;
  readonly finishedAt: bigint | null;
  /** Why its decision can't be used. */
  readonly decisionProblem: Problem | null;
  /** Why it can't be shown in a view: its decision's problem, or its observation's. */
  readonly problem: Problem | null;
}

export type ApprovalStatus = "pending" | "approved" | "rejected" | "expired";

export interface ApprovalDecision {
  readonly seq: number;
  readonly status: ApprovalStatus;
  readonly at: bigint | null;
  readonly by: string;
  readonly note: string;
}

export interface ApprovalRecord {
  readonly id: string;
  readonly stepId: string | null;
  readonly kind: string;
  readonly capability: string | null;
  readonly presentation: string | null;
  readonly hash: string;
  readonly createdAt: bigint | null;
  /** As sent: a JSON text; null where absent. */
  readonly expiresAt: string | null;
  /** In order of sequence. */
  readonly decisions: readonly ApprovalDecision[];
  readonly problem: Problem | null;
}

/** One evaluation that the run recorded, or a policy failure in its place. */
export interface EvaluationRecord {
  readonly seq: number;
  /** Leaf hash of its entry, hex. */
  readonly hash: string;
  readonly stepId: string | null;
  /** Place of its step in `FoldedRun.steps`; -1 where it is none of them. */
  readonly stepPlace: number;
  readonly tool: string;
  /** Canonical text; "{}" where the entry has none, "" where it is not kept. */
  readonly args: string;
  readonly decision: Decision;
  readonly specHash: string;
  readonly policyId: string;
  readonly view: RecordedView | null;
  /** Whether the arguments or the view's counts have a number that a double can't hold. */
  readonly textNumbers: boolean;
  /** The policy failed here: the error's text, and whether the step had been evaluated before. */
  readonly failure: { readonly why: string; readonly onResume: boolean } | null;
  /** Why the runtime refused the recorded decision; null where it did not. */
  readonly refused: string | null;
  /** Why the record can't be used at all. */
  readonly problem: Problem | null;
  /** Why the arguments can't be used. */
  readonly argsProblem: Problem | null;
}

/** A whole run, ready to be re-checked any number of times. */
export interface FoldedRun {
  readonly runId: string;
  readonly status: string;
  /** Null where no `run.created` was seen. */
  readonly created: CreatedRecord | null;
  /** Whether the run has step entries; without them steps are inferred. */
  readonly stepsRecorded: boolean;
  readonly steps: readonly StepRecord[];
  /** The first approvals, at most `MAX_APPROVALS`. */
  readonly approvals: readonly ApprovalRecord[];
  readonly approvalCount: number;
  readonly evaluations: readonly EvaluationRecord[];
  /** Spec hashes that evaluations name, each once, in order. */
  readonly specHashes: readonly string[];
  /** Whether texts of steps and approvals were kept, so that views can be rebuilt. */
  readonly viewsKept: boolean;
  /** Evaluations that name another call than their step decided. */
  readonly otherCalls: number;
  readonly repeatedApprovals: number;
  /** Sequence numbers of the first and last entry read; null where there was none. */
  readonly range: { readonly from: number; readonly to: number; readonly entries: number } | null;
}

/** Whether the problem is a field that is erased, withheld or a commitment only. */
export function isMissing(problem: Problem): boolean {
  return problem.reason === "erased" || problem.reason === "withheld" || problem.reason === "commitment-only";
}

/** Whether a run with this status goes on no further. */
export function isTerminal(status: string): boolean {
  return status === "COMPLETED" || status === "FAILED" || status === "CANCELLED" || status === "TIMEOUT";
}
