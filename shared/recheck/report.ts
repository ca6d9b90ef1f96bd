/**
 * The report of one re-checked run, its JSON and its gates (docs/recheck.md, "The report", "Gates").
 *
 * @module
 */
import { quote as quoteText } from "../json/chars.ts";
import type { Decision, NotRecheckableReason } from "./model.ts";

export type RecheckResult = "same" | "different" | "not_a_policy_evaluation" | "not_recheckable";
export type SpecSource = "recorded" | "current";
export type PolicyIdentity = "unknown" | "changed" | "unchanged";

/** What one recorded evaluation came to. */
export interface RecheckedEvaluation {
  /** -1 where the evaluation has no step. */
  readonly stepIndex: number;
  readonly stepId: string;
  readonly seq: number;
  readonly tool: string;
  readonly onResume: boolean;
  readonly result: RecheckResult;
  readonly recorded: Decision;
  /** Null where the policy was not asked, or failed. */
  readonly rechecked: Decision | null;
  /** Hex; "" for a side that asks for no approval, and where the two were not compared. Computed when it is read. */
  readonly recordedHash: string;
  readonly recheckedHash: string;
  readonly detail: string;
  /** "" where no spec was found for the request. */
  readonly specSource: SpecSource | "";
  readonly policyId: string;
  /** What to count a `not_recheckable` by; null for the other results. It is not in the JSON. */
  readonly reason: NotRecheckableReason | null;
}

export interface ReportFields {
  readonly runId: string;
  readonly runStatus: string;
  /** Identity of the policy that was given; "" for none. */
  readonly policyId: string;
  readonly specSource: SpecSource;
  readonly notes: readonly string[];
  readonly evaluations: readonly RecheckedEvaluation[];
}

export class RecheckReport {
  readonly runId: string;
  readonly runStatus: string;
  readonly policyId: string;
  readonly identity: PolicyIdentity;
  readonly specSource: SpecSource;
  readonly notes: readonly string[];
  readonly evaluations: readonly RecheckedEvaluation[];
  readonly differences: number;
  /** Evaluations that are same or different. */
  readonly rechecked: number;
  readonly notRecheckable: number;

  constructor(fields: ReportFields) {
    this.runId = fields.runId;
    this.runStatus = fields.runStatus;
    this.policyId = fields.policyId;
    this.specSource = fields.specSource;
    this.notes = fields.notes;
    this.evaluations = fields.evaluations;
    const counts = countsOf(fields.policyId, fields.evaluations);
    this.identity = identityOf(fields.policyId, counts);
    this.differences = counts.different;
    this.rechecked = counts.different + counts.same;
    this.notRecheckable = counts.notRecheckable;
  }

  /** Nothing re-checked differs. A report that re-checked nothing is the same: see the gates. */
  get same(): boolean {
    return this.differences === 0;
  }

  /** Every evaluation was re-checked, or is none. */
  get complete(): boolean {
    return this.notRecheckable === 0;
  }
}

interface Counts {
  same: number;
  different: number;
  notRecheckable: number;
  /** Re-checked evaluations that recorded no identity, and those that recorded another one than was given. */
  unnamed: number;
  otherwise: number;
}

/** Counts in one pass: a report may have 10^5 evaluations. */
function countsOf(given: string, evaluations: readonly RecheckedEvaluation[]): Counts {
  const counts: Counts = { same: 0, different: 0, notRecheckable: 0, unnamed: 0, otherwise: 0 };
  for (const { result, policyId } of evaluations) {
    if (result === "same") counts.same++;
    else if (result === "different") counts.different++;
    else {
      if (result === "not_recheckable") counts.notRecheckable++;
      continue;
    }
    if (policyId === "") counts.unnamed++;
    else if (policyId !== given) counts.otherwise++;
  }
  return counts;
}

/** Compares the given identity with those that the re-checked evaluations recorded. */
function identityOf(given: string, { same, different, unnamed, otherwise }: Counts): PolicyIdentity {
  if (same + different === 0 || given === "" || unnamed > 0) return "unknown";
  return otherwise === 0 ? "unchanged" : "changed";
}

export type GateName = "strict" | "proxy";

/** What a gate looks at: one report, or the sums of a job. */
export type GateInput = Pick<RecheckReport, "same" | "rechecked" | "complete">;

/**
 * Whether the reports pass the gate together. `proxy`: nothing differs and something was re-checked; `strict`: and
 * nothing was left out. No reports at all pass neither.
 */
export function passesGate(gate: GateName, reports: readonly GateInput[]): boolean {
  const rechecked = reports.reduce((sum, report) => sum + report.rechecked, 0);
  if (rechecked === 0 || !reports.every(({ same }) => same)) return false;
  return gate === "proxy" || reports.every(({ complete }) => complete);
}

/** The report as one JSON text, members in the documented order, capabilities and presentations as they are. */
export function reportJson(report: RecheckReport): string {
  const members: string[] = [
    `"run_id":${quote(report.runId)}`,
    `"run_status":${quote(report.runStatus)}`,
    `"policy_id":${quote(report.policyId)}`,
    `"identity":"${report.identity}"`,
    `"spec_source":"${report.specSource}"`,
  ];
  if (report.notes.length > 0) members.push(`"notes":[${report.notes.map((note) => quote(note)).join(",")}]`);
  members.push(
    `"evaluations":[${report.evaluations.map(evaluationJson).join(",")}]`,
    `"same":${report.same}`,
    `"differences":${report.differences}`,
    `"rechecked":${report.rechecked}`,
    `"not_recheckable":${report.notRecheckable}`,
    `"complete":${report.complete}`,
  );
  return `{${members.join(",")}}`;
}

function evaluationJson(evaluation: RecheckedEvaluation): string {
  const members: string[] = [
    `"step_index":${evaluation.stepIndex}`,
    `"step_id":${quote(evaluation.stepId)}`,
    `"seq":${evaluation.seq}`,
    `"tool":${quote(evaluation.tool)}`,
  ];
  const optional = (name: string, text: string) => {
    if (text !== "") members.push(`"${name}":${quote(text)}`);
  };
  if (evaluation.onResume) members.push('"on_resume":true');
  members.push(`"result":"${evaluation.result}"`, `"recorded":${decisionJson(evaluation.recorded)}`);
  if (evaluation.rechecked !== null) members.push(`"rechecked":${decisionJson(evaluation.rechecked)}`);
  optional("recorded_hash", evaluation.recordedHash);
  optional("rechecked_hash", evaluation.recheckedHash);
  optional("detail", evaluation.detail);
  optional("spec_source", evaluation.specSource);
  members.push(`"policy_id":${quote(evaluation.policyId)}`);
  return `{${members.join(",")}}`;
}

/** Most texts of a report are names and hashes. */
const PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;

/** A JSON string. Half a surrogate pair, which a policy's own words may have, becomes U+FFFD. */
function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return quoteText(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}

/** A decision as JSON; its capability and presentation are JSON texts already. */
export function decisionJson(decision: Decision): string {
  const members = [`"outcome":${quote(decision.outcome)}`];
  if (decision.reason !== "") members.push(`"reason":${quote(decision.reason)}`);
  if (decision.kind !== "") members.push(`"kind":${quote(decision.kind)}`);
  if (decision.capability !== null) members.push(`"capability":${decision.capability}`);
  if (decision.presentation !== null) members.push(`"presentation":${decision.presentation}`);
  return `{${members.join(",")}}`;
}
