/**
 * Kinds of the group "run": a run's life, its session, and what it says.
 *
 * @module
 */
import { z } from "zod";
import {
  boolean,
  COUNT,
  count,
  DURATION,
  duration,
  type FieldTable,
  HASH,
  json,
  label,
  maybe,
  optional,
  POSITIVE,
  required,
  text,
  time,
  typed,
} from "./fields.ts";
import { kinds } from "./sections.ts";

/** agentrt's limits. All optional: other runtimes know some of them only. */
const limits = typed(
  "object",
  z.strictObject({
    max_steps: maybe(POSITIVE),
    max_consecutive_tool_failures: maybe(POSITIVE),
    loop_threshold: maybe(POSITIVE),
    max_model_calls: maybe(COUNT),
    max_output_tokens_per_call: maybe(COUNT),
    max_total_tokens: maybe(COUNT),
    max_estimated_cost_micros: maybe(COUNT),
    max_active_time: maybe(DURATION),
    max_elapsed_time: maybe(DURATION),
    approval_ttl: maybe(DURATION),
    grant_ttl: maybe(DURATION),
    extra: z.unknown().optional(),
  }),
);

/** Hashes of tool specs: a list, or an object from tool name to hash (agentrt leaves open which). */
const isHash = (value: unknown): boolean => HASH.safeParse(value).success;
const HASH_SCHEMA = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const toolHashes = typed(
  "list or object of hashes",
  z
    .unknown()
    // Not z.record: it passes over an own __proto__ member.
    .refine(
      (value) => typeof value === "object" && value !== null && Object.values(value).every(isHash),
      "must be a list of spec hashes, or an object from tool name to spec hash",
    )
    .meta({
      anyOf: [
        { type: "array", items: HASH_SCHEMA },
        { type: "object", additionalProperties: HASH_SCHEMA },
      ],
    }),
);

/** How a run ended. */
const ENDED: FieldTable = {
  reason: optional(label, "why, as a code: agentrt's terminal reason, LangBot's status reason"),
  detail: optional(text, "why, in words"),
  steps: optional(count, "steps taken"),
  by: optional(label, "who ended it, where somebody did"),
  usage: optional(json, "tokens used, as the runtime counts them"),
  cost: optional(json, "cost, as the runtime counts it"),
};

export const RUN_KINDS = kinds("run", {
  "run.created": {
    description: "A run exists: what it is for, and what it may use.",
    action: {
      goal: optional(text, "what the run is for, in words"),
      limits: optional(limits, "agentrt's limits; durations in nanoseconds"),
      tools: optional(toolHashes, "spec hashes of its tools: a list, or an object from tool name to hash"),
      authorization: optional(json, "what the run may use, as its host grants it"),
    },
    authorization: true,
  },
  "run.queued": {
    description: "A run waits to be claimed.",
    action: {
      queue_name: optional(label, "the queue"),
      priority: optional(typed("integer", z.int()), "its priority there"),
      requested_runtime_id: optional(label, "the runtime that it asks for"),
    },
  },
  "run.claimed": {
    description: "A runtime took a run, or took it over from another whose lease ran out.",
    action: {
      runtime_id: optional(label, "the runtime"),
      queue_name: optional(label, "the queue that it came from"),
      lease_expires_at: optional(time, "when the lease runs out"),
      dispatch_attempts: optional(count, "how often the run was handed out so far"),
      taken_over_from: optional(label, "the runtime that held it before"),
    },
  },
  "run.started": {
    description: "A run works from now on.",
    action: {
      runtime_id: optional(label, "the runtime"),
      runner_id: optional(label, "the code that runs it"),
    },
  },
  "run.resumed": {
    description: "A paused run works again.",
    action: {
      reason: optional(label, "why, as a code"),
      approval_id: optional(label, "the approval that it waited for"),
      by: optional(label, "who resumed it"),
    },
    authorization: true,
  },
  "run.completed": {
    description: "A run reached its goal, as its runtime sees it.",
    action: {
      ...ENDED,
      finish_reason: optional(label, "the model's reason to stop"),
      message: optional(json, "the last message"),
    },
  },
  "run.failed": {
    description: "A run failed.",
    action: {
      ...ENDED,
      error: optional(json, "what went wrong: words, or an object"),
      code: optional(label, "the error, as a code"),
      retryable: optional(boolean, "whether another attempt may succeed"),
    },
  },
  "run.cancelled": {
    description: "Somebody cancelled a run.",
    action: ENDED,
    authorization: true,
  },
  "run.timeout": {
    description: "A run ran out of time.",
    action: { ...ENDED, deadline_at: optional(time, "the deadline that it missed") },
  },
  "run.status": {
    description: "A run's status as its host sees it: it may differ from what the runner reports.",
    action: {
      status: required(
        label,
        "created, queued, claimed, running, completed, failed, cancelled, timeout or the host's own",
      ),
      reason: optional(text, "why"),
      runner_id: optional(label, "the code that runs it"),
      created_at: optional(label, "when the host created it, as the host writes times"),
      started_at: optional(label, "when it started, as the host writes times"),
      finished_at: optional(label, "when it ended, as the host writes times"),
      usage: optional(json, "tokens used, as the host counts them"),
      cost: optional(json, "cost, as the host counts it"),
    },
  },
  "session.started": {
    description: "A user's session began.",
    action: {
      user_id: optional(label, "the user"),
      platform: optional(label, "where: cli, web, a chat system"),
    },
    outcome: {},
    authorization: true,
  },
  "session.ended": {
    description: "A session ended.",
    action: {
      reason: optional(label, "why"),
      duration: optional(duration, "how long it lasted, in nanoseconds"),
    },
    outcome: {},
    authorization: true,
  },
  "agent.spawned": {
    description: "An agent started another one.",
    action: {
      parent_session_id: optional(label, "the session that it was started from"),
      child_session_id: optional(label, "its own session"),
      child_run_id: optional(label, "its own run"),
      description: optional(text, "what it is for"),
    },
    outcome: {},
    authorization: true,
  },
  "context.summarized": {
    description: "Older messages were replaced by a summary.",
    action: {
      evicted_count: optional(count, "messages that were replaced"),
      tokens_freed: optional(count, "tokens that this saved"),
      summary: optional(json, "what they were replaced by"),
    },
    outcome: {},
    authorization: true,
  },
  "message.delta": {
    description: "A piece of a message.",
    action: { chunk: required(json, "the piece") },
  },
  "message.completed": {
    description: "A whole message, from whichever side.",
    action: { message: required(json, "the message") },
  },
  "state.updated": {
    description: "A value of the agent's state was set.",
    action: {
      scope: required(label, "whose state: conversation, actor, runner"),
      key: required(label, "the value's name"),
      value: required(json, "the new value"),
    },
  },
  "action.requested": {
    description: "A runner asked its host for an act.",
    action: {
      action: required(label, "the act"),
      target: optional(json, "what it is to be done to"),
      payload: optional(json, "what it is to be done with"),
    },
    authorization: true,
  },
  "steering.injected": {
    description: "Somebody's message was put into a run at work.",
    action: {
      message: optional(json, "the message"),
      by: optional(label, "who sent it"),
      source: optional(label, "where it came from"),
    },
    authorization: true,
  },
  "steering.dropped": {
    description: "A message for a run at work was not delivered.",
    action: {
      message: optional(json, "the message"),
      by: optional(label, "who sent it"),
      reason: optional(label, "why it was dropped"),
    },
  },
});
