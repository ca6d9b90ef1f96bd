/**
 * What a policy is handed, as JSON text in which every number is as it was recorded: for clients that run their own
 * policy (docs/policies.md, "decisions"). values.ts has the same as JavaScript values.
 *
 * @module
 */
import { quote as quoted } from "../json/chars.ts";
import { formatTime } from "../time.ts";
import type { Decision, StepRecord } from "./model.ts";
import { type PolicyRequest, policyForm } from "./policy.ts";
import type { PolicyApproval, PolicyRun } from "./view.ts";

const quote = (text: string): string => quoted(text, "policy");

/** The request in the form of agentrt's ToolRequest. */
export function requestJson({ runId, stepId, spec, args }: PolicyRequest): string {
  return (
    `{"run_id":${quote(runId)},"step_id":${quote(stepId)},"spec":{"name":${quote(spec.name)},` +
    `"description":${quote(spec.description)},"input_schema":${optional(spec.inputSchema)},` +
    `"side_effect":${quote(spec.sideEffect)},"timeout":${optional(spec.timeout)},"terminal":${spec.terminal}},` +
    `"args":${args}}`
  );
}

/** The run, with the status and the counts that the policy saw. */
export function runJson({ id, goal, limits, createdAt, recorded }: PolicyRun): string {
  const { status, steps: _steps, approvals: _approvals, ...counts } = recorded;
  const members = [
    `"id":${quote(id)}`,
    `"goal":${quote(goal)}`,
    `"limits":${optional(limits)}`,
    `"created_at":${time(createdAt)}`,
    `"started_at":${time(createdAt)}`,
    `"status":${quote(status)}`,
  ];
  for (const [name, count] of Object.entries(counts)) members.push(`"${name}":${count}`);
  return `{${members.join(",")}}`;
}

/** A step as a view shows it: the same at every evaluation. */
export function stepJson(step: StepRecord): string {
  const { observation, decisionKind } = step;
  const decision =
    decisionKind === null
      ? "null"
      : `{"kind":${quote(decisionKind)},"tool":${quote(step.tool)},"args":${optional(step.args)}}`;
  const seen =
    observation === null
      ? "null"
      : `{"kind":${quote(observation.kind)},"content":${optional(observation.content)}}`;
  return (
    `{"id":${quote(step.id)},"index":${step.index},"status":"${step.status}","decision":${decision},` +
    `"policy":${step.policy === null ? "null" : wholeDecision(step.policy)},"observation":${seen},` +
    `"spec_hash":${quote(step.specHash)},"policy_id":${quote(step.policyId)},` +
    `"started_at":${time(step.startedAt)},"finished_at":${time(step.finishedAt)}}`
  );
}

/** An approval as it stood at the evaluation. */
export function approvalJson(approval: PolicyApproval): string {
  const { stepId } = approval;
  return (
    `{"id":${quote(approval.id)},"step_id":${stepId === null ? "null" : quote(stepId)},` +
    `"kind":${quote(approval.kind)},"capability":${optional(approval.capability)},` +
    `"presentation":${optional(approval.presentation)},"hash":${quote(approval.hash)},` +
    `"status":"${approval.status}","created_at":${time(approval.createdAt)},` +
    `"expires_at":${optional(approval.expiresAt)},"decided_at":${time(approval.decidedAt)},` +
    `"decided_by":${quote(approval.decidedBy)},"note":${quote(approval.note)}}`
  );
}

/** A decision with all its members, as values.ts gives it. */
function wholeDecision({ outcome, reason, kind, capability, presentation }: Decision): string {
  return (
    `{"outcome":${quote(outcome)},"reason":${quote(reason)},"kind":${quote(kind)},` +
    `"capability":${optional(capability)},"presentation":${optional(presentation)}}`
  );
}

function optional(canonical: string | null): string {
  return canonical === null ? "null" : policyForm(canonical);
}

function time(ns: bigint | null): string {
  return ns === null ? "null" : `"${formatTime(ns)}"`;
}
