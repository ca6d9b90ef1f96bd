/**
 * Kinds of the group "step and policy": what a run decided, and what its policy said to that.
 *
 * @module
 */
import { z } from "zod";
import {
  COUNT,
  count,
  hash,
  json,
  LABEL,
  label,
  maybe,
  oneOf,
  optional,
  positive,
  required,
  text,
  typed,
} from "./fields.ts";
import { kinds } from "./sections.ts";

export const POLICY_OUTCOMES = ["allow", "require_approval", "deny", "abort"] as const;
export const RUN_STATUSES = [
  "RUNNING",
  "WAITING_FOR_APPROVAL",
  "INTERRUPTED",
  "COMPLETED",
  "FAILED",
  "CANCELLED",
] as const;

/** A policy's answer. */
const decision = typed(
  "object",
  z.strictObject({
    outcome: z.enum(POLICY_OUTCOMES),
    reason: maybe(z.string()),
    kind: maybe(LABEL),
    capability: z.unknown().optional(),
    presentation: z.unknown().optional(),
  }),
);

/** agentrt's policyView: its ten members, all there. */
const view = typed(
  "object",
  z.strictObject({
    status: z.enum(RUN_STATUSES),
    step_count: COUNT,
    model_calls: COUNT,
    input_tokens: COUNT,
    output_tokens: COUNT,
    cached_input_tokens: COUNT,
    estimated_cost_micros: COUNT,
    active_ms: COUNT,
    steps: COUNT,
    approvals: COUNT,
  }),
);

const index = optional(count, "the step's index in the run, from 0");

export const STEP_KINDS = kinds("step and policy", {
  "step.started": {
    description: "A step began.",
    action: { index, origin: optional(label, "who asks for it: model, plan, operator") },
  },
  "step.decided": {
    description: "It is decided what a step does.",
    action: {
      index,
      kind: required(
        oneOf("tool_call", "complete", "fail", "truncated", "no_tool_call"),
        "the decision; truncated and no_tool_call are invalid ones",
      ),
      origin: optional(label, "who decided: model, plan, operator"),
      tool: optional(label, "the tool to call"),
      args: optional(json, "its arguments"),
      spec_hash: optional(hash, "SHA-256 of the tool's spec in canonical form"),
      tool_call_id: optional(label, "the provider's id of the call: an attribute, may be empty or repeat"),
      reason: optional(text, "why, in words"),
      message: optional(json, "the model's message"),
      error: optional(text, "why the decision is invalid"),
    },
  },
  "step.interrupted": {
    description: "A step was cut off.",
    action: {
      index,
      reason: optional(label, "why: cut_off, timed_out, no_answer"),
      detail: optional(text, "why, in words"),
    },
  },
  "step.failed": {
    description: "A step failed.",
    action: {
      index,
      detail: optional(text, 'why, in words; a policy\'s failure starts "policy error: "'),
      observation: optional(
        oneOf("tool_error", "policy_denied", "invalid_decision", "interrupted"),
        "what the run was told instead of a result",
      ),
      policy_id: optional(label, "the policy, where it was the policy that failed"),
    },
  },
  "policy.evaluated": {
    description: "A policy was asked about a tool call, and answered.",
    action: {
      tool: required(label, "the tool"),
      args: required(json, "the arguments"),
      spec_hash: optional(hash, "SHA-256 of the tool's spec in canonical form"),
      policy_id: optional(label, "the policy that answered"),
      decision: required(
        decision,
        "outcome: allow, require_approval, deny or abort; reason, kind, capability, presentation",
      ),
      view: optional(
        view,
        "what the policy was shown of the run: status, step_count, model_calls, input_tokens, output_tokens, " +
          "cached_input_tokens, estimated_cost_micros, active_ms, steps, approvals",
      ),
    },
  },
  "limit.exceeded": {
    description: "A run reached one of its limits.",
    action: {
      limit: required(label, "the limit's name"),
      max: optional(count, "the limit"),
      actual: optional(count, "what was reached"),
      detail: optional(text, "more, in words"),
    },
  },
  "loop.detected": {
    description: "A run repeated itself.",
    action: {
      tool: optional(label, "the tool that was called again"),
      args: optional(json, "with these arguments"),
      repeats: optional(positive, "how often"),
      threshold: optional(positive, "how often is too often"),
      detail: optional(text, "more, in words"),
    },
  },
});
