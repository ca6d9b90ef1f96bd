/**
 * Consent: an act comes after the decision that allows it and is the act that was decided on, and a call that a policy
 * denied is not made (design section 5, groups "step and policy" and "approval"; docs/audit.md "Approvals").
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { hashText } from "../recheck/hash.ts";
import {
  type Approval,
  argsOf,
  capabilityOf,
  compareWithApproval,
  type EvaluatedCall,
  type SubjectCheck,
  subjectOf,
} from "./approval-link.ts";
import { missingOf, objectAt, stringAt } from "./fields.ts";
import { BoundedMap, type EntryRef, type FindingList, refOf } from "./finding.ts";
import { isAct } from "./findings-authority.ts";
import { namesEntry } from "./findings-http.ts";

const MAX_APPROVALS = 4096;
const MAX_EVALUATIONS = 16_384;
/** UTF-16 units of capabilities and presentations that are held, of approvals whose act is still to come. */
const MAX_SUBJECT_TEXT = 4_194_304;

/** An evaluation that does not simply allow its call. */
interface Evaluation extends EvaluatedCall {
  readonly entry: EntryRef;
  readonly call: string | null;
  readonly asks: "approval" | "never";
  /** Decided when the run was imported: nobody obeyed or disobeyed it. */
  readonly afterwards: boolean;
}

export class ConsentCheck {
  readonly #list: FindingList;
  readonly #subjects: SubjectCheck;
  readonly #approvals: BoundedMap<string, Approval>;
  /** The last approval that was requested for a call or a step. */
  readonly #approvalOf: BoundedMap<string, Approval>;
  readonly #evaluations: BoundedMap<string, Evaluation>;
  #subjectText = 0;

  constructor(list: FindingList, subjects: SubjectCheck) {
    this.#list = list;
    this.#subjects = subjects;
    const forgets = (what: string) => (): void => list.limit(what);
    this.#approvals = new BoundedMap(MAX_APPROVALS, (_, approval) => {
      this.#release(approval);
      list.limit(`approvals beyond ${MAX_APPROVALS}`);
    });
    this.#approvalOf = new BoundedMap(MAX_APPROVALS, forgets(`approvals beyond ${MAX_APPROVALS}`));
    this.#evaluations = new BoundedMap(
      MAX_EVALUATIONS,
      forgets(`denied or unapproved evaluations beyond ${MAX_EVALUATIONS}`),
    );
  }

  /** Approvals of the whole log are read; what they allow is looked at in the run's own entries. */
  add(entry: EntryView, isOwn: boolean): void {
    switch (entry.kind) {
      case "approval.requested":
        this.#requested(entry);
        return;
      case "approval.granted":
      case "approval.denied":
      case "approval.expired":
        this.#decided(entry, isOwn);
        return;
      case "policy.evaluated":
        if (isOwn) this.#evaluated(entry);
        return;
      default:
        if (isOwn && isAct(entry)) this.#act(entry);
    }
  }

  #requested(entry: EntryView): void {
    const id = this.#idOf(entry);
    if (id === undefined) return;
    const subject = subjectOf(entry);
    const size = subject.capability.length + subject.presentation.length;
    const hasRoom = this.#subjectText + size <= MAX_SUBJECT_TEXT;
    if (hasRoom) this.#subjectText += size;
    else this.#list.limit(`text of approvals beyond ${MAX_SUBJECT_TEXT}`);
    const approval: Approval = {
      id,
      request: refOf(entry),
      call: entry.call,
      step: entry.step,
      tools: capabilityOf(subject.capability).tools,
      subject: hasRoom ? subject : null,
      status: "pending",
      decision: null,
      once: true,
      earlyAct: null,
    };
    const before = this.#approvals.get(id);
    if (before !== undefined) this.#release(before);
    this.#approvals.set(id, approval);
    for (const key of placesOf(entry)) this.#approvalOf.set(key, approval);
  }

  #idOf(entry: EntryView): string | undefined {
    const missing = missingOf(entry.action, "approval_id");
    if (missing !== null) this.#list.notChecked(entry, "action.approval_id", missing);
    return stringAt(entry.action, "approval_id");
  }

  #release(approval: Approval): void {
    const { subject } = approval;
    if (subject === null) return;
    this.#subjectText -= subject.capability.length + subject.presentation.length;
    approval.subject = null;
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
    if (missing !== null) this.#list.notChecked(entry, "action.request_entry", missing);
    if (isOwn && !namesEntry(entry, approval.request))
      this.#list.add("approval_request_entry_mismatch", [approval.request, decision]);
    if (approval.earlyAct !== null) {
      this.#list.add("approval_after_act", [approval.request, approval.earlyAct, decision]);
      approval.earlyAct = null;
    }
    approval.status = entry.kind === "approval.granted" ? "granted" : "refused";
    approval.decision = decision;
    approval.once = (stringAt(entry.action, "scope") ?? "once") === "once";
    if (approval.status === "refused") this.#release(approval);
  }

  #evaluated(entry: EntryView): void {
    const decision = objectAt(entry.action, "decision");
    for (const field of ["decision", "tool", "args"]) {
      const missing = missingOf(entry.action, field);
      if (missing !== null) this.#list.notChecked(entry, `action.${field}`, missing);
    }
    const outcome = decision?.get("outcome");
    const tool = stringAt(entry.action, "tool") ?? "";
    const args = argsOf(entry);
    const evaluation: Evaluation = {
      entry: refOf(entry),
      call: entry.call,
      asks: outcome === "require_approval" ? "approval" : "never",
      afterwards: objectAt(entry.action, "extra")?.get("decided") === "at import",
      tool,
      args: args === undefined ? undefined : hashText(this.#subjects.crypto, args),
      spec: stringAt(entry.action, "spec_hash"),
    };
    const allows = outcome === "allow" || outcome === undefined;
    // The last evaluation of a call counts: one that allows takes back an earlier denial.
    for (const key of this.#evaluationKeys(entry, tool, args)) {
      if (allows) this.#evaluations.delete(key);
      else this.#evaluations.set(key, evaluation);
    }
  }

  /** By call, and by step and tool; where the entry has neither call nor step, by tool and arguments. */
  #evaluationKeys({ call, step }: EntryView, tool: string, args: string | undefined): string[] {
    if (call === null && step === null) {
      if (args === undefined) return [];
      return [`args ${hashText(this.#subjects.crypto, args)} ${tool}`];
    }
    return [...(call === null ? [] : [`call ${call}`]), ...(step === null ? [] : [`step ${step} ${tool}`])];
  }

  #evaluationOf(act: EntryView): Evaluation | undefined {
    const tool = stringAt(act.action, "tool") ?? "";
    for (const key of this.#evaluationKeys(act, tool, argsOf(act))) {
      const evaluation = this.#evaluations.get(key);
      if (evaluation === undefined) continue;
      // In a step of several calls, each has evaluations of its own.
      if (evaluation.call === null || act.call === null || evaluation.call === act.call) return evaluation;
    }
    return undefined;
  }

  #act(entry: EntryView): void {
    const isCall = entry.kind === "tool.call.started";
    const named = entry.authorization?.type === "user_approval";
    if (!isCall && !named) return;
    const evaluation = isCall ? this.#evaluationOf(entry) : undefined;
    if (evaluation?.asks === "never")
      this.#list.add("call_despite_policy", [evaluation.entry, refOf(entry)], severityOf(evaluation));
    const approval = (named ? this.#named(entry) : undefined) ?? (isCall ? this.#linked(entry) : undefined);
    if (approval !== undefined) this.#judge(entry, approval, evaluation);
    else if (evaluation?.asks === "approval")
      this.#list.add("act_without_approval", [evaluation.entry, refOf(entry)], severityOf(evaluation));
    else if (named) this.#list.add("act_without_approval", [refOf(entry)]);
  }

  /** The approval that the act's authorization names, by id or by the entry that recorded it. */
  #named(entry: EntryView): Approval | undefined {
    const fields = entry.authorization?.fields ?? new Map();
    for (const field of ["approval_id", "approval_entry"]) {
      const missing = missingOf(fields, field);
      if (missing !== null) this.#list.notChecked(entry, `authorization.${field}`, missing);
    }
    const id = stringAt(fields, "approval_id");
    const byId = id === undefined ? undefined : this.#approvals.get(id);
    const named = objectAt(fields, "approval_entry");
    if (named === undefined) return byId;
    const isIt = (record: EntryRef | null): boolean =>
      record !== null && named.get("seq") === BigInt(record.seq) && named.get("hash") === record.hash;
    const matches = (approval: Approval): boolean => isIt(approval.decision) || isIt(approval.request);
    if (byId !== undefined) return matches(byId) ? byId : undefined;
    for (const approval of this.#approvals.values()) if (matches(approval)) return approval;
    return undefined;
  }

  /** The approval that was requested for the same call, or for the same tool in the same step. */
  #linked(entry: EntryView): Approval | undefined {
    const tool = stringAt(entry.action, "tool");
    for (const key of placesOf(entry)) {
      const approval = this.#approvalOf.get(key);
      if (approval === undefined) continue;
      if (approval.call !== null && entry.call !== null) {
        if (approval.call === entry.call) return approval;
      } else if (approval.tools.length === 0 || tool === undefined || approval.tools.includes(tool)) {
        return approval;
      }
    }
    return undefined;
  }

  #judge(entry: EntryView, approval: Approval, evaluation: Evaluation | undefined): void {
    const act = refOf(entry);
    if (approval.status === "pending") {
      approval.earlyAct ??= act;
    } else if (approval.status === "refused") {
      const refusal = approval.decision === null ? [] : [approval.decision];
      this.#list.add("act_despite_refusal", [...refusal, act]);
    } else if (approval.once && entry.kind === "tool.call.started") {
      const comparison = compareWithApproval(entry, approval, evaluation, this.#subjects);
      const decision = approval.decision === null ? [] : [approval.decision];
      if (comparison === "other")
        this.#list.add("act_outside_approval", [approval.request, ...decision, act]);
      if (comparison === "unknown")
        this.#list.note(
          "an approval could not be compared with its act: nothing that is there binds the two",
        );
    }
  }

  /** An act whose approval is still pending at the end was begun without it. */
  finish(): void {
    for (const { status, earlyAct, request } of this.#approvals.values())
      if (status === "pending" && earlyAct !== null)
        this.#list.add("act_without_approval", [request, earlyAct]);
  }
}

/** Where an approval and its act meet: the call, and else the step. */
function placesOf({ call, step }: EntryView): string[] {
  return [...(call === null ? [] : [`call ${call}`]), ...(step === null ? [] : [`step ${step}`])];
}

function severityOf({ afterwards }: Evaluation): { readonly severity?: "warning" } {
  return afterwards ? { severity: "warning" } : {};
}
