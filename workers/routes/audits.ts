/**
 * Audits of runs: one that is named, or one that is chosen among the tenant's (docs/audit.md).
 *
 * @module
 */
import { z } from "zod";
import { AuditAnswer, AuditIn, AuditQuery } from "../../shared/api/audits.ts";
import { OpaqueId, PrincipalName } from "../../shared/api/schemas.ts";
import type { LedgerQuery } from "../../shared/audit/langbot-query.ts";
import { ledgerQuery } from "../../shared/audit/langbot-query.ts";
import { noRun } from "../../shared/audit/langbot-report.ts";
import type { AuditReport } from "../../shared/audit/report.ts";
import { auditReport } from "../../shared/audit/report.ts";
import { auditText } from "../../shared/audit/report-text.ts";
import { JsonError } from "../../shared/json/errors.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import type { JsonValue } from "../../shared/json/value.ts";
import { jsonText as canonicalText, parseJsonValue } from "../../shared/json/value.ts";
import { readBody } from "../http/body.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, plain, refuse, tenantRoute } from "../http/route.ts";
import { openLog } from "../logs/open-log.ts";
import { auditRun } from "../runs/audit-run.ts";
import { MAX_LOOKED_AT, selectRun } from "../runs/select-run.ts";

const MAX_AUDIT_BODY = 256 * 1024;

interface Place {
  readonly principal: string | null;
  readonly looked_at?: number;
}

function answer(report: AuditReport, place: Place, format: "json" | "text"): Response {
  if (format === "json") return json({ ...report, ...place });
  const log = place.principal === null ? "" : `log: ${place.principal}\n`;
  return plain(`${auditText(report)}\n${log}`);
}

const one = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/runs/{run}/audit",
    operation: "auditRun",
    tag: "audits",
    scope: "read",
    summary: "Whether what must always hold did hold in a run",
    description: "The answer is 200 whatever the verdict: `status` is pass, fail or env_issue.",
    params: z.object({ p: PrincipalName, run: OpaqueId }),
    query: AuditQuery,
    answers: { 200: { description: "the report", schema: AuditAnswer } },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p);
    const asked = readQuery(
      {
        expected_tool_name: query.expected_tool_name,
        expected_parameters_json: query.expected_parameters,
        expected_result_text: query.expected_result_text,
        tool_authorization_mode: query.mode,
      },
      { tool: "?expected_tool_name", parameters: "?expected_parameters", createdAfter: "" },
    );
    const report = await auditRun(env, log, params.run, asked, { unrecorded: query.unrecorded });
    if (report === null) throw new Problem("not-found");
    return answer(report, { principal: params.p }, query.format);
  },
);

const select = tenantRoute(
  {
    method: "POST",
    path: "/v1/audits",
    operation: "auditSelection",
    tag: "audits",
    scope: "read",
    summary: "Choose a run among the tenant's, the newest first, and audit it",
    description:
      "By its id, by a tool call that is expected of it, or else the newest one. The answer is 200 whatever the verdict.",
    query: z.object({ format: z.enum(["json", "text"]).default("json") }),
    rawBody: { schema: AuditIn, contentTypes: ["application/json"], limit: MAX_AUDIT_BODY },
    answers: { 200: { description: "the report", schema: AuditAnswer } },
  },
  async ({ request, env, caller, query }) => {
    const { body, parameters } = await readSelection(request);
    const asked = readQuery(
      {
        run_id: body.run_id,
        created_after: body.created_after,
        expected_tool_name: body.expected?.tool_name,
        expected_parameters_json: parameters,
        expected_result_text: body.expected?.result_text,
        tool_authorization_mode: body.mode,
      },
      { tool: "/expected", parameters: "/expected/parameters", createdAfter: "/created_after" },
    );
    const { newest, principals, unrecorded } = body;
    const choice = await selectRun(env, caller, { query: asked, newest, principals });
    const { chosen } = choice;
    const place = { principal: chosen?.log.identity.name ?? null, looked_at: choice.lookedAt };
    const report =
      chosen === null ? null : await auditRun(env, chosen.log, chosen.run, asked, { unrecorded });
    return answer(report ?? nothingFound(asked, choice.complete), place, query.format);
  },
);

/** No run is the one that was asked for; where not all were looked at, that is not known. */
function nothingFound(query: LedgerQuery, complete: boolean): AuditReport {
  if (complete) return auditReport({ ledger: noRun(query.toolName) });
  const reason = `No run was found among the newest ${MAX_LOOKED_AT}; older ones were not looked at.`;
  return auditReport({ ledger: { status: "env_issue", reason, failures: [], warnings: [] } });
}

type Arguments = Parameters<typeof ledgerQuery>[0];

/** The query, or a 400 problem that says which argument is refused and not what it says. */
function readQuery(
  given: Arguments,
  pointers: { readonly tool: string; readonly parameters: string; readonly createdAfter: string },
): LedgerQuery {
  const result = ledgerQuery(given);
  if (result.ok) return result.query;
  const { created_after, expected_parameters_json } = given;
  if (!ledgerQuery({ created_after }).ok) throw refused(pointers.createdAfter, "a time is ISO 8601");
  if (!ledgerQuery({ expected_tool_name: "t", expected_parameters_json }).ok)
    throw refused(pointers.parameters, "expected parameters are a JSON object");
  throw refused(pointers.tool, "expected parameters and a result text need the name of a tool");
}

function refused(pointer: string, detail: string): Problem {
  return new Problem("invalid-request", { pointer, detail });
}

/** The body, and the text of the expected parameters: numbers keep the digits that they were sent with. */
async function readSelection(
  request: Request,
): Promise<{ body: z.infer<typeof AuditIn>; parameters: string | undefined }> {
  const { text, ok } = decodeUtf8(await readBody(request, MAX_AUDIT_BODY));
  if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
  let tree: JsonValue;
  try {
    tree = parseJsonValue(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Problem(error.code, { pointer: error.pointer, detail: error.message });
  }
  const parsed = AuditIn.safeParse(JSON.parse(text));
  if (!parsed.success) throw refuse(parsed.error, "body");
  const expected = tree instanceof Map ? tree.get("expected") : undefined;
  const parameters = expected instanceof Map ? expected.get("parameters") : undefined;
  return {
    body: parsed.data,
    parameters:
      parameters === undefined || typeof parameters === "string" ? parameters : canonicalText(parameters),
  };
}

export const auditRoutes: readonly Route[] = [one, select];
