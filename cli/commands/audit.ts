/**
 * `runseal audit`: whether what must always hold did hold in a run.
 *
 * @module
 */
import { type LedgerArguments, ledgerQuery } from "../../shared/audit/langbot-query.ts";
import type { AuditReport } from "../../shared/audit/report.ts";
import { auditJson, exitCodeOf } from "../../shared/audit/report.ts";
import { auditText } from "../../shared/audit/report-text.ts";
import { refusedAudit } from "../../shared/audit/run-audit.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import { clientOf, JSON_OPTION, PRINCIPAL_OPTION, SERVER_OPTIONS, text, UsageError } from "../command.ts";

/** The script's options, and what `ledgerQuery` calls them. */
function argumentsOf({ values }: Invocation): LedgerArguments {
  const mode = text(values, "tool-authorization-mode");
  if (mode !== undefined && mode !== "strict" && mode !== "runner-native")
    throw new UsageError("--tool-authorization-mode is strict or runner-native");
  return {
    run_id: text(values, "run-id"),
    created_after: text(values, "created-after"),
    expected_tool_name: text(values, "expected-tool-name"),
    expected_parameters_json: text(values, "expected-parameters-json"),
    expected_result_text: text(values, "expected-result-text"),
    tool_authorization_mode: mode,
  };
}

/** The body of `POST /v1/audits`. An empty option is an absent one, as in the script. */
function bodyOf(given: LedgerArguments, { values }: Invocation): string {
  const { run_id, created_after, expected_tool_name, expected_parameters_json } = given;
  const principal = text(values, "principal");
  return JSON.stringify({
    ...(run_id ? { run_id } : {}),
    ...(principal === undefined ? {} : { principals: [principal] }),
    ...(created_after ? { created_after } : {}),
    ...(expected_tool_name
      ? {
          expected: {
            tool_name: expected_tool_name,
            ...(expected_parameters_json ? { parameters: expected_parameters_json } : {}),
            ...(given.expected_result_text === undefined ? {} : { result_text: given.expected_result_text }),
          },
        }
      : {}),
    ...(given.tool_authorization_mode === undefined ? {} : { mode: given.tool_authorization_mode }),
    ...(values["accept-unrecorded"] === true ? { unrecorded: "accept" } : {}),
  });
}

export const auditCommand: Command = {
  name: "audit",
  usage: "[--principal NAME] [--run-id RUN | --expected-tool-name TOOL]",
  summary: "Audit a run: exit 0 where all held, 1 where something did not, 2 where it could not be told",
  details: [
    "Without --run-id and --expected-tool-name the newest run is audited; with an expected tool, the newest one of at",
    "most 100 that calls it. docs/audit.md says what each failure and finding means.",
  ].join("\n"),
  options: {
    ...PRINCIPAL_OPTION,
    "run-id": { type: "string", short: "r", value: "RUN", help: "the run, by its name here or in LangBot" },
    "created-after": {
      type: "string",
      value: "TIME",
      help: "of the runs with the expected call, none older (ISO 8601)",
    },
    "expected-tool-name": {
      type: "string",
      value: "TOOL",
      help: "a tool that the run has to call exactly once",
    },
    "expected-parameters-json": { type: "string", value: "JSON", help: "the parameters of that call" },
    "expected-result-text": { type: "string", value: "TEXT", help: "a text of its result has to equal it" },
    "tool-authorization-mode": {
      type: "string",
      value: "MODE",
      help: "strict (the default), or runner-native: calls of other tools are a warning",
    },
    "accept-unrecorded": {
      type: "boolean",
      help: "pass where all that is missing is what the record has no place for",
    },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation): Promise<ExitCode> {
    const { out, json, positionals } = invocation;
    if (positionals.length > 0) throw new UsageError("audit takes no arguments but its options");
    const given = argumentsOf(invocation);
    const query = ledgerQuery(given);
    // What the arguments themselves forbid is answered in the script's words, without the service.
    const report = query.ok
      ? ((await (
          await clientOf(invocation).request("POST", "/v1/audits", { body: bodyOf(given, invocation) })
        ).json()) as AuditReport & { principal?: string | null })
      : refusedAudit(query.reason);
    out(json ? auditJson(report) : auditText(report));
    if (!json && "principal" in report && typeof report.principal === "string")
      out(`log: ${report.principal}`);
    return exitCodeOf(report);
  },
};
