/**
 * The report of the ledger audit, member for member that of LangBot's own script. Its JSON
 * keys are in this order.
 *
 * @module
 */
import type { IncompleteTool } from "./langbot-authorization.ts";

/** `env_issue`: the audit itself could not be made. */
export type AuditStatus = "pass" | "fail" | "env_issue";

export interface EventRef {
  readonly sequence: number;
  readonly type: string;
}
export interface SignalEvent extends EventRef {
  /** The words that were found. */
  readonly signal: string;
}
export interface CallRef {
  readonly tool_call_id: string;
  readonly tool_name: string;
}

/** In the order in which a report lists them. */
export type LedgerFailure =
  | { readonly kind: "invalid_json"; readonly field: string; readonly reason: string }
  | { readonly kind: "incomplete_tool_metadata"; readonly tools: readonly IncompleteTool[] }
  | ({ readonly kind: "invalid_event_payload" } & EventRef)
  | ({ readonly kind: "missing_tool_call_id" } & EventRef)
  | { readonly kind: "run_status"; readonly actual: string | null; readonly expected: "completed" }
  | { readonly kind: "missing_run_completed_event" }
  | { readonly kind: "run_failed_event" }
  | {
      readonly kind: "tool_call_pairing";
      readonly tool_call_id: string;
      readonly started: number;
      readonly completed: number;
    }
  | { readonly kind: "tool_name_mismatch"; readonly tool_call_id: string }
  | { readonly kind: "tool_call_order"; readonly tool_call_id: string }
  | { readonly kind: "unauthorized_tool_calls"; readonly calls: readonly CallRef[] }
  | { readonly kind: "forbidden_error_signals"; readonly events: readonly SignalEvent[] }
  | { readonly kind: "missing_run_events" }
  | { readonly kind: "expected_tool_call_count"; readonly actual: number; readonly expected: 1 }
  | { readonly kind: "expected_tool_result_text_missing" }
  | { readonly kind: "expected_tool_call_missing" };

export type LedgerWarning =
  | { readonly kind: "runner_native_tool_calls"; readonly calls: readonly CallRef[]; readonly reason: string }
  | { readonly kind: "recovered_tool_argument_error"; readonly event: SignalEvent; readonly reason: string }
  | { readonly kind: "no_authorized_tools"; readonly reason: string };

export interface LedgerMetrics {
  readonly event_count: number;
  readonly tool_call_started: number;
  readonly tool_call_completed: number;
  readonly tool_call_ids: number;
  readonly authorized_tool_count: number;
  readonly tool_authorization_mode: string;
  readonly runner_native_tool_call_count: number;
  readonly invalid_event_json: number;
  readonly suspicious_error_count: number;
  readonly recovered_tool_argument_error_count: number;
}

export interface ExpectedToolCall {
  readonly tool_name: string;
  readonly parameters_match_required: boolean;
  readonly matched_started_count: number;
  readonly matched_completed_count: number;
  readonly result_text_match_required: boolean;
  readonly result_text_match: boolean;
}

/** A time that is NULL reads "None", as the script prints it. */
export interface LedgerRunSummary {
  readonly run_id: string;
  readonly runner_id: string | null;
  readonly status: string | null;
  readonly created_at: string;
  readonly finished_at: string;
}

export interface LedgerReport {
  readonly status: AuditStatus;
  readonly reason: string;
  /** With `metrics` and `expected_tool_call` absent where no run was audited. */
  readonly run?: LedgerRunSummary;
  readonly metrics?: LedgerMetrics;
  readonly expected_tool_call?: ExpectedToolCall | null;
  readonly failures: readonly LedgerFailure[];
  readonly warnings: readonly LedgerWarning[];
}

/** The audit could not be made, and why. */
export function envIssue(reason: string): LedgerReport {
  return { status: "env_issue", reason, failures: [], warnings: [] };
}

/** No run is there to audit; where a tool call was expected, that it is in no run is the failure. */
export function noRun(expectedToolName: string | undefined): LedgerReport {
  if (expectedToolName === undefined) return envIssue("No matching Runner run exists.");
  return {
    status: "fail",
    reason: "No Runner run contains the expected tool call.",
    failures: [{ kind: "expected_tool_call_missing" }],
    warnings: [],
  };
}
