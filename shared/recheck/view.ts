/**
 * The run as a policy is handed it: what it saw at one evaluation.
 *
 * @module
 */
import type { ApprovalRecord, ApprovalStatus, RecordedView, StepRecord } from "./model.ts";

export interface PolicyRun {
  readonly id: string;
  readonly goal: string;
  /** Canonical JSON; null where the run recorded none. */
  readonly limits: string | null;
  /** Nanoseconds; creation and start. Null where the log does not know it. */
  readonly createdAt: bigint | null;
  /** Status and counts as the evaluation recorded them. */
  readonly recorded: RecordedView;
}

/** An approval as it stood at the evaluation. */
export interface PolicyApproval extends ApprovalRecord {
  readonly status: ApprovalStatus;
  readonly decidedAt: bigint | null;
  readonly decidedBy: string;
  readonly note: string;
}

/** What a policy may consult beside the request. */
export interface PolicyView {
  readonly run: PolicyRun;
  /** Null, never empty, where the policy saw none. */
  readonly steps: readonly StepRecord[] | null;
  readonly approvals: readonly PolicyApproval[] | null;
}

/** The approval with the status of its last decision before `seq`: order decides, and never time. */
export function approvalAt(approval: ApprovalRecord, seq: number): PolicyApproval {
  let last: ApprovalRecord["decisions"][number] | undefined;
  for (const decision of approval.decisions) {
    if (decision.seq >= seq) break;
    last = decision;
  }
  return {
    ...approval,
    status: last?.status ?? "pending",
    decidedAt: last?.at ?? null,
    decidedBy: last?.by ?? "",
    note: last?.note ?? "",
  };
}
