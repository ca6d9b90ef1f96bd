/**
 * Requests and views as plain JavaScript values, for engines that can't read JSON text: cedar, modules, and clients that
 * run a policy of their own. A number that a double can't hold becomes its text (docs/recheck.md).
 *
 * @module
 */
import { JsonNumber, type JsonValue, parseJsonValue } from "../json/value.ts";
import { formatTime } from "../time.ts";
import { doubleHolds } from "./decimal.ts";
import type { Decision, StepRecord } from "./model.ts";
import type { PolicyRequest } from "./policy.ts";
import type { PolicyApproval, PolicyView } from "./view.ts";

/** The value that a policy is handed for a JSON text. Objects have no prototype, so that `__proto__` is a key. */
export function policyValue(text: string): unknown {
  return plain(parseJsonValue(text));
}

function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return doubleHolds(value.literal) ? value.toNumber() : value.literal;
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  const out = Object.create(null) as Record<string, unknown>;
  for (const [key, member] of value) {
    // A plain assignment to __proto__ would set no member on an object that had a prototype; here it does.
    out[key] = plain(member);
  }
  return out;
}

function optionalValue(text: string | null): unknown {
  return text === null ? null : policyValue(text);
}

/** The request in the form of agentrt's ToolRequest. */
export function requestValue(request: PolicyRequest): Readonly<Record<string, unknown>> {
  const { spec } = request;
  return {
    run_id: request.runId,
    step_id: request.stepId,
    spec: {
      name: spec.name,
      description: spec.description,
      input_schema: optionalValue(spec.inputSchema),
      side_effect: spec.sideEffect,
      timeout: optionalValue(spec.timeout),
      terminal: spec.terminal,
    },
    args: policyValue(request.canonicalArgs),
  };
}

/** The view: the run with the counts that the policy saw, the steps and the approvals, null where it saw none. */
export function viewValue(view: PolicyView): Readonly<Record<string, unknown>> {
  const { recorded, ...run } = view.run;
  const { steps: _steps, approvals: _approvals, ...counts } = recorded;
  return {
    run: {
      id: run.id,
      goal: run.goal,
      limits: optionalValue(run.limits),
      created_at: timeText(run.createdAt),
      started_at: timeText(run.createdAt),
      ...counts,
    },
    steps: view.steps?.map(stepValue) ?? null,
    approvals: view.approvals?.map(approvalValue) ?? null,
  };
}

function stepValue(step: StepRecord): Readonly<Record<string, unknown>> {
  const { observation } = step;
  return {
    id: step.id,
    index: step.index,
    status: step.status,
    decision:
      step.decisionKind === null
        ? null
        : { kind: step.decisionKind, tool: step.tool, args: optionalValue(step.args) },
    policy: step.policy === null ? null : decisionValue(step.policy),
    observation:
      observation === null ? null : { kind: observation.kind, content: optionalValue(observation.content) },
    spec_hash: step.specHash,
    policy_id: step.policyId,
    started_at: timeText(step.startedAt),
    finished_at: timeText(step.finishedAt),
  };
}

function approvalValue(approval: PolicyApproval): Readonly<Record<string, unknown>> {
  return {
    id: approval.id,
    step_id: approval.stepId,
    kind: approval.kind,
    capability: optionalValue(approval.capability),
    presentation: optionalValue(approval.presentation),
    hash: approval.hash,
    status: approval.status,
    created_at: timeText(approval.createdAt),
    expires_at: optionalValue(approval.expiresAt),
    decided_at: timeText(approval.decidedAt),
    decided_by: approval.decidedBy,
    note: approval.note,
  };
}

function decisionValue(decision: Decision): Readonly<Record<string, unknown>> {
  const { outcome, reason, kind } = decision;
  const capability = optionalValue(decision.capability);
  return { outcome, reason, kind, capability, presentation: optionalValue(decision.presentation) };
}

function timeText(time: bigint | null): string | null {
  return time === null ? null : formatTime(time);
}
