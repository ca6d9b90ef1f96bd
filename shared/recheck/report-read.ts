/**
 * A report from its JSON, as a service answers it, so that it can be rendered elsewhere.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonNumber, type JsonValue, jsonText, parseJsonValue } from "../json/value.ts";
import type { Decision } from "./model.ts";
import { NO_DECISION } from "./model.ts";
import type { RecheckedEvaluation, RecheckResult, SpecSource } from "./report.ts";
import { RecheckReport } from "./report.ts";

type JsonObject = ReadonlyMap<string, JsonValue>;

function refuse(): never {
  throw new RunsealError("recheck-report", "the text is no report of a re-check");
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return value instanceof Map ? value : refuse();
}

function textOf(object: JsonObject, name: string): string {
  const value = object.get(name);
  return typeof value === "string" ? value : refuse();
}

function textOr(object: JsonObject, name: string): string {
  return object.has(name) ? textOf(object, name) : "";
}

function wholeOf(object: JsonObject, name: string): number {
  const value = object.get(name);
  const number = value instanceof JsonNumber ? value.toNumber() : Number.NaN;
  return Number.isSafeInteger(number) ? number : refuse();
}

const RESULTS: readonly string[] = ["same", "different", "not_a_policy_evaluation", "not_recheckable"];

/**
 * Reads a report; members that a service adds are passed over, and counts are made anew. Throws `JsonError`, and
 * `RunsealError("recheck-report")` for a text of another shape.
 */
export function readReport(text: string): RecheckReport {
  return reportOf(parseJsonValue(text));
}

/** The same from a parsed value. */
export function reportOf(value: JsonValue): RecheckReport {
  const report = objectOf(value);
  const evaluations = report.get("evaluations");
  const notes = report.get("notes") ?? [];
  if (!Array.isArray(evaluations) || !Array.isArray(notes)) refuse();
  return new RecheckReport({
    runId: textOf(report, "run_id"),
    runStatus: textOf(report, "run_status"),
    policyId: textOf(report, "policy_id"),
    specSource: sourceOf(textOf(report, "spec_source")) || refuse(),
    notes: notes.map((note) => (typeof note === "string" ? note : refuse())),
    evaluations: evaluations.map((each) => evaluationOf(objectOf(each))),
  });
}

function sourceOf(text: string): SpecSource | "" {
  return text === "" || text === "recorded" || text === "current" ? text : refuse();
}

function evaluationOf(json: JsonObject): RecheckedEvaluation {
  const result = textOf(json, "result");
  if (!RESULTS.includes(result)) refuse();
  return {
    stepIndex: wholeOf(json, "step_index"),
    stepId: textOf(json, "step_id"),
    seq: wholeOf(json, "seq"),
    tool: textOf(json, "tool"),
    onResume: json.get("on_resume") === true,
    result: result as RecheckResult,
    recorded: decisionOf(objectOf(json.get("recorded"))),
    rechecked: json.has("rechecked") ? decisionOf(objectOf(json.get("rechecked"))) : null,
    recordedHash: textOr(json, "recorded_hash"),
    recheckedHash: textOr(json, "rechecked_hash"),
    detail: textOr(json, "detail"),
    specSource: sourceOf(textOr(json, "spec_source")),
    policyId: textOf(json, "policy_id"),
    reason: null,
  };
}

function decisionOf(json: JsonObject): Decision {
  const subject = (name: string): string | null => {
    const value = json.get(name);
    return value === undefined ? null : jsonText(value);
  };
  return {
    ...NO_DECISION,
    outcome: textOf(json, "outcome"),
    reason: textOr(json, "reason"),
    kind: textOr(json, "kind"),
    capability: subject("capability"),
    presentation: subject("presentation"),
  };
}
