/**
 * One line of a report, made from the recorded evaluation and what it came to.
 *
 * @module
 */
import { approvalHash, type Sha256 } from "./hash.ts";
import type { Decision, EvaluationRecord, NotRecheckableReason } from "./model.ts";
import { WAITING_FOR_APPROVAL } from "./model.ts";
import type { RecheckedEvaluation, RecheckResult, SpecSource } from "./report.ts";

/** What an evaluation came to, and why. */
export interface Verdict {
  readonly result: RecheckResult;
  readonly detail: string;
}

/** What the hashes of the two sides are over. They are made when they are read: comparing the sides takes no hash. */
export interface Compared {
  readonly runId: string;
  readonly args: string;
  readonly recordedSpec: string;
  readonly spec: string;
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
    if (this.compared === null) return "";
    return this.#hash(this.compared, this.recorded, this.compared.recordedSpec);
  }

  get recheckedHash(): string {
    if (this.compared === null || this.rechecked === null) return "";
    return this.#hash(this.compared, this.rechecked, this.compared.spec);
  }

  #hash({ runId, args, crypto }: Compared, decision: Decision, spec: string): string {
    const { outcome, kind, capability, presentation } = decision;
    if (outcome !== "require_approval") return "";
    return approvalHash(crypto, { kind, capability, presentation, runId, stepId: this.stepId, spec, args });
  }
}
