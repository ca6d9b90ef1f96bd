/**
 * How the seed systems' events map onto our kinds. `docs/kinds.md` shows the tables; importers and
 * the tests hold on to them.
 *
 * @module
 */

/** One event of another system. */
export interface Mapping {
  /** Its name there. */
  readonly from: string;
  /** Our kinds: several where a member of the event decides. */
  readonly to: readonly string[];
  /** What happens to its members; empty where they keep their names. */
  readonly note: string;
}

export interface SystemMapping {
  readonly system: string;
  /** What the system's names are names of. */
  readonly of: string;
  readonly note: string;
  readonly mappings: readonly Mapping[];
}

function row(from: string, to: string | readonly string[], note = ""): Mapping {
  return { from, to: typeof to === "string" ? [to] : to, note };
}

const AGENTRT: SystemMapping = {
  system: "agentrt",
  of: "event types",
  note:
    "`run_id` and `step_id` become `run` and `step` of the envelope, `at` becomes `occurred_at`; `seq`, `hash` and the " +
    "event's text become `imported.seq`, `imported.hash` and `imported.bytes`.",
  mappings: [
    row("run.created", "run.created", "goal, limits, tools"),
    row("run.started", "run.started"),
    row(
      "run.finished",
      ["run.completed", "run.failed", "run.cancelled"],
      "status COMPLETED, FAILED or CANCELLED decides; reason, detail, steps, by",
    ),
    row("run.resumed", "run.resumed"),
    row("step.started", "step.started"),
    row("step.decided", "step.decided", "the decision's kind, tool and args"),
    row(
      "step.policy",
      "policy.evaluated",
      "tool and args from the step; the decision's members go into decision; spec_hash, policy_id, view. Without a " +
        "view it is a pause of the runtime, or from before v0.5.0",
    ),
    row("step.tool_started", "tool.call.started", "the step's id is also the call"),
    row(
      "step.tool_finished",
      "tool.call.completed",
      "tool_result: success; tool_error: failure; interrupted: unknown",
    ),
    row("step.failed", "step.failed", "detail; observation"),
    row("step.interrupted", "step.interrupted"),
    row(
      "approval.requested",
      "approval.requested",
      "approval_id, kind, reason, capability, presentation, hash",
    ),
    row(
      "approval.decided",
      ["approval.granted", "approval.denied", "approval.expired"],
      "status approved, rejected or expired decides; approval_id, by, note",
    ),
    row("limit.exceeded", "limit.exceeded"),
    row("loop.detected", "loop.detected"),
    row("lease.taken_over", "run.claimed", "taken_over_from"),
    row("model.dispatched", "model.dispatched"),
    row("model.completed", "model.completed"),
    row("model.failed", "model.failed"),
  ],
};

const LANGBOT: SystemMapping = {
  system: "LangBot",
  of: "result types, host events and columns",
  note:
    "`run_id` becomes `run`, `sequence` becomes `imported.seq`, and the whole row stays under `extra`. A payload that " +
    "does not decode takes the place of the main field as text; labels are empty then.",
  mappings: [
    row("message.delta", "message.delta", "chunk"),
    row("message.completed", "message.completed", "message"),
    row(
      "tool.call.started",
      "tool.call.started",
      "tool_name becomes tool, parameters becomes args; the importer mints the call, tool_call_id is an attribute",
    ),
    row(
      "tool.call.completed",
      "tool.call.completed",
      "tool_name becomes tool; error set: failure, else success; result and error are the outcome's",
    ),
    row("state.updated", "state.updated", "scope, key, value"),
    row("action.requested", "action.requested", "action, target, payload"),
    row("run.completed", "run.completed", "finish_reason, message"),
    row("run.failed", "run.failed", "error, code, retryable"),
    row("steering.injected", "steering.injected", "the payload is the message"),
    row("steering.dropped", "steering.dropped", "the payload is the message"),
    row(
      "admin.<action>",
      "admin.request",
      "action becomes method, permission becomes required_capability; target_run_id, target_runtime_id; the rest " +
        "goes into params",
    ),
    row("any other type", "state.updated", "scope langbot.event, the type as key, the payload as value"),
    row(
      "agent_run.status",
      "run.status",
      "status and status_reason as the host sees them when the row is read; runner_id, times, usage, cost",
    ),
    row("agent_run.authorization_json", "run.created", "authorization"),
  ],
};

const CALL = "its fields keep their names; actor becomes the envelope's actor";

const ASTRID: SystemMapping = {
  system: "Astrid",
  of: "action types",
  note:
    "Each entry has authorization and outcome of its own, which ours keep: `token_hash` (BLAKE3) and other hashes that " +
    "are not SHA-256 go under `extra`, as do the members named here without a field of ours. `user_id` becomes hex. An " +
    "outcome's `error` and `details` keep their names. The entry's bytes, content hash and sequence number become " +
    "`imported.bytes`, `imported.hash` and `imported.seq`.",
  mappings: [
    row("mcp_tool_call", "tool.call.completed", "tool; server and args_hash under extra"),
    row(
      "capsule_tool_call",
      "tool.call.completed",
      "tool; call_id becomes tool_call_id; capsule_id, args_hash and result_hash under extra",
    ),
    row("mcp_resource_read", "mcp.resource.read", "server, uri"),
    row("mcp_prompt_get", "mcp.prompt.get", "server, name"),
    row("mcp_elicitation", "mcp.elicitation", "phase requested; request_id, schema"),
    row("mcp_url_elicitation", "mcp.elicitation", "phase requested; url, interaction_type"),
    row("mcp_sampling", "mcp.sampling", "model, prompt_tokens"),
    row("file_read", "file.read", CALL),
    row("file_write", "file.write", `${CALL}; content_hash under extra`),
    row("file_delete", "file.delete", CALL),
    row("net_connect", "net.connect", CALL),
    row("net_bind", "net.bind", CALL),
    row("process_spawn", "process.spawn", CALL),
    row("capability_created", "capability.created"),
    row("capability_revoked", "capability.revoked"),
    row(
      "approval_requested",
      "approval.requested",
      "action_type becomes kind, request_id becomes approval_id; resource makes capability and presentation, over " +
        "which the importer computes the hash",
    ),
    row(
      "approval_granted",
      "approval.granted",
      "request_id becomes approval_id; scope, via; action and resource under extra",
    ),
    row(
      "approval_denied",
      ["approval.denied", "approval.expired"],
      "request_id becomes approval_id, reason becomes note; via timeout: expired; action under extra",
    ),
    row("session_started", "session.started", "user_id, platform"),
    row("session_ended", "session.ended", "reason; duration_secs becomes duration in nanoseconds"),
    row("context_summarized", "context.summarized", "evicted_count, tokens_freed"),
    row(
      "llm_request",
      "model.completed",
      "model, input_tokens, output_tokens; outcome failure: model.failed",
    ),
    row("server_started", "server.started", "name, transport; binary_hash under extra"),
    row("server_stopped", "server.stopped", "name, reason"),
    row("elicitation_sent", "mcp.elicitation", "phase sent; request_id, server, elicitation_type"),
    row("elicitation_received", "mcp.elicitation", "phase received; request_id, action"),
    row("security_violation", "security.violation", "violation_type, details"),
    row("sub_agent_spawned", "agent.spawned", "parent_session_id, child_session_id, description"),
    row("config_reloaded", "config.reloaded"),
    row(
      "admin_request",
      "admin.request",
      "method, required_capability, target_principal, params, device_key_id",
    ),
    row("net_accept", "net.accept", CALL),
    row("host_call_run", "host.run", "calls; the fold (BLAKE3) under extra"),
    row("host_call_loss", "host.loss", "calls, reason"),
    row("host_call_gap", "host.gap", "epoch, opened_at, reason"),
    row("host_call_admitted", "host.admitted", "call"),
    row(
      "http_request",
      ["http.request", "host.admitted"],
      "run_id becomes run. Its hashes are BLAKE3: where the exchange can't be hashed again with SHA-256, the whole " +
        "action is the call of a host.admitted",
    ),
    row(
      "http_response",
      "http.response",
      "run_id becomes run; status becomes http_status, and with body_len, complete and provider_request_ids a field " +
        "of the outcome; body_hash under extra",
    ),
    row("capability_changed", "capability.changed", "target_principal, kind, granted, revoked, via"),
    row(
      "capsule_installed",
      "code.installed",
      "capsule_id becomes code_id; version, target_principal; wasm_hash and manifest_hash under extra",
    ),
    row(
      "capsule_loaded",
      "code.loaded",
      "capsule_id becomes code_id; version, engine_profile, trigger; wasm_hash and manifest_hash under extra",
    ),
  ],
};

export const SYSTEM_MAPPINGS: readonly SystemMapping[] = [AGENTRT, LANGBOT, ASTRID];
