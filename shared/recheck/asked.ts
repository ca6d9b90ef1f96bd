/**
 * An evaluation that a policy is to be asked about: the request and, in one object with it, the run as the policy saw it,
 * rebuilt from the folded run. Lists are made when they are read, so that an evaluation costs the same at any length of
 * the run.
 *
 * @module
 */
import type { CreatedRecord, EvaluationRecord, FoldedRun, RecordedView, StepRecord } from "./model.ts";
import { PolicyRequest } from "./policy.ts";
import type { ToolSpec } from "./spec.ts";
import { approvalAt, type PolicyApproval, type PolicyRun, type PolicyView } from "./view.ts";

export class Asked extends PolicyRequest implements PolicyView {
  readonly evaluation: EvaluationRecord;
  readonly stepIndex: number;
  /** The spec that was recorded; the request has that, or the current one. */
  readonly recordedSpec: ToolSpec;
  private readonly folded: FoldedRun;
  private readonly created: CreatedRecord;
  private readonly recorded: RecordedView;

  constructor(
    folded: FoldedRun,
    created: CreatedRecord,
    evaluation: EvaluationRecord,
    recorded: RecordedView,
    stepIndex: number,
    recordedSpec: ToolSpec,
    spec: ToolSpec,
    principal: string,
  ) {
    super(folded.runId, evaluation.stepId ?? "", evaluation.tool, spec, evaluation.args, principal);
    this.evaluation = evaluation;
    this.stepIndex = stepIndex;
    this.recordedSpec = recordedSpec;
    this.folded = folded;
    this.created = created;
    this.recorded = recorded;
  }

  get run(): PolicyRun {
    const { goal, limits, at } = this.created;
    return { id: this.folded.runId, goal, limits, createdAt: at, recorded: this.recorded };
  }

  get steps(): readonly StepRecord[] | null {
    const count = Number(this.recorded.steps);
    return count === 0 ? null : this.folded.steps.slice(0, count);
  }

  get approvals(): readonly PolicyApproval[] | null {
    const count = Number(this.recorded.approvals);
    if (count === 0) return null;
    return this.folded.approvals.slice(0, count).map((approval) => approvalAt(approval, this.evaluation.seq));
  }
}
