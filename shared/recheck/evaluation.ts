/**
 * One line of a report, made from the recorded evaluation and the verdict on it.
 *
 * @module
 */
import type { Decision, EvaluationRecord } from "./model.ts";
import { WAITING_FOR_APPROVAL } from "./model.ts";
import type { RecheckedEvaluation } from "./report.ts";

/** What the comparison came to. */
export type Verdict = Pick<RecheckedEvaluation, "result" | "detail"> &
  Partial<Pick<RecheckedEvaluation, "rechecked" | "specSource" | "reason">>;

/** One line of the report. Hashes are made when they are read: a comparison needs only what they are over. */
export class Evaluation implements RecheckedEvaluation {
  readonly stepIndex: number;
  readonly stepId: string;
  readonly seq: number;
  readonly tool: string;
  readonly onResume: boolean;
  readonly result: RecheckedEvaluation["result"];
  readonly recorded: Decision;
  readonly rechecked: Decision | null;
  readonly detail: string;
  readonly specSource: RecheckedEvaluation["specSource"];
  readonly policyId: string;
  readonly reason: RecheckedEvaluation["reason"];
  readonly #hash: ((side: "recorded" | "rechecked") => string) | null;

  constructor(
    evaluation: EvaluationRecord,
    stepIndex: number,
    verdict: Verdict,
    hash: ((side: "recorded" | "rechecked") => string) | null,
  ) {
    this.stepIndex = stepIndex;
    this.stepId = evaluation.stepId ?? "";
    this.seq = evaluation.seq;
    this.tool = evaluation.tool;
    this.onResume = evaluation.failure?.onResume ?? evaluation.view?.status === WAITING_FOR_APPROVAL;
    this.result = verdict.result;
    this.recorded = evaluation.decision;
    this.rechecked = verdict.rechecked ?? null;
    this.detail = verdict.detail;
    this.specSource = verdict.specSource ?? "";
    this.policyId = evaluation.policyId;
    this.reason = verdict.reason ?? null;
    this.#hash = hash;
  }

  get recordedHash(): string {
    return this.#hash === null || this.recorded.outcome !== "require_approval" ? "" : this.#hash("recorded");
  }

  get recheckedHash(): string {
    return this.#hash === null || this.rechecked?.outcome !== "require_approval"
      ? ""
      : this.#hash("rechecked");
  }
}
