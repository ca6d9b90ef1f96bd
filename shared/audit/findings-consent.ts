/**
 * Consent: an act comes after the decision that allows it and is the act that was decided on, and a call that a policy
 * denied is not made (docs/audit.md "Approvals").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { ApprovalIndex } from "./approval-index.ts";
import { type Approval, type Comparison, compareWithApproval, type SubjectCheck } from "./approval-link.ts";
import { type Evaluation, EvaluationIndex } from "./evaluation-index.ts";
import { missingOf, stringAt } from "./fields.ts";
import { type FindingList, refOf } from "./finding.ts";
import { isAct } from "./findings-authority.ts";
import { namesEntry } from "./findings-http.ts";

export class ConsentCheck {
  readonly #list: FindingList;
  readonly #subjects: SubjectCheck;
  readonly #wholeLog: boolean;
  readonly #approvals: ApprovalIndex;
  readonly #evaluations: EvaluationIndex;

  constructor(list: FindingList, subjects: SubjectCheck, wholeLog: boolean) {
    this.#list = list;
    this.#subjects = subjects;
    this.#wholeLog = wholeLog;
    this.#approvals = new ApprovalIndex(list, subjects.crypto);
    this.#evaluations = new EvaluationIndex(list, subjects.crypto);
  }

  /** Approvals of the whole log are read; what they allow is looked at in the run's own entries. */
  add(entry: EntryView, isOwn: boolean): void {
    switch (entry.kind) {
      case "approval.requested": {
        const id = this.#idOf(entry);
        if (id !== undefined) this.#approvals.request(entry, id);
        return;
      }
      case "approval.granted":
      case "approval.denied":
      case "approval.expired":
        this.#decided(entry, isOwn);
        return;
      case "policy.evaluated":
        if (isOwn) this.#evaluations.add(entry);
        return;
      default:
        if (isOwn && isAct(entry)) this.#act(entry);
    }
  }

  #idOf(entry: EntryView): string | undefined {
    const missing = missingOf(entry.action, "approval_id");
    if (missing !== null) this.#list.notChecked(refOf(entry), "action.approval_id", missing);
    return stringAt(entry.action, "approval_id");
  }

  #decided(entry: EntryView, isOwn: boolean): void {
    const id = this.#idOf(entry);
    if (id === undefined) return;
    const approval = this.#approvals.get(id);
    const decision = refOf(entry);
    if (approval === undefined) {
      if (isOwn) this.#list.add("approval_decision_without_request", [decision]);
      return;
    }
    const missing = missingOf(entry.action, "request_entry");
    if (missing !== null) this.#list.notChecked(decision, "action.request_entry", missing);
    if (isOwn && !namesEntry(entry, approval.request))
      this.#list.add("approval_request_entry_mismatch", [approval.request, decision]);
    if (approval.earlyAct !== null) {
      this.#list.add("approval_after_act", [approval.request, approval.earlyAct, decision]);
      approval.earlyAct = null;
    }
    approval.status = entry.kind === "approval.granted" ? "granted" : "refused";
    approval.decision = decision;
    approval.scope = stringAt(entry.action, "scope") ?? null;
    if (approval.status === "refused") this.#approvals.release(approval);
  }

  #act(entry: EntryView): void {
    const isCall = entry.kind === "tool.call.started";
    const isNamed = entry.authorization?.type === "user_approval";
    if (!isCall && !isNamed) return;
    const act = refOf(entry);
    const evaluation = isCall ? this.#evaluations.of(entry) : undefined;
    if (evaluation?.asks === "never")
      this.#list.add("call_despite_policy", [evaluation.entry, act], severityOf(evaluation));
    const named = isNamed ? this.#approvals.named(entry) : undefined;
    const candidates = named !== undefined ? [named] : isCall ? this.#approvals.linked(entry) : [];
    if (candidates.length > 0) this.#judge(entry, candidates, evaluation);
    else if (evaluation?.asks === "approval")
      this.#list.add("act_without_approval", [evaluation.entry, act], severityOf(evaluation));
    else if (isNamed && this.#wholeLog) this.#list.add("act_without_approval", [act]);
    else if (isNamed)
      this.#list.note("an approval that an act names is not among the entries that were read");
  }

  /** The act stands on the approval that allows it, where there is one among several. */
  #judge(entry: EntryView, candidates: readonly Approval[], evaluation: Evaluation | undefined): void {
    const act = refOf(entry);
    const judged = candidates.map((approval) => ({
      approval,
      comparison: this.#compare(entry, approval, evaluation),
    }));
    const granted = judged.filter(({ approval }) => approval.status === "granted");
    const best =
      granted.find(({ approval, comparison }) => comparison !== "other" && approval.usedBy === null) ??
      granted.find(({ comparison }) => comparison !== "other") ??
      judged[0];
    if (best === undefined) return;
    const { approval, comparison } = best;
    const decision = approval.decision === null ? [] : [approval.decision];
    if (approval.status === "pending") {
      approval.earlyAct ??= act;
    } else if (approval.status === "refused") {
      this.#list.add("act_despite_refusal", [...decision, act]);
    } else {
      if (comparison === "other")
        this.#list.add("act_outside_approval", [approval.request, ...decision, act]);
      else if (comparison === "unknown" && entry.kind === "tool.call.started")
        this.#list.note(
          "an approval could not be compared with its call: nothing that was read binds the two",
        );
      // What a call does through its host stands on the call's approval: only another call is another use.
      if (entry.kind !== "tool.call.started") return;
      if (approval.usedBy !== null && approval.scope === "once")
        this.#list.add("approval_used_again", [...decision, approval.usedBy, act]);
      approval.usedBy ??= act;
    }
  }

  /** An approval that reaches further than one act allows others than the one that it was asked for. */
  #compare(entry: EntryView, approval: Approval, evaluation: Evaluation | undefined): Comparison {
    if (approval.scope !== null && approval.scope !== "once") return "same";
    if (entry.kind !== "tool.call.started") return "unknown";
    return compareWithApproval(entry, approval, evaluation, this.#subjects);
  }

  /** An act whose approval is still pending at the end was begun without it. */
  finish(): void {
    for (const { status, earlyAct, request } of this.#approvals.values())
      if (status === "pending" && earlyAct !== null)
        this.#list.add("act_without_approval", [request, earlyAct]);
  }
}

function severityOf({ afterwards }: Evaluation): { readonly severity?: "warning" } {
  return afterwards ? { severity: "warning" } : {};
}
