/**
 * The answer of a re-check: the report in the form that was asked for, and 409 where a gate failed.
 *
 * @module
 */
import {
  FORMAT_TYPES,
  formatReports,
  type RecheckFormat,
  shownReports,
} from "../../shared/recheck/format-report.ts";
import type { GateName, RecheckReport } from "../../shared/recheck/report.ts";
import { problemBody } from "../http/problem.ts";
import type { Verified } from "./verify-run.ts";

export interface RecheckAnswerParts {
  readonly report: RecheckReport;
  /** The report's JSON, with the members that the service adds. */
  readonly text: string;
  readonly principal: string;
  readonly gate: GateName | undefined;
  readonly format: RecheckFormat;
  readonly head: { readonly size: number; readonly root: string };
  /** Undefined where nobody asked to verify. */
  readonly verified: Verified | undefined;
  readonly requestId: string;
}

/** 200 with the report, or 409 with it where the gate fails: in JSON as the member `report` of a problem document. */
export function recheckAnswer(parts: RecheckAnswerParts): Response {
  const { report, principal, gate, format, head, verified } = parts;
  const intact = verified === undefined ? undefined : verified.verdict === "intact";
  const shown = shownReports([{ report, principal, head, intact }], gate === undefined ? null : { gate });
  const passed = shown.result?.passed ?? true;
  const status = passed ? 200 : 409;
  if (format !== "json") return answer(formatReports(format, shown), status, FORMAT_TYPES[format]);
  // Joined as text: a number in a capability leaves with the digits that it was recorded with.
  const judged = gate === undefined ? "" : `,"gate":${JSON.stringify({ name: gate, passed })}`;
  const text = `${parts.text.slice(0, -1)}${judged}}`;
  if (passed) return answer(text, status, "application/json");
  const problem = JSON.stringify(problemBody("gate-failed", {}, parts.requestId));
  return answer(`${problem.slice(0, -1)},"report":${text}}`, status, "application/problem+json");
}

function answer(text: string, status: number, type: string): Response {
  return new Response(text, { status, headers: { "content-type": type, "cache-control": "no-store" } });
}
