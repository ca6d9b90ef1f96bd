/**
 * The steps of a run, folded from its entries (docs/recheck.md, "Steps"). Whether steps are recorded or inferred is
 * known only at the end, so both readings are kept until then.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { detached, FieldReader, integerOf } from "./fields.ts";
import { exceedsPage } from "./limits.ts";
import type { Decision, Problem, StepRecord, StepStatus } from "./model.ts";
import { NO_ROOM, type TextBudget } from "./text-budget.ts";

interface Call {
  readonly kind: string;
  readonly tool: string;
  readonly args: string | null;
  readonly problem: Problem | null;
}

interface Draft {
  readonly id: string;
  /** Whether a `step.started` or `step.decided` names it. */
  recorded: boolean;
  index: number | null;
  status: StepStatus;
  decided: Call | null;
  inferred: Call | null;
  policy: Decision | null;
  observation: { readonly kind: string; readonly content: string | null } | null;
  specHash: string;
  policyId: string;
  startedAt: bigint | null;
  finishedAt: bigint | null;
  problem: Problem | null;
  evaluated: boolean;
}

const STEP_OF = "its step.decided";

export class StepFold {
  readonly #drafts = new Map<string, Draft>();
  readonly #recorded: Draft[] = [];
  readonly #budget: TextBudget;
  readonly #keep: boolean;
  /** The call that the last `step.decided` named: what an evaluation of that step is expected to be about. */
  #lastDecided: { readonly step: string; readonly tool: string; readonly args: string } | null = null;

  constructor(budget: TextBudget, keep: boolean) {
    this.#budget = budget;
    this.#keep = keep;
  }

  started(entry: EntryView): void {
    const draft = this.#recordedDraft(entry);
    if (draft === null) return;
    draft.startedAt ??= entry.occurred_at;
  }

  decided(entry: EntryView): void {
    const draft = this.#recordedDraft(entry);
    if (draft === null) return;
    const fields = new FieldReader(entry.action);
    const kind = fields.string("kind");
    const tool = fields.string("tool");
    const args = fields.text("args") ?? "{}";
    this.#lastDecided = kind === "tool_call" ? { step: draft.id, tool, args } : null;
    draft.decided = this.#call(kind, tool, args, fields.problem(STEP_OF));
  }

  /** Whether the call is another one than its step decided, as far as the log says. */
  decidedOtherwise(step: string | null, tool: string, args: string): boolean {
    const decided = this.#lastDecided;
    return decided !== null && decided.step === step && (decided.tool !== tool || decided.args !== args);
  }

  evaluated(
    step: string | null,
    call: { readonly tool: string; readonly args: string; readonly problem: Problem | null },
    decision: Decision,
    identity: { readonly specHash: string; readonly policyId: string },
  ): void {
    const draft = this.#draft(step);
    if (draft === null) return;
    // The evaluation keeps the call's texts: they are not counted again.
    const { tool, args, problem } = call;
    draft.inferred ??= {
      kind: "tool_call",
      tool,
      args: this.#keep && problem === null ? args : null,
      problem,
    };
    draft.policy = this.#keep ? decision : null;
    draft.specHash = identity.specHash;
    draft.policyId = identity.policyId;
    draft.evaluated = true;
    if (decision.outcome === "deny" || decision.outcome === "abort") {
      draft.status = "failed";
      draft.observation = { kind: "policy_denied", content: null };
    }
  }

  awaitingApproval(step: string | null): void {
    const draft = step === null ? undefined : this.#drafts.get(step);
    if (draft !== undefined) draft.status = "awaiting_approval";
  }

  callStarted(entry: EntryView): void {
    const draft = this.#draft(entry.step);
    if (draft === null) return;
    draft.status = "executing";
    if (draft.inferred !== null) return;
    const fields = new FieldReader(entry.action);
    const tool = fields.string("tool");
    const args = fields.text("args") ?? "{}";
    draft.inferred = this.#call("tool_call", tool, args, fields.problem("its tool.call.started"));
    draft.startedAt ??= entry.occurred_at;
  }

  callCompleted(entry: EntryView): void {
    const draft = this.#draft(entry.step);
    if (draft === null) return;
    const success = entry.outcome?.status === "success";
    draft.status = success ? "done" : entry.outcome?.status === "unknown" ? "interrupted" : "failed";
    const fields = new FieldReader(entry.outcome?.fields ?? new Map());
    const content = fields.text(success ? "result" : "error") ?? null;
    this.#observe(draft, success ? "tool_result" : "tool_error", content, entry.occurred_at);
    draft.problem ??= fields.problem("its tool.call.completed");
  }

  failed(entry: EntryView): void {
    const draft = this.#draft(entry.step, false);
    if (draft === null) return;
    draft.status = "failed";
    const fields = new FieldReader(entry.action);
    const kind = fields.string("kind");
    const detail = fields.text("detail") ?? null;
    // The tool's own error, where there was one, is the observation that the agent saw.
    if (draft.observation?.content == null) {
      const inferred = draft.observation?.kind ?? "tool_error";
      this.#observe(draft, kind === "" ? inferred : kind, detail, entry.occurred_at);
      draft.problem ??= fields.problem("its step.failed");
    }
    draft.finishedAt = entry.occurred_at;
  }

  interrupted(entry: EntryView): void {
    const draft = this.#draft(entry.step, false);
    if (draft === null) return;
    draft.status = "interrupted";
    draft.observation = { kind: "interrupted", content: null };
    draft.finishedAt = entry.occurred_at;
  }

  /** What is known of a step while the fold goes on. */
  peek(step: string | null): { evaluated: boolean; tool: string; policyId: string; decidedCall: boolean } {
    const draft = step === null ? undefined : this.#drafts.get(step);
    return {
      evaluated: draft?.evaluated ?? false,
      tool: draft?.decided?.tool ?? draft?.inferred?.tool ?? "",
      policyId: draft?.policyId ?? "",
      decidedCall: draft?.decided?.kind === "tool_call",
    };
  }

  finish(): { readonly recorded: boolean; readonly steps: StepRecord[]; readonly at: Map<string, number> } {
    const recorded = this.#recorded.length > 0;
    const drafts = recorded
      ? this.#recorded
      : [...this.#drafts.values()].filter(({ inferred }) => inferred !== null);
    const at = new Map<string, number>();
    const steps = drafts.map((draft, place): StepRecord => {
      at.set(draft.id, place);
      const call = recorded ? draft.decided : draft.inferred;
      return {
        id: draft.id,
        index: (recorded ? draft.index : null) ?? place,
        status: draft.status,
        decisionKind: call?.kind ?? null,
        tool: call?.tool ?? "",
        args: call?.args ?? null,
        policy: draft.policy,
        observation: draft.observation,
        specHash: draft.specHash,
        policyId: draft.policyId,
        startedAt: draft.startedAt,
        finishedAt: draft.finishedAt,
        decisionProblem: call?.problem ?? null,
        problem: call?.problem ?? draft.problem,
      };
    });
    return { recorded, steps, at };
  }

  #observe(draft: Draft, kind: string, content: string | null, at: bigint | null): void {
    draft.finishedAt = at;
    if (content !== null && exceedsPage(content)) {
      draft.problem ??= { reason: "too-long", words: "its observation is longer than MaxPageText" };
      content = null;
    }
    if (!this.#keep || content === null) {
      draft.observation = { kind, content: null };
    } else if (this.#budget.take(content.length)) {
      draft.observation = { kind, content: detached(content) };
    } else {
      draft.problem ??= NO_ROOM;
    }
  }

  #call(kind: string, tool: string, args: string, problem: Problem | null): Call {
    const keptKind = this.#budget.name(kind.slice(0, 64)) ?? "";
    if (problem !== null) return { kind: keptKind, tool: "", args: null, problem };
    if (exceedsPage(tool, args)) {
      const tooLong: Problem = { reason: "too-long", words: "its decision is longer than MaxPageText" };
      return { kind: keptKind, tool: "", args: null, problem: tooLong };
    }
    const keptTool = this.#budget.name(tool);
    if (keptTool === null) return { kind: keptKind, tool: "", args: null, problem: NO_ROOM };
    if (!this.#keep) return { kind: keptKind, tool: keptTool, args: null, problem: null };
    if (!this.#budget.take(args.length))
      return { kind: keptKind, tool: keptTool, args: null, problem: NO_ROOM };
    return { kind: keptKind, tool: keptTool, args: detached(args), problem: null };
  }

  #recordedDraft(entry: EntryView): Draft | null {
    const draft = this.#draft(entry.step);
    if (draft === null) return null;
    if (!draft.recorded) {
      draft.recorded = true;
      this.#recorded.push(draft);
    }
    const index = integerOf(new FieldReader(entry.action).text("index") ?? "");
    if (typeof index === "number") draft.index = index;
    return draft;
  }

  #draft(step: string | null, create = true): Draft | null {
    if (step === null) return null;
    const known = this.#drafts.get(step);
    if (known !== undefined || !create) return known ?? null;
    const id = detached(step);
    const draft: Draft = {
      id,
      recorded: false,
      index: null,
      status: "deciding",
      decided: null,
      inferred: null,
      policy: null,
      observation: null,
      specHash: "",
      policyId: "",
      startedAt: null,
      finishedAt: null,
      problem: null,
      evaluated: false,
    };
    this.#drafts.set(id, draft);
    return draft;
  }
}
