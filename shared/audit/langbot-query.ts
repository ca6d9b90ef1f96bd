/**
 * What a ledger audit is asked: which run, which expectations, which mode.
 *
 * @module
 */
import { decodePythonJson } from "./python-json.ts";
import { naiveUtcText } from "./python-time.ts";
import { PythonFailure, type PyValue } from "./python-value.ts";

/** The script's arguments, by the names of its options. An empty text is an absent one, as there. */
export interface LedgerArguments {
  /** `--run-id` */
  readonly run_id?: string | undefined;
  /** `--created-after`: ISO 8601; without an offset it is UTC. */
  readonly created_after?: string | undefined;
  /** `--expected-tool-name` */
  readonly expected_tool_name?: string | undefined;
  /** `--expected-parameters-json`: the text of a JSON object. */
  readonly expected_parameters_json?: string | undefined;
  /** `--expected-result-text` */
  readonly expected_result_text?: string | undefined;
  /** `--tool-authorization-mode`: `strict`, which is the default, or `runner-native`. Any other is strict, too. */
  readonly tool_authorization_mode?: string | undefined;
}

export interface LedgerQuery {
  readonly runId?: string;
  /** `YYYY-MM-DD HH:MM:SS.ffffff` in UTC. */
  readonly createdAfter?: string;
  readonly toolName?: string;
  readonly parameters?: ReadonlyMap<string, PyValue>;
  readonly resultText?: string;
  readonly mode: string;
}

/** Runs are looked through for an expected call, newest first, until this many. */
export const MAX_CANDIDATES = 100;

export type QueryResult =
  | { readonly ok: true; readonly query: LedgerQuery }
  /** The reason of an `env_issue`. */
  | { readonly ok: false; readonly reason: string };

/** Reads the arguments, and refuses them in the script's order and words. */
export function ledgerQuery(given: LedgerArguments): QueryResult {
  try {
    return { ok: true, query: read(given) };
  } catch (error) {
    if (error instanceof PythonFailure) return { ok: false, reason: error.message };
    throw error;
  }
}

function read(given: LedgerArguments): LedgerQuery {
  const toolName = given.expected_tool_name || undefined;
  const parameters = parametersOf(given.expected_parameters_json);
  if ((parameters !== undefined || given.expected_result_text) && toolName === undefined)
    throw new PythonFailure("--expected-tool-name is required with expected parameters or result text");
  return {
    mode: given.tool_authorization_mode || "strict",
    ...(given.run_id ? { runId: given.run_id } : {}),
    ...(given.created_after ? { createdAfter: naiveUtcText(given.created_after) } : {}),
    ...(toolName === undefined ? {} : { toolName }),
    ...(parameters === undefined ? {} : { parameters }),
    // An empty one counts here: it is the text that a result has to have.
    ...(given.expected_result_text === undefined ? {} : { resultText: given.expected_result_text }),
  };
}

function parametersOf(text: string | undefined): ReadonlyMap<string, PyValue> | undefined {
  if (!text) return undefined;
  const decoded = decodePythonJson(text);
  if (!decoded.ok) throw new PythonFailure(decoded.reason);
  if (!(decoded.value instanceof Map))
    throw new PythonFailure("--expected-parameters-json must decode to an object");
  return decoded.value;
}

/** Whether a run of this `created_at` is looked at. A time that does not parse is compared as the text that it is. */
export function isCreatedAfter(query: LedgerQuery, createdAt: string | null): boolean {
  if (query.createdAfter === undefined) return true;
  if (createdAt === null) return false;
  try {
    return naiveUtcText(createdAt) >= query.createdAfter;
  } catch {
    return createdAt >= query.createdAfter;
  }
}
