/**
 * A run's evaluations, rebuilt for a policy that runs elsewhere: one line each (docs/policies.md, "decisions").
 *
 * @module
 */
import { quote as quoted } from "../json/chars.ts";
import { Asked } from "./asked.ts";
import { Recheck, type RecheckOptions } from "./compare.ts";
import { approvalJson, requestJson, runJson, stepJson } from "./evaluation-json.ts";
import type { EvaluationRecord, FoldedRun } from "./model.ts";
import { WAITING_FOR_APPROVAL } from "./model.ts";
import { type Policy, policyForm } from "./policy.ts";
import { decisionJson } from "./report.ts";

const quote = (text: string): string => quoted(text, "policy");

/** Reads whole views, so that what a view lacks is told as it is to a policy that reads them. */
const NOBODY: Policy = {
  id: "",
  decide: () => ({ ok: false, error: "", unanswered: true }),
};

export interface EvaluationLineOptions extends Pick<RecheckOptions, "specs" | "crypto" | "principal"> {
  /** Whether each line has the steps and approvals that the policy saw; without them a line's length is its own. */
  readonly views: boolean;
}

/** The lines, without line breaks, one at a time. Throws what `recheckRunSync` does. */
export function* evaluationLines(folded: FoldedRun, options: EvaluationLineOptions): Generator<string> {
  const { views, ...rest } = options;
  const recheck = new Recheck(folded, NOBODY, rest);
  const steps: string[] = [];
  for (const evaluation of folded.evaluations) {
    const prepared = recheck.prepare(evaluation);
    const members = head(evaluation, prepared.stepIndex);
    if (!(prepared instanceof Asked)) {
      members.push(`"result":"${prepared.result}"`, `"detail":${quote(prepared.detail)}`);
      if (prepared.reason !== null) members.push(`"reason":"${prepared.reason}"`);
      yield `{${members.join(",")}}`;
      continue;
    }
    members.push(`"request":${requestJson(prepared)}`, `"run":${runJson(prepared.run)}`);
    if (views) {
      const count = Number(evaluation.view?.steps ?? 0);
      for (const step of folded.steps.slice(steps.length, count)) steps.push(stepJson(step));
      members.push(
        `"steps":${listText(steps.slice(0, count))}`,
        `"approvals":${listText(prepared.approvals?.map(approvalJson) ?? [])}`,
      );
    }
    yield `{${members.join(",")}}`;
  }
}

/** What every line has: which evaluation it is, and what was recorded. */
function head(evaluation: EvaluationRecord, stepIndex: number): string[] {
  const { seq, hash, stepId, tool, specHash, policyId, decision, refused } = evaluation;
  const members = [
    `"seq":${seq}`,
    `"hash":"${hash}"`,
    `"step_index":${stepIndex}`,
    `"step_id":${quote(stepId ?? "")}`,
    `"tool":${quote(tool)}`,
    `"policy_id":${quote(policyId)}`,
    `"spec_hash":${quote(specHash)}`,
    `"recorded":${policyForm(decisionJson(decision))}`,
  ];
  if (refused !== null) members.push(`"refused":${quote(refused)}`);
  if (evaluation.failure?.onResume ?? evaluation.view?.status === WAITING_FOR_APPROVAL)
    members.push('"on_resume":true');
  return members;
}

/** Null, never empty, as a policy is handed it. */
function listText(items: readonly string[]): string {
  return items.length === 0 ? "null" : `[${items.join(",")}]`;
}
