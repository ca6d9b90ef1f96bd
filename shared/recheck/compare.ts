/**
 * Re-checking a folded run under a policy: the decision table of docs/recheck.md ("The comparison"), row by row.
 *
 * @module
 */
import { pureCrypto } from "../crypto/pure.ts";
import { RunsealError } from "../errors.ts";
import { checkArguments } from "./arguments.ts";
import { hasUnheldNumber } from "./decimal.ts";
import { Evaluation, type Verdict } from "./evaluation.ts";
import { approvalHash, type Sha256 } from "./hash.ts";
import { MAX_APPROVALS } from "./limits.ts";
import type { CreatedRecord, EvaluationRecord, FoldedRun, Problem } from "./model.ts";
import { INTERRUPTED_SIDE_EFFECT, isMissing, isTerminal } from "./model.ts";
import { checkPolicyId, type Policy, type PolicyAnswer, PolicyRequest } from "./policy.ts";
import { type RecheckedEvaluation, RecheckReport, type SpecSource } from "./report.ts";
import { currentTools, SpecBook, type ToolSpec } from "./spec.ts";
import { canonicalDecision, difference, refusedVerdict } from "./verdict.ts";
import { RebuiltView } from "./view.ts";

export interface RecheckOptions {
  /** Which spec a request carries; the recorded one unless told. */
  readonly specSource?: SpecSource;
  /** JSON text of a stored spec by its hash. `FoldedRun.specHashes` says which will be asked for. */
  readonly specs: (hash: string) => string | undefined;
  /** JSON texts of the tools as they are now; demanded, and only read, with `specSource: "current"`. */
  readonly currentTools?: readonly string[];
  /** Noble unless told. */
  readonly crypto?: Sha256;
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

/** An evaluation that the policy is to be asked about. */
class Asked {
  readonly evaluation: EvaluationRecord;
  readonly stepIndex: number;
  readonly request: PolicyRequest;
  readonly view: RebuiltView;
  readonly recordedSpec: ToolSpec;

  constructor(
    evaluation: EvaluationRecord,
    stepIndex: number,
    request: PolicyRequest,
    view: RebuiltView,
    recordedSpec: ToolSpec,
  ) {
    this.evaluation = evaluation;
    this.stepIndex = stepIndex;
    this.request = request;
    this.view = view;
    this.recordedSpec = recordedSpec;
  }
}

class Recheck {
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
  readonly #unchecked = new Map<string, string>();
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
    this.#specs = new SpecBook(options.specs, this.#crypto);
    this.#current = this.#source === "current" ? currentTools(options.currentTools ?? []) : new Map();
    this.#badStep = firstIndex(folded.steps, ({ problem }) => this.#blocks(problem));
    this.#badApproval = firstIndex(folded.approvals, ({ problem }) => this.#blocks(problem));
    this.#runHasTextNumbers = hasUnheldNumber(folded.created?.limits ?? "");
  }

  /** Rows 1 to 6: the evaluation as it is to be asked about, or what it came to without that. */
  prepare(evaluation: EvaluationRecord): Asked | RecheckedEvaluation {
    const step = evaluation.stepId === null ? undefined : this.#step(evaluation.stepId);
    const stepIndex = step?.index ?? -1;
    const done = (verdict: Verdict) => new Evaluation(evaluation, stepIndex, verdict, null);
    const cannot = ({ reason, words }: Problem) =>
      done({ result: "not_recheckable", detail: `not re-checkable: ${words}`, reason });

    if (evaluation.failure !== null) {
      const detail = `policy failed; no evaluation recorded: ${evaluation.failure.why}`;
      return done({ result: "not_recheckable", detail, reason: "policy-failed" });
    }
    if (evaluation.problem !== null) return cannot(evaluation.problem);
    const { view, specHash } = evaluation;
    if (view === null) {
      if (specHash === "") return cannot({ reason: "before-v0.5.0", words: "recorded before v0.5.0" });
      const pause =
        evaluation.decision.kind === INTERRUPTED_SIDE_EFFECT
          ? "an interrupted side effect"
          : "a reconciliation";
      return done({ result: "not_a_policy_evaluation", detail: `not a policy evaluation: ${pause}'s pause` });
    }
    const created = this.#folded.created;
    const problem =
      (specHash === "" ? NO_SPEC : null) ??
      this.#stepProblem(evaluation) ??
      evaluation.argsProblem ??
      this.#createdProblem(created) ??
      this.#viewProblem(view.steps, view.approvals);
    if (problem !== null) return cannot(problem);
    if (created === null) return cannot(NO_RUN_CREATED);

    const read = this.#specs.get(specHash);
    if ("problem" in read) return cannot(read.problem);
    let { spec } = read;
    const { tool } = evaluation;
    if (spec.name !== tool) this.#otherTools++;
    if (this.#source === "current") {
      const current = this.#current.get(tool);
      const different = (detail: string) => done({ result: "different", detail, specSource: "current" });
      if (current === undefined) {
        return different(
          `tool ${JSON.stringify(tool)} is not among the current tools: the request would be refused before the policy`,
        );
      }
      const check = checkArguments(current.inputSchema, evaluation.args);
      if (check.result === "fails")
        return different(`the arguments fail the current tool's schema: ${check.why}`);
      if (check.result === "unchecked" && !this.#unchecked.has(tool)) this.#unchecked.set(tool, check.why);
      spec = current;
    }
    if (evaluation.textNumbers || spec.textNumbers || this.#runHasTextNumbers) this.#textNumbers++;
    const request = new PolicyRequest(
      this.#folded.runId,
      evaluation.stepId ?? "",
      tool,
      spec,
      evaluation.args,
    );
    const rebuilt = new RebuiltView(this.#folded, created, evaluation, view);
    return new Asked(evaluation, stepIndex, request, rebuilt, read.spec);
  }

  ask({ request, view, evaluation }: Asked): PolicyAnswer | Promise<PolicyAnswer> {
    return this.#policy.decideAgain === undefined
      ? this.#policy.decide(request, view)
      : this.#policy.decideAgain(request, view, evaluation.decision);
  }

  /** Rows 7 to 11. */
  compare(asked: Asked, answer: PolicyAnswer): RecheckedEvaluation {
    const { evaluation, stepIndex, request, recordedSpec } = asked;
    const recorded = evaluation.decision;
    const specSource = this.#source;
    if (!answer.ok) {
      const detail = `policy failed: ${answer.error}`;
      return new Evaluation(evaluation, stepIndex, { result: "different", detail, specSource }, null);
    }
    const { decision: rechecked, refusal } = canonicalDecision(answer.decision, recorded);
    const refused = evaluation.refused;
    if (refusal !== null || refused !== null) {
      const verdict = refusedVerdict(refusal, refused, recorded, rechecked);
      return new Evaluation(evaluation, stepIndex, { ...verdict, rechecked, specSource }, null);
    }
    const subject = { runId: request.runId, stepId: request.stepId, args: request.canonicalArgs };
    const hash = (side: "recorded" | "rechecked") => {
      const { kind, capability, presentation } = side === "recorded" ? recorded : rechecked;
      const spec = side === "recorded" ? recordedSpec.text : request.spec.text;
      return approvalHash(this.#crypto, { ...subject, kind, capability, presentation, spec });
    };
    const detail = difference(recorded, rechecked, recordedSpec.text === request.spec.text);
    const result = detail === null ? "same" : "different";
    return new Evaluation(
      evaluation,
      stepIndex,
      { result, detail: detail ?? "", rechecked, specSource },
      hash,
    );
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

  #step(id: string) {
    const at = this.#folded.stepAt.get(id);
    return at === undefined ? undefined : this.#folded.steps[at];
  }

  /** The evaluated step itself: a run without step entries has nothing to say about it. */
  #stepProblem({ stepId }: EvaluationRecord): Problem | null {
    if (!this.#folded.stepsRecorded) return null;
    const step = stepId === null ? undefined : this.#step(stepId);
    if (step === undefined) return { reason: "no-step", words: "its step is not recorded" };
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
    const within = (count: number | string, total: number): count is number =>
      typeof count === "number" && count >= 0 && count <= total;
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

const NO_SPEC: Problem = { reason: "no-spec", words: "no spec is recorded" };
const NO_RUN_CREATED: Problem = {
  reason: "no-run-created",
  words: "its run.created is missing or longer than MaxPageText",
};

function firstIndex<T>(list: readonly T[], test: (item: T) => boolean): number {
  const at = list.findIndex(test);
  return at < 0 ? list.length : at;
}
