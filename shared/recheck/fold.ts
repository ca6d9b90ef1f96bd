/**
 * The fold from a run's log entries to what a re-check needs: steps, approvals, evaluations. `docs/recheck.md` ("The
 * fold") defines it; this file follows it kind by kind. Memory is bounded by `MAX_RUN_TEXT`, not by the run.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { RunsealError } from "../errors.ts";
import { hasUnheldNumber } from "./decimal.ts";
import { decodeDecision, decodeView, viewHasTextNumber } from "./decode.ts";
import { detached, FieldReader } from "./fields.ts";
import { ApprovalFold } from "./fold-approvals.ts";
import { StepFold } from "./fold-steps.ts";
import { exceedsPage, MAX_PAGE_TEXT } from "./limits.ts";
import type { CreatedRecord, Decision, EvaluationRecord, FoldedRun, Problem, RecordedView } from "./model.ts";
import { NO_DECISION } from "./model.ts";
import { statusAfter } from "./status.ts";
import { NO_ROOM, TextBudget } from "./text-budget.ts";

const POLICY_ERROR = "policy error: ";
const CREATED_PROBLEM = "its run.created is missing or longer than MaxPageText";
const POLICY_OF = "its policy.evaluated";

/** Kinds that can lie between a `policy.evaluated` and the `step.failed` that is about it. */
const RUNTIME_KIND = /^(?:run|step|policy|approval|tool\.call|model|limit|loop)\./;

export interface FoldOptions {
  /**
   * Whether texts of steps and approvals are kept, so that a policy can be handed views. Turned off for a policy that
   * reads none (`Policy.readsView`).
   */
  readonly keepViews?: boolean;
  /** UTF-16 units of text to keep, `MAX_RUN_TEXT` unless told. */
  readonly maxText?: number;
}

interface EvaluationDraft extends EvaluationRecord {
  stepPlace: number;
  refused: string | null;
}

/** Takes the entries of one run in the order of `seq`, and gives the run. */
export class RunFold {
  readonly #runId: string;
  readonly #keepViews: boolean;
  readonly #budget: TextBudget;
  readonly #steps: StepFold;
  readonly #approvals: ApprovalFold;
  readonly #evaluations: EvaluationDraft[] = [];
  readonly #specHashes = new Set<string>();
  #created: CreatedRecord | null = null;
  #status = "UNKNOWN";
  #otherCalls = 0;
  #range: { from: number; to: number; entries: number } | null = null;
  /** The evaluation that the run's last entry recorded; null where that entry was another one. */
  #justEvaluated: { readonly step: string | null; readonly evaluation: EvaluationDraft } | null = null;

  constructor(runId: string, options: FoldOptions = {}) {
    this.#runId = runId;
    this.#keepViews = options.keepViews ?? true;
    this.#budget = new TextBudget(options.maxText);
    this.#steps = new StepFold(this.#budget, this.#keepViews);
    this.#approvals = new ApprovalFold(this.#budget, this.#keepViews);
  }

  /** UTF-16 units of text that are kept so far. */
  get keptText(): number {
    return this.#budget.used;
  }

  /** Throws `RunsealError("fold-run")` for an entry of another run, and `"fold-order"` for one out of order. */
  add(entry: EntryView): void {
    if (entry.run !== this.#runId) throw new RunsealError("fold-run", "the entry is not one of this run");
    const last = this.#range?.to ?? 0;
    if (entry.seq <= last)
      throw new RunsealError("fold-order", "entries have to come in the order of their seq");
    this.#range = {
      from: this.#range?.from ?? entry.seq,
      to: entry.seq,
      entries: (this.#range?.entries ?? 0) + 1,
    };
    this.#status = statusAfter(this.#status, entry);
    const justEvaluated = this.#justEvaluated;
    if (RUNTIME_KIND.test(entry.kind)) this.#justEvaluated = null;
    switch (entry.kind) {
      case "run.created":
        this.#created ??= this.#readCreated(entry);
        break;
      case "step.started":
        this.#steps.started(entry);
        break;
      case "step.decided":
        this.#steps.decided(entry);
        break;
      case "step.interrupted":
        this.#steps.interrupted(entry);
        break;
      case "step.failed":
        this.#policyFailure(entry, justEvaluated);
        this.#steps.failed(entry);
        break;
      case "policy.evaluated":
        this.#evaluated(entry);
        break;
      case "approval.requested":
        this.#approvals.requested(entry);
        this.#steps.awaitingApproval(entry.step);
        break;
      case "approval.granted":
      case "approval.denied":
      case "approval.expired":
        this.#approvals.decided(entry);
        break;
      case "tool.call.started":
        this.#steps.callStarted(entry);
        break;
      case "tool.call.completed":
        this.#steps.callCompleted(entry);
        break;
    }
  }

  finish(): FoldedRun {
    const { recorded, steps, at } = this.#steps.finish();
    for (const evaluation of this.#evaluations) evaluation.stepPlace = at.get(evaluation.stepId ?? "") ?? -1;
    return {
      runId: this.#runId,
      status: this.#status,
      created: this.#created,
      stepsRecorded: recorded,
      steps,
      approvals: this.#approvals.finish(),
      approvalCount: this.#approvals.count,
      evaluations: this.#evaluations,
      specHashes: [...this.#specHashes],
      viewsKept: this.#keepViews,
      otherCalls: this.#otherCalls,
      repeatedApprovals: this.#approvals.repeated,
      range: this.#range,
    };
  }

  #readCreated(entry: EntryView): CreatedRecord {
    const fields = new FieldReader(entry.action);
    const goal = fields.string("goal");
    const limits = fields.value("limits") ?? null;
    const tools = entry.action.get("tools");
    const toolsText = tools !== undefined && "text" in tools ? tools.text : "";
    const toolsRecorded = tools !== undefined && toolsText !== "null";
    let problem = fields.problem("its run.created");
    if (problem?.reason === "undecodable") problem = { reason: "no-run-created", words: CREATED_PROBLEM };
    if (problem === null && exceedsPage(goal, limits ?? "", toolsText)) {
      problem = { reason: "no-run-created", words: CREATED_PROBLEM };
    }
    const kept = problem === null && this.#budget.take(goal.length + (limits?.length ?? 0));
    return {
      at: entry.occurred_at,
      goal: kept ? detached(goal) : "",
      limits: kept && limits !== null ? detached(limits) : null,
      toolsRecorded,
      problem: problem ?? (kept ? null : NO_ROOM),
    };
  }

  #evaluated(entry: EntryView): void {
    const call = this.#readCall(entry);
    const record = this.#readPolicy(entry);
    const { specHash, policyId, decision } = record;
    if (specHash !== "") this.#specHashes.add(specHash);
    const problem = call.problem ?? record.problem;
    const { step } = entry;
    if (call.argsProblem === null && this.#steps.decidedOtherwise(step, call.tool, call.args))
      this.#otherCalls++;
    this.#steps.evaluated(step, { ...call, problem: call.argsProblem }, decision, record);
    const evaluation: EvaluationDraft = {
      seq: entry.seq,
      hash: detached(entry.hash),
      stepId: step === null ? null : detached(step),
      stepPlace: -1,
      tool: call.tool,
      args: call.args,
      decision,
      specHash,
      policyId,
      view: record.view,
      textNumbers: hasUnheldNumber(call.args) || (record.view !== null && viewHasTextNumber(record.view)),
      failure: null,
      refused: null,
      problem,
      argsProblem: call.argsProblem,
    };
    this.#evaluations.push(evaluation);
    this.#justEvaluated = { step, evaluation };
  }

  /** The call that was evaluated. A tool that is not there leaves nothing to ask about. */
  #readCall(entry: EntryView): {
    tool: string;
    args: string;
    problem: Problem | null;
    argsProblem: Problem | null;
  } {
    const toolField = new FieldReader(entry.action);
    const tool = toolField.string("tool");
    const argsField = new FieldReader(entry.action);
    const args = argsField.text("args") ?? "{}";
    const problem = toolField.problem(POLICY_OF);
    let argsProblem = argsField.problem(POLICY_OF);
    if (exceedsPage(tool, args)) {
      argsProblem = { reason: "too-long", words: "its arguments are longer than MaxPageText" };
      return { tool: this.#budget.name(tool.slice(0, 256)) ?? "", args: "", problem, argsProblem };
    }
    const keptTool = this.#budget.name(tool);
    if (keptTool === null || !this.#budget.take(args.length)) {
      return { tool: keptTool ?? "", args: "", problem: problem ?? NO_ROOM, argsProblem };
    }
    return { tool: keptTool, args: argsProblem === null ? detached(args) : "", problem, argsProblem };
  }

  /** What agentrt's step.policy holds: the decision, the identities and the view. */
  #readPolicy(entry: EntryView): {
    decision: Decision;
    specHash: string;
    policyId: string;
    view: RecordedView | null;
    problem: Problem | null;
  } {
    const fields = new FieldReader(entry.action);
    const hash = fields.string("spec_hash");
    const decisionText = fields.text("decision");
    const viewText = fields.text("view");
    // An identity that is not there is an unknown identity, and no reason not to re-check.
    const identity = new FieldReader(entry.action);
    const policyId = identity.string("policy_id");
    const unusable = (problem: Problem) => ({
      decision: NO_DECISION,
      specHash: "",
      policyId: "",
      view: null,
      problem,
    });
    if (exceedsPage(hash, policyId, decisionText ?? "", viewText ?? "")) {
      return unusable({ reason: "too-long", words: "its step.policy is longer than MaxPageText" });
    }
    const keptHash = this.#budget.name(hash);
    const keptId = this.#budget.name(policyId);
    if (keptHash === null || keptId === null || !this.#budget.take(decisionText?.length ?? 0)) {
      return unusable(NO_ROOM);
    }
    const decision = decodeDecision(decisionText);
    const view = decodeView(viewText);
    let problem = fields.missing === null ? null : fields.problem(POLICY_OF);
    const why =
      fields.wrong ?? identity.wrong ?? (decision.ok ? null : decision.why) ?? (view.ok ? null : view.why);
    if (problem === null && why !== null) {
      problem = { reason: "undecodable", words: `its step.policy does not decode: ${why}` };
    }
    return {
      decision: decision.ok ? decision.value : NO_DECISION,
      specHash: keptHash,
      policyId: keptId,
      view: view.ok ? view.value : null,
      problem,
    };
  }

  /** A `step.failed` that is about a policy: it refused a decision as invalid, or the policy gave none. */
  #policyFailure(
    entry: EntryView,
    before: { readonly step: string | null; readonly evaluation: EvaluationDraft } | null,
  ): void {
    const fields = new FieldReader(entry.action);
    const detail = fields.string("detail");
    const step = this.#steps.peek(entry.step);
    if (fields.missing !== null) {
      // Whether the policy failed can't be told: a step that decided a call and was never evaluated may be one.
      if (!step.evaluated && step.decidedCall) this.#failure(entry, "", fields.problem("its step.failed"));
      return;
    }
    if (!detail.startsWith(POLICY_ERROR)) return;
    const why = detail.slice(POLICY_ERROR.length, MAX_PAGE_TEXT);
    const kept = this.#budget.take(why.length) ? detached(why) : "";
    if (before !== null && before.step === entry.step) before.evaluation.refused = kept;
    else this.#failure(entry, kept, null);
  }

  #failure(entry: EntryView, why: string, problem: Problem | null): void {
    const step = this.#steps.peek(entry.step);
    const identity = new FieldReader(entry.action).string("policy_id");
    this.#evaluations.push({
      seq: entry.seq,
      hash: detached(entry.hash),
      stepId: entry.step === null ? null : detached(entry.step),
      stepPlace: -1,
      tool: step.tool,
      args: "",
      decision: NO_DECISION,
      specHash: "",
      policyId: (identity === "" ? step.policyId : this.#budget.name(identity.slice(0, 256))) ?? "",
      view: null,
      textNumbers: false,
      failure: problem === null ? { why, onResume: step.evaluated } : null,
      refused: null,
      problem,
      argsProblem: null,
    });
  }
}
