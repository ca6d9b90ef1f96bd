/**
 * Re-checking a folded run under a policy: the decision table of docs/recheck.md ("The comparison"), row by row.
 *
 * @module
 */
import { pureCrypto } from "../crypto/pure.ts";
import { RunsealError } from "../errors.ts";
import { checkArguments } from "./arguments.ts";
import { Asked } from "./asked.ts";
import { hasUnheldNumber } from "./decimal.ts";
import { Evaluation } from "./evaluation.ts";
import type { Sha256 } from "./hash.ts";
import { MAX_APPROVALS } from "./limits.ts";
import type { CreatedRecord, EvaluationRecord, FoldedRun, Problem, StepRecord } from "./model.ts";
import { INTERRUPTED_SIDE_EFFECT, isMissing, isTerminal } from "./model.ts";
import { checkPolicyId, type Policy, type PolicyAnswer } from "./policy.ts";
import { type RecheckedEvaluation, RecheckReport, type SpecSource } from "./report.ts";
import { currentTools, SpecBook, type ToolSpec } from "./spec.ts";
import { canonicalDecision, difference, recordedTexts, refusedVerdict } from "./verdict.ts";

export interface RecheckOptions {
  /** Which spec a request carries; the recorded one unless told. */
  readonly specSource?: SpecSource;
  /** JSON text of a stored spec by its hash. `FoldedRun.specHashes` says which will be asked for. */
  readonly specs: (hash: string) => string | undefined;
  /** JSON texts of the tools as they are now; demanded, and only read, with `specSource: "current"`. */
  readonly currentTools?: readonly string[];
  /** Noble unless told. */
  readonly crypto?: Sha256;
  /** Name of the principal whose log the run is in; "" unless told. */
  readonly principal?: string;
}

/** Re-checks under a policy that may answer later. Throws what the policy throws, and what `recheckRunSync` does. */
export async function recheckRun(
  folded: FoldedRun,
  policy: Policy,
  options: RecheckOptions,
): Promise<RecheckReport> {
  const recheck = new Recheck(folded, policy, options);
  const out: RecheckedEvaluation[] = [];
  for (const evaluation of folded.evaluations) {
    const prepared = recheck.prepare(evaluation);
    if (!(prepared instanceof Asked)) {
      out.push(prepared);
      continue;
    }
    const answer = recheck.ask(prepared);
    out.push(recheck.compare(prepared, answer instanceof Promise ? await answer : answer));
  }
  return recheck.report(out);
}

/**
 * Re-checks under a policy that answers at once, as `rules` does. Throws `RunsealError`: `"policy-identity"` for an
 * identity that none can have, `"policy-async"` for a policy that answers later, `"views-not-kept"` for a policy that
 * reads views of a run that was folded without them, `"current-tool"` for current tools that can't be used.
 */
export function recheckRunSync(folded: FoldedRun, policy: Policy, options: RecheckOptions): RecheckReport {
  const recheck = new Recheck(folded, policy, options);
  const out: RecheckedEvaluation[] = [];
  for (const evaluation of folded.evaluations) {
    const prepared = recheck.prepare(evaluation);
    if (!(prepared instanceof Asked)) {
      out.push(prepared);
      continue;
    }
    const answer = recheck.ask(prepared);
    if (answer instanceof Promise)
      throw new RunsealError("policy-async", "the policy does not answer at once");
    out.push(recheck.compare(prepared, answer));
  }
  return recheck.report(out);
}

/** One re-check at work: each evaluation is prepared, asked about, compared. */
export class Recheck {
  readonly #folded: FoldedRun;
  readonly #policy: Policy;
  readonly #source: SpecSource;
  readonly #crypto: Sha256;
  readonly #specs: SpecBook;
  readonly #current: ReadonlyMap<string, ToolSpec>;
  readonly #readsView: boolean;
  /** Places of the first step and approval that no view can show; the list's length where all can. */
  readonly #badStep: number;
  readonly #badApproval: number;
  readonly #runHasTextNumbers: boolean;
  readonly #principal: string;
  readonly #unchecked = new Map<string, string>();
  /** How often each note came with an answer. */
  readonly #answerNotes = new Map<string, number>();
  #textNumbers = 0;
  #otherTools = 0;

  constructor(folded: FoldedRun, policy: Policy, options: RecheckOptions) {
    checkPolicyId(policy.id);
    this.#readsView = policy.readsView ?? true;
    if (this.#readsView && !folded.viewsKept) {
      throw new RunsealError("views-not-kept", "the policy reads views, and the run was folded without them");
    }
    this.#folded = folded;
    this.#policy = policy;
    this.#source = options.specSource ?? "recorded";
    this.#crypto = options.crypto ?? pureCrypto;
    this.#principal = options.principal ?? "";
    this.#specs = new SpecBook(options.specs, this.#crypto);
    this.#current = this.#source === "current" ? currentTools(options.currentTools ?? []) : new Map();
    this.#badStep = firstIndex(folded.steps, ({ problem }) => this.#blocks(problem));
    this.#badApproval = firstIndex(folded.approvals, ({ problem }) => this.#blocks(problem));
    this.#runHasTextNumbers = hasUnheldNumber(folded.created?.limits ?? "");
  }

  /** Rows 1 to 6: the evaluation as it is to be asked about, or what it came to without that. */
  prepare(evaluation: EvaluationRecord): Asked | Evaluation {
    const { view, specHash, failure } = evaluation;
    const step = evaluation.stepPlace < 0 ? undefined : this.#folded.steps[evaluation.stepPlace];
    const stepIndex = step?.index ?? -1;
    if (failure !== null) {
      const words = `policy failed; no evaluation recorded: ${failure.why}`;
      return new Evaluation(evaluation, stepIndex, "not_recheckable", words, null, "", "policy-failed", null);
    }
    if (evaluation.problem !== null) return cannot(evaluation, stepIndex, evaluation.problem);
    if (view === null) {
      if (specHash === "") return cannot(evaluation, stepIndex, BEFORE_V0_5_0);
      const interrupted = evaluation.decision.kind === INTERRUPTED_SIDE_EFFECT;
      const words = `not a policy evaluation: ${interrupted ? "an interrupted side effect" : "a reconciliation"}'s pause`;
      return new Evaluation(evaluation, stepIndex, "not_a_policy_evaluation", words, null, "", null, null);
    }
    const { created } = this.#folded;
    const problem =
      (specHash === "" ? NO_SPEC : null) ??
      this.#stepProblem(step) ??
      evaluation.argsProblem ??
      this.#createdProblem(created) ??
      this.#viewProblem(view.steps, view.approvals);
    if (problem !== null) return cannot(evaluation, stepIndex, problem);
    if (created === null) return cannot(evaluation, stepIndex, NO_RUN_CREATED);
    const read = this.#specs.get(specHash);
    if ("problem" in read) return cannot(evaluation, stepIndex, read.problem);
    if (read.spec.name !== evaluation.tool) this.#otherTools++;
    let { spec } = read;
    if (this.#source === "current") {
      const current = this.#currentSpec(evaluation);
      if (typeof current === "string") {
        return new Evaluation(evaluation, stepIndex, "different", current, null, "current", null, null);
      }
      spec = current;
    }
    if (evaluation.textNumbers || spec.textNumbers || this.#runHasTextNumbers) this.#textNumbers++;
    return new Asked(this.#folded, created, evaluation, view, stepIndex, read.spec, spec, this.#principal);
  }

  ask(asked: Asked): PolicyAnswer | Promise<PolicyAnswer> {
    return this.#policy.decideAgain === undefined
      ? this.#policy.decide(asked, asked)
      : this.#policy.decideAgain(asked, asked, asked.evaluation.decision, asked.evaluation);
  }

  /** Rows 7 to 11. */
  compare(asked: Asked, answer: PolicyAnswer): Evaluation {
    const { evaluation, stepIndex } = asked;
    const recorded = evaluation.decision;
    const source = this.#source;
    if (!answer.ok) {
      if (answer.unanswered === true)
        return cannot(evaluation, stepIndex, { reason: "no-decision", words: answer.error });
      const words = `policy failed: ${answer.error}`;
      return new Evaluation(evaluation, stepIndex, "different", words, null, source, null, null);
    }
    if (answer.note !== undefined)
      this.#answerNotes.set(answer.note, (this.#answerNotes.get(answer.note) ?? 0) + 1);
    const { refused } = evaluation;
    let rechecked = recordedTexts(answer.decision, recorded);
    let refusal: string | null = null;
    if (rechecked === null) ({ decision: rechecked, refusal } = canonicalDecision(answer.decision));
    if (refusal !== null || refused !== null) {
      const { result, detail } = refusedVerdict(refusal, refused, recorded, rechecked);
      return new Evaluation(evaluation, stepIndex, result, detail, rechecked, source, null, null);
    }
    const words = difference(recorded, rechecked, asked.recordedSpec.text === asked.spec.text);
    const result = words === null ? "same" : "different";
    // Kept only where a side has a hash: the request and the view are let go.
    const hashed = recorded.outcome === "require_approval" || rechecked.outcome === "require_approval";
    const compared = hashed
      ? {
          runId: this.#folded.runId,
          args: evaluation.args,
          recordedSpec: asked.recordedSpec.text,
          spec: asked.spec.text,
          crypto: this.#crypto,
        }
      : null;
    return new Evaluation(evaluation, stepIndex, result, words ?? "", rechecked, source, null, compared);
  }

  report(evaluations: readonly RecheckedEvaluation[]): RecheckReport {
    const { runId, status, created, otherCalls, repeatedApprovals } = this.#folded;
    const notes: string[] = [];
    if (!isTerminal(status)) notes.push(`the run is ${status}: re-checked up to its current state`);
    if (created !== null && !created.toolsRecorded) {
      notes.push("recorded before v0.5.0: its decisions recorded then cannot be re-checked");
    }
    if (evaluations.length === 0) notes.push("no policy evaluation is recorded");
    const counted = (count: number, what: string) => {
      if (count > 0) notes.push(`${count} ${what}`);
    };
    counted(
      this.#textNumbers,
      "evaluation(s) hold a number that a double can't hold: the policy is handed its text",
    );
    counted(otherCalls, "evaluation(s) name another call than their step decided");
    counted(this.#otherTools, "evaluation(s) were recorded with the spec of another tool");
    counted(repeatedApprovals, "approval request(s) repeat an approval id and were not counted");
    for (const [note, count] of this.#answerNotes) counted(count, note);
    for (const [tool, why] of this.#unchecked) {
      notes.push(`the arguments of ${tool} were not checked against its current schema: ${why}`);
    }
    const specSource = this.#source;
    return new RecheckReport({
      runId,
      runStatus: status,
      policyId: this.#policy.id,
      specSource,
      notes,
      evaluations,
    });
  }

  /** Row 6: the spec of the tool as it is now, or what refuses the request before the policy. */
  #currentSpec({ tool, args }: EvaluationRecord): ToolSpec | string {
    const current = this.#current.get(tool);
    if (current === undefined) {
      return `tool ${JSON.stringify(tool)} is not among the current tools: the request would be refused before the policy`;
    }
    const check = checkArguments(current.inputSchema, args);
    if (check.result === "fails") return `the arguments fail the current tool's schema: ${check.why}`;
    if (check.result === "unchecked" && !this.#unchecked.has(tool)) this.#unchecked.set(tool, check.why);
    return current;
  }

  /** The evaluated step itself: a run without step entries has nothing to say about it. */
  #stepProblem(step: StepRecord | undefined): Problem | null {
    if (!this.#folded.stepsRecorded) return null;
    if (step === undefined) return NO_STEP;
    const { index, decisionKind, decisionProblem } = step;
    // The call is the evaluation's own: a field of the step's decision that is not there is not missed.
    if (decisionProblem !== null && !isMissing(decisionProblem)) {
      return { reason: decisionProblem.reason, words: `step ${index}: ${decisionProblem.words}` };
    }
    if (decisionKind === "tool_call") return null;
    return { reason: "no-tool-call", words: `step ${index} recorded no tool call` };
  }

  #createdProblem(created: CreatedRecord | null): Problem | null {
    if (created === null) return NO_RUN_CREATED;
    return this.#blocks(created.problem) ? created.problem : null;
  }

  #viewProblem(stepCount: number | string, approvalCount: number | string): Problem | null {
    const { steps, approvals, approvalCount: approvalTotal } = this.#folded;
    if (!within(stepCount, steps.length) || !within(approvalCount, approvalTotal)) {
      const words =
        `the view counted ${stepCount} steps and ${approvalCount} approvals; ` +
        `the run has ${steps.length} and ${approvalTotal}`;
      return { reason: "view-out-of-range", words };
    }
    if (approvalCount > approvals.length) {
      const words = `the view counted ${approvalCount} approvals, more than the ${MAX_APPROVALS} Recheck reads whole`;
      return { reason: "too-many-approvals", words };
    }
    if (this.#badStep < stepCount) {
      const step = steps[this.#badStep];
      if (step?.problem != null)
        return { ...step.problem, words: `step ${step.index}: ${step.problem.words}` };
    }
    if (this.#badApproval < approvalCount) {
      const approval = approvals[this.#badApproval];
      if (approval?.problem != null) {
        return { ...approval.problem, words: `approval ${approval.id}: ${approval.problem.words}` };
      }
    }
    return null;
  }

  /** Whether the problem stands in the way: a policy that reads no view does not miss what only a view would show. */
  #blocks(problem: Problem | null): boolean {
    return problem !== null && (this.#readsView || !isMissing(problem));
  }
}

/** What a policy was not asked about, and why. */
function cannot(evaluation: EvaluationRecord, stepIndex: number, { reason, words }: Problem): Evaluation {
  const detail = `not re-checkable: ${words}`;
  return new Evaluation(evaluation, stepIndex, "not_recheckable", detail, null, "", reason, null);
}

function within(count: number | string, total: number): count is number {
  return typeof count === "number" && count >= 0 && count <= total;
}

const BEFORE_V0_5_0: Problem = { reason: "before-v0.5.0", words: "recorded before v0.5.0" };
const NO_STEP: Problem = { reason: "no-step", words: "its step is not recorded" };
const NO_SPEC: Problem = { reason: "no-spec", words: "no spec is recorded" };
const NO_RUN_CREATED: Problem = {
  reason: "no-run-created",
  words: "its run.created is missing or longer than MaxPageText",
};

function firstIndex<T>(list: readonly T[], test: (item: T) => boolean): number {
  const at = list.findIndex(test);
  return at < 0 ? list.length : at;
}
