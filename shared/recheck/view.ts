/**
 * The run as a policy saw it at one evaluation, rebuilt from the folded run. Lists are made when they are asked for, so
 * that an evaluation costs the same at any length of the run.
 *
 * @module
 */
import type {
  ApprovalRecord,
  ApprovalStatus,
  CreatedRecord,
  EvaluationRecord,
  FoldedRun,
  RecordedView,
  StepRecord,
} from "./model.ts";

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

/** The view of one evaluation. */
export class RebuiltView implements PolicyView {
  readonly #folded: FoldedRun;
  readonly #created: CreatedRecord;
  readonly #seq: number;
  readonly #recorded: RecordedView;

  constructor(
    folded: FoldedRun,
    created: CreatedRecord,
    evaluation: EvaluationRecord,
    recorded: RecordedView,
  ) {
    this.#folded = folded;
    this.#created = created;
    this.#seq = evaluation.seq;
    this.#recorded = recorded;
  }

  get run(): PolicyRun {
    return {
      id: this.#folded.runId,
      goal: this.#created.goal,
      limits: this.#created.limits,
      createdAt: this.#created.at,
      recorded: this.#recorded,
    };
  }

  get steps(): readonly StepRecord[] | null {
    const count = Number(this.#recorded.steps);
    return count === 0 ? null : this.#folded.steps.slice(0, count);
  }

  get approvals(): readonly PolicyApproval[] | null {
    const count = Number(this.#recorded.approvals);
    if (count === 0) return null;
    return this.#folded.approvals.slice(0, count).map((approval) => approvalAt(approval, this.#seq));
  }
}
