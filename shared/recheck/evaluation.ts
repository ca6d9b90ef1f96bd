/**
 * One line of a report, made from the recorded evaluation and what it came to.
 *
 * @module
 */
import type { Asked } from "./asked.ts";
import { approvalHash, type Sha256 } from "./hash.ts";
import type { Decision, EvaluationRecord, NotRecheckableReason } from "./model.ts";
import { WAITING_FOR_APPROVAL } from "./model.ts";
import type { RecheckedEvaluation, RecheckResult, SpecSource } from "./report.ts";

/** What an evaluation came to, and why. */
export interface Verdict {
  readonly result: RecheckResult;
  readonly detail: string;
}

/** The two sides of a comparison. Their hashes are made when they are read: comparing them takes no hash. */
export interface Compared {
  readonly asked: Asked;
  readonly rechecked: Decision;
  readonly crypto: Sha256;
}

export class Evaluation implements RecheckedEvaluation {
  readonly stepIndex: number;
  readonly stepId: string;
  readonly seq: number;
  readonly tool: string;
  readonly onResume: boolean;
  readonly result: RecheckResult;
  readonly recorded: Decision;
  readonly rechecked: Decision | null;
  readonly detail: string;
  readonly specSource: SpecSource | "";
  readonly policyId: string;
  readonly reason: NotRecheckableReason | null;
  private readonly compared: Compared | null;

  constructor(
    evaluation: EvaluationRecord,
    stepIndex: number,
    result: RecheckResult,
    detail: string,
    rechecked: Decision | null,
    specSource: SpecSource | "",
    reason: NotRecheckableReason | null,
    compared: Compared | null,
  ) {
    this.stepIndex = stepIndex;
    this.stepId = evaluation.stepId ?? "";
    this.seq = evaluation.seq;
    this.tool = evaluation.tool;
    this.onResume = evaluation.failure?.onResume ?? evaluation.view?.status === WAITING_FOR_APPROVAL;
    this.result = result;
    this.recorded = evaluation.decision;
    this.rechecked = rechecked;
    this.detail = detail;
    this.specSource = specSource;
    this.policyId = evaluation.policyId;
    this.reason = reason;
    this.compared = compared;
  }

  get recordedHash(): string {
    if (this.compared === null || this.recorded.outcome !== "require_approval") return "";
    return hashOf(this.compared, this.recorded, this.compared.asked.recordedSpec.text);
  }

  get recheckedHash(): string {
    if (this.compared === null || this.compared.rechecked.outcome !== "require_approval") return "";
    return hashOf(this.compared, this.compared.rechecked, this.compared.asked.request.spec.text);
  }
}

function hashOf(
  { asked, crypto }: Compared,
  { kind, capability, presentation }: Decision,
  spec: string,
): string {
  const { runId, stepId, canonicalArgs: args } = asked.request;
  return approvalHash(crypto, { kind, capability, presentation, runId, stepId, spec, args });
}
