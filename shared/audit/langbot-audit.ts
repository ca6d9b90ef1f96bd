/**
 * The audit of one run's ledger: what LangBot's own script finds in it, one event at a time, keeping ids and findings
 * and no content (docs/audit.md "The ledger audit").
 *
 * @module
 */
import { authorizedTools } from "./langbot-authorization.ts";
import { LedgerCalls } from "./langbot-calls.ts";
import { isCreatedAfter, type LedgerQuery, MAX_CANDIDATES } from "./langbot-query.ts";
import {
  type ExpectedToolCall,
  envIssue,
  type LedgerFailure,
  type LedgerReport,
  type LedgerWarning,
  noRun,
  type SignalEvent,
} from "./langbot-report.ts";
import type { Column, LedgerEvent, LedgerRow, LedgerRun } from "./langbot-rows.ts";
import { argumentErrorSignal, diagnosticText, forbiddenSignal, hasResultText } from "./langbot-signals.ts";
import { decodePythonJson } from "./python-json.ts";
import { PythonFailure, type PyValue, pyEqual, pyStr, pyTruth } from "./python-value.ts";

const NATIVE_REASON =
  "External runner tool telemetry is not a LangBot Host tool call; the runner's own permission system governs it.";
const RECOVERED_REASON = "The model continued with a later successful tool call and the run completed.";
const NO_TOOLS_REASON = "The run authorization snapshot exposes no tools.";

interface Loaded {
  readonly value: PyValue | undefined;
  /** Why it does not decode. */
  readonly reason?: string;
}

/** Audits one run. Events may come in any order; the row may come at any time, and the last one counts. */
export class LedgerAudit {
  readonly #query: LedgerQuery;
  readonly #calls = new LedgerCalls();
  readonly #eventFailures: { readonly sequence: number; readonly failure: LedgerFailure }[] = [];
  readonly #suspicious: SignalEvent[] = [];
  readonly #argumentErrors: SignalEvent[] = [];
  #row: LedgerRow | null = null;
  /** The first event, by sequence, at which the script would have ended with an exception. */
  #crash: { readonly sequence: number; readonly reason: string } | null = null;
  #events = 0;
  #undecodable = 0;
  #lastSuccess = Number.NEGATIVE_INFINITY;
  #runCompleted = false;
  #runFailed = false;
  #hasExpected = false;
  #notRecorded: string[] = [];

  constructor(query: LedgerQuery) {
    this.#query = query;
  }

  row(row: LedgerRow): void {
    this.#row = row;
  }

  event(event: LedgerEvent): void {
    this.#events += 1;
    if (event.type === "run.completed") this.#runCompleted = true;
    if (event.type === "run.failed") this.#runFailed = true;
    try {
      this.#judge(event);
    } catch (error) {
      if (!(error instanceof PythonFailure)) throw error;
      const { sequence } = event;
      if (this.#crash === null || sequence < this.#crash.sequence)
        this.#crash = { sequence, reason: error.message };
    }
  }

  /** What the report concludes nothing from, since the record has no place for it; to be read after `finish`. */
  get notRecorded(): readonly string[] {
    return this.#notRecorded;
  }

  /** Whether an event starts the expected call: what a run is selected by. True where none is expected. */
  get hasExpectedCall(): boolean {
    return this.#query.toolName === undefined || this.#hasExpected;
  }

  #fail(sequence: number, failure: LedgerFailure): void {
    this.#eventFailures.push({ sequence, failure });
  }

  #judge(event: LedgerEvent): void {
    const { sequence, type } = event;
    const { value: data, reason } = load(event.data);
    if (reason !== undefined) {
      this.#undecodable += 1;
      this.#fail(sequence, { kind: "invalid_json", field: `agent_run_event[${sequence}].data_json`, reason });
    }
    if (data === undefined) {
      this.#judgeUnseen(event);
      return;
    }
    if (!(data instanceof Map)) {
      this.#fail(sequence, { kind: "invalid_event_payload", sequence, type });
      return;
    }
    const isStart = type === "tool.call.started";
    if (isStart || type === "tool.call.completed") this.#judgeCall(event, data, isStart);
    const text = diagnosticText(type, data);
    const signal = forbiddenSignal(text);
    if (signal !== "") {
      this.#suspicious.push({ sequence, type, signal });
    } else if (type === "tool.call.completed") {
      const error = argumentErrorSignal(text);
      if (error !== "") this.#argumentErrors.push({ sequence, type, signal: error });
    }
  }

  #judgeCall({ sequence, type }: LedgerEvent, data: ReadonlyMap<string, PyValue>, isStart: boolean): void {
    const text = (key: string): string => (data.has(key) ? pyStr(data.get(key) ?? null) : "");
    const id = text("tool_call_id");
    const name = text("tool_name");
    const { toolName, parameters, resultText } = this.#query;
    const withParameters = parameters === undefined || equals(data.get("parameters"), parameters);
    // A run is selected by the name as it stands, and its calls are counted by the name as text.
    if (isStart && toolName !== undefined && data.get("tool_name") === toolName && withParameters)
      this.#hasExpected = true;
    if (id === "") {
      this.#fail(sequence, { kind: "missing_tool_call_id", sequence, type });
    } else if (isStart) {
      this.#calls.started(id, sequence, name, name === toolName && withParameters);
    } else {
      const result = data.get("result") ?? null;
      const hasText = resultText !== undefined && hasResultText(result, resultText);
      this.#calls.completed(id, sequence, name, hasText);
      if (!pyTruth(data.get("error")) && result !== null)
        this.#lastSuccess = Math.max(this.#lastSuccess, sequence);
    }
  }

  /** An event whose content is not there: its call still pairs by the name that the envelope gives. */
  #judgeUnseen({ sequence, type, call }: LedgerEvent): void {
    if (call === undefined) return;
    if (type === "tool.call.started") this.#calls.started(call, sequence, null, false);
    if (type === "tool.call.completed") this.#calls.completed(call, sequence, null, false);
  }

  /** The report. Without a row, that no run is there. */
  finish(): LedgerReport {
    const row = this.#row;
    if (row === null) return noRun(this.#query.toolName);
    try {
      return this.#report(row);
    } catch (error) {
      if (error instanceof PythonFailure) return envIssue(error.message);
      throw error;
    }
  }

  #report(row: LedgerRow): LedgerReport {
    const failures: LedgerFailure[] = [];
    const warnings: LedgerWarning[] = [];
    const snapshot = load(row.authorization);
    if (snapshot.reason !== undefined)
      failures.push({
        kind: "invalid_json",
        field: "agent_run.authorization_json",
        reason: snapshot.reason,
      });
    // Erased or withheld, it allows everything and is missed by whoever reads the entries.
    const tools = snapshot.value === undefined ? undefined : authorizedTools(snapshot.value);
    if (this.#crash !== null) throw new PythonFailure(this.#crash.reason);
    if (tools !== undefined && tools.incomplete.length > 0)
      failures.push({ kind: "incomplete_tool_metadata", tools: tools.incomplete });
    failures.push(...inSequence(this.#eventFailures).map(({ failure }) => failure));
    if (row.status !== undefined && row.status !== "completed")
      failures.push({ kind: "run_status", actual: row.status, expected: "completed" });
    const { unrecorded } = row;
    if (!this.#runCompleted && unrecorded?.end !== true)
      failures.push({ kind: "missing_run_completed_event" });
    if (this.#runFailed) failures.push({ kind: "run_failed_event" });

    const isAllowed = (tool: string): boolean => tools === undefined || tools.names.has(tool);
    const calls = this.#calls.judge(isAllowed, unrecorded?.end === true);
    failures.push(...calls.failures);
    const isNative = this.#query.mode === "runner-native";
    if (calls.unauthorized.length > 0) {
      if (isNative)
        warnings.push({
          kind: "runner_native_tool_calls",
          calls: calls.unauthorized,
          reason: NATIVE_REASON,
        });
      else failures.push({ kind: "unauthorized_tool_calls", calls: calls.unauthorized });
    }
    const { signals, recovered } = this.#signals(row);
    for (const event of recovered)
      warnings.push({ kind: "recovered_tool_argument_error", event, reason: RECOVERED_REASON });
    if (signals.length > 0) failures.push({ kind: "forbidden_error_signals", events: signals });
    if (this.#events === 0 && unrecorded?.events !== true) failures.push({ kind: "missing_run_events" });
    if (tools?.none === true) warnings.push({ kind: "no_authorized_tools", reason: NO_TOOLS_REASON });

    const sums = this.#calls.sums();
    const noSnapshot = "missing" in row.authorization && row.authorization.missing === "not-recorded";
    this.#notRecorded = [
      ...(unrecorded?.status === true ? ["run.status: how the run stands, as its host sees it"] : []),
      ...(unrecorded?.end === true ? ["run.completed: whether and how the run ended"] : []),
      ...(calls.open > 0 ? [`tool.call.completed: the ends of ${calls.open} call(s)`] : []),
      ...(unrecorded?.events === true && this.#events === 0 ? ["events of a run ledger"] : []),
      // Where the runner's own permissions govern the calls, no snapshot is asked for.
      ...(noSnapshot && !isNative && sums.started > 0
        ? ["run.created.authorization: which tools the run may use"]
        : []),
    ];
    const expected = this.#expected(failures);
    return {
      status: failures.length === 0 ? "pass" : "fail",
      reason:
        failures.length === 0
          ? "Agent run ledger audit passed."
          : `Agent run ledger audit found ${failures.length} invariant failure(s).`,
      run: {
        run_id: row.run_id,
        runner_id: row.runner_id,
        status: row.status ?? null,
        created_at: row.created_at ?? "None",
        finished_at: row.finished_at ?? "None",
      },
      metrics: {
        event_count: this.#events,
        tool_call_started: sums.started,
        tool_call_completed: sums.completed,
        tool_call_ids: sums.ids,
        authorized_tool_count: tools?.names.size ?? 0,
        tool_authorization_mode: this.#query.mode,
        runner_native_tool_call_count: isNative ? calls.unauthorized.length : 0,
        invalid_event_json: this.#undecodable,
        suspicious_error_count: signals.length,
        recovered_tool_argument_error_count: recovered.length,
      },
      expected_tool_call: expected,
      failures,
      warnings,
    };
  }

  /** Argument errors are recovered from by a later success in a run that completed; the others are signals, last. */
  #signals(row: LedgerRow): { signals: SignalEvent[]; recovered: SignalEvent[] } {
    const { unrecorded } = row;
    const completed =
      (row.status === "completed" || unrecorded?.status === true) &&
      (this.#runCompleted || unrecorded?.end === true) &&
      !this.#runFailed;
    const isRecovered = ({ sequence }: SignalEvent): boolean => completed && this.#lastSuccess > sequence;
    const errors = inSequence(this.#argumentErrors);
    return {
      signals: [...inSequence(this.#suspicious), ...errors.filter((error) => !isRecovered(error))],
      recovered: errors.filter(isRecovered),
    };
  }

  #expected(failures: LedgerFailure[]): ExpectedToolCall | null {
    const { toolName, parameters, resultText } = this.#query;
    if (toolName === undefined) return null;
    const { expectedStarts, expectedCompletions, expectedText } = this.#calls.sums();
    if (expectedStarts !== 1)
      failures.push({ kind: "expected_tool_call_count", actual: expectedStarts, expected: 1 });
    const textMatches = resultText === undefined || expectedText;
    if (!textMatches) failures.push({ kind: "expected_tool_result_text_missing" });
    return {
      tool_name: toolName,
      parameters_match_required: parameters !== undefined,
      matched_started_count: expectedStarts,
      matched_completed_count: expectedCompletions,
      result_text_match_required: resultText !== undefined,
      result_text_match: textMatches,
    };
  }
}

/** The audit of a run's rows. */
export function auditLedgerRun(run: LedgerRun, query: LedgerQuery): LedgerReport {
  return audited(run, query).finish();
}

/** The audit of the run that the query selects among these, the newest first. */
export function auditLedger(runs: Iterable<LedgerRun>, query: LedgerQuery): LedgerReport {
  let candidates = 0;
  for (const run of runs) {
    if (query.runId !== undefined) {
      if (run.row.run_id === query.runId) return auditLedgerRun(run, query);
      continue;
    }
    if (query.toolName === undefined) return auditLedgerRun(run, query);
    if (!isCreatedAfter(query, run.row.created_at)) continue;
    const audit = audited(run, query);
    if (audit.hasExpectedCall) return audit.finish();
    candidates += 1;
    if (candidates >= MAX_CANDIDATES) break;
  }
  return noRun(query.toolName);
}

function audited(run: LedgerRun, query: LedgerQuery): LedgerAudit {
  const audit = new LedgerAudit(query);
  for (const event of run.events) audit.event(event);
  audit.row(run.row);
  return audit;
}

/** NULL and an empty text are an empty object; what does not decode is one, too, with the reason. */
function load(column: Column): Loaded {
  if ("missing" in column) return { value: undefined };
  if ("value" in column) return { value: pyTruth(column.value) ? column.value : new Map() };
  if (column.text === "") return { value: new Map() };
  const decoded = decodePythonJson(column.text);
  return decoded.ok ? { value: decoded.value } : { value: new Map(), reason: decoded.reason };
}

function equals(value: PyValue | undefined, parameters: ReadonlyMap<string, PyValue>): boolean {
  return value !== undefined && pyEqual(value, new Map(parameters));
}

/** Stable: events of the same sequence stay in the order in which they came. */
function inSequence<Item extends { readonly sequence: number }>(items: readonly Item[]): Item[] {
  return [...items].sort((a, b) => a.sequence - b.sequence);
}
