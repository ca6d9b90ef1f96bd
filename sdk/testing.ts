/**
 * Re-checks in a test: what a policy decides on runs that were recorded is asserted, in any test framework.
 *
 *     await recheck(run, { policy: { rules } });              // nothing differs, and nothing is left out
 *     await recheckDiffers(run, { policy: { rules } }, 2, 5); // exactly steps 2 and 5 are decided otherwise
 *     await recheckPartial(run, { policy: { rules } });       // as recheck, but some may not be re-checkable
 *
 * Each throws `RecheckAssertionError` where that does not hold, and where nothing was checked: no such run, no evaluation,
 * a log that is broken. A check that nothing could fail is refused before anything is asked. Await them: a promise that
 * nobody awaits fails no test.
 *
 * @module
 */
import {
  type Check,
  type CheckFailure,
  type CheckFailureCode,
  checkReports,
  validCheck,
} from "../shared/recheck/check.ts";
import { formatReports, type ShownReport } from "../shared/recheck/format-report.ts";
import type { RecheckReport } from "../shared/recheck/report.ts";
import { readReport } from "../shared/recheck/report-read.ts";
import type { RunsealClient } from "./client.ts";
import { logPath, ProblemError } from "./client.ts";

/** A run that was recorded. */
export interface RecordedRun {
  /** Its key needs the scope recheck; with `decide` also read. */
  readonly client: RunsealClient;
  readonly principal: string;
  readonly run: string;
}

/** One evaluation as the service exports it: docs/policies.md ("decisions") has its members. */
export interface RecordedEvaluation {
  readonly seq: number;
  readonly hash: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

/** The answer of a policy of one's own. */
export interface OwnDecision {
  readonly outcome: "allow" | "require_approval" | "deny" | "abort";
  readonly reason?: string;
  readonly kind?: string;
  readonly capability?: unknown;
  readonly presentation?: unknown;
}

/** A policy that runs in the test itself. What it throws is a policy failure. */
export interface OwnPolicy {
  /**
   * Answers a decision, or its JSON text: JavaScript writes 649.0 as 649, and an approval that asks with another number
   * than the recorded one is another approval.
   *
   * @param text the evaluation's JSON text, every number as it was recorded
   */
  decide(evaluation: RecordedEvaluation, text: string): OwnDecision | string | Promise<OwnDecision | string>;
  readonly policy_id?: string;
}

/** What the run is re-checked under. */
export interface RecheckUnder {
  /**
   * A policy as the service takes it (`{rules}`, `{cedar}`, `{module}`, `{name, version?}`), its JSON text where numbers
   * must keep their digits, or one that runs here.
   */
  readonly policy: Readonly<Record<string, unknown>> | string | OwnPolicy;
  /** The tools as they are now: the requests then carry their specs. */
  readonly tools?: readonly unknown[];
  /** Whether the range that the run is read from is verified first. True unless told. */
  readonly verified?: boolean;
}

/** What was expected does not hold. Test frameworks show it as a failed assertion. */
export class RecheckAssertionError extends Error {
  override readonly name = "AssertionError";
  /** Of the first failure. */
  readonly code: CheckFailureCode;
  readonly failures: readonly CheckFailure[];
  /** Null where there is no such run. */
  readonly report: RecheckReport | null;
  readonly expected: Check;
  /** The report's text. */
  readonly actual: string;

  constructor(failures: readonly CheckFailure[], report: ShownReport | null, expected: Check) {
    const reports = report === null ? [] : [report];
    const text = formatReports("text", { reports, check: null, result: null });
    super(`${failures.map(({ message }) => message).join("; ")}\n${text}`.trimEnd());
    this.code = failures[0]?.code ?? "nothing-rechecked";
    this.failures = failures;
    this.report = report?.report ?? null;
    this.expected = expected;
    this.actual = text;
  }
}

/** Asserts that nothing is decided otherwise, and that nothing was left out. */
export function recheck(run: RecordedRun, under: RecheckUnder): Promise<RecheckReport> {
  return assertRecheck(run, under, { gate: "strict" });
}

/** The same, but evaluations that can't be re-checked may be left out. */
export function recheckPartial(run: RecordedRun, under: RecheckUnder): Promise<RecheckReport> {
  return assertRecheck(run, under, { gate: "proxy", partial: true });
}

/**
 * Asserts that exactly these steps, by index, are decided otherwise, and that nothing was left out. Throws
 * `RunsealError("recheck-check")` without a step: nothing could fail then that `recheck` does not say better.
 */
export function recheckDiffers(
  run: RecordedRun,
  under: RecheckUnder,
  ...steps: readonly number[]
): Promise<RecheckReport> {
  return assertRecheck(run, under, { differs: steps });
}

/** Asserts any check. Throws `RecheckAssertionError`, and `ProblemError` where the service refuses or is away. */
export async function assertRecheck(
  run: RecordedRun,
  under: RecheckUnder,
  asked: Check,
): Promise<RecheckReport> {
  const check = validCheck(asked);
  const shown = await ask(run, under);
  if (shown !== null && "code" in shown) throw new RecheckAssertionError([NOTHING], null, check);
  const { passed, failures } = checkReports(check, shown === null ? [] : [shown]);
  if (!passed || shown === null) throw new RecheckAssertionError(failures, shown, check);
  return shown.report;
}

/** The run has no evaluation that a policy of one's own could be asked about. */
const NOTHING = {
  code: "nothing-rechecked",
  message: "no evaluation can be re-checked: that proves nothing",
} as const satisfies CheckFailure;

/** The report; null for a run that is not there. */
async function ask(run: RecordedRun, under: RecheckUnder): Promise<ShownReport | typeof NOTHING | null> {
  const { client, principal } = run;
  const path = `${logPath(principal)}/runs/${encodeURIComponent(run.run)}`;
  const { policy, tools, verified = true } = under;
  const current = tools === undefined ? "" : `,"specs":"current","tools":${JSON.stringify(tools)}`;
  try {
    const text = isOwn(policy)
      ? await decisionsOf(client, path, policy)
      : typeof policy === "string"
        ? policy
        : JSON.stringify(policy);
    if (text === null) return NOTHING;
    const body = `{"policy":${text}${current}}`;
    const response = await client.request("POST", `${path}/recheck?verified=${verified}`, { body });
    const answered = await response.text();
    const { verified: range } = JSON.parse(answered) as { verified?: { verdict: string } };
    return {
      report: readReport(answered),
      principal,
      intact: range === undefined ? undefined : range.verdict === "intact",
    };
  } catch (error) {
    // A stored policy that is not there is 404, too, with the pointer to its name.
    if (error instanceof ProblemError && error.status === 404 && error.problem.pointer === undefined)
      return null;
    throw error;
  }
}

function isOwn(policy: RecheckUnder["policy"]): policy is OwnPolicy {
  return typeof policy === "object" && typeof policy.decide === "function";
}

/** Runs the policy over the run's evaluations; the JSON text of its decisions, null where there is none to make. */
async function decisionsOf(client: RunsealClient, path: string, policy: OwnPolicy): Promise<string | null> {
  const exported = await client.request("GET", `${path}/evaluations`);
  const promised = Number(exported.headers.get("runseal-evaluations"));
  const lines = (await exported.text()).split("\n").filter((line) => line !== "");
  if (lines.length !== promised) throw new Error("the service's answer broke off: evaluations are missing");
  const decisions: string[] = [];
  for (const line of lines) {
    const evaluation = JSON.parse(line) as Partial<RecordedEvaluation>;
    const { seq, hash, request } = evaluation;
    if (request === undefined || seq === undefined || hash === undefined) continue;
    const answer = await answerOf(policy, { ...evaluation, seq, hash, request }, line);
    decisions.push(`{"seq":${seq},"hash":${JSON.stringify(hash)},${answer}}`);
  }
  if (decisions.length === 0) return null;
  const id = policy.policy_id === undefined ? "" : `,"policy_id":${JSON.stringify(policy.policy_id)}`;
  return `{"decisions":[${decisions.join(",")}]${id}}`;
}

/** The member of a decision's JSON that the policy's answer is. */
async function answerOf(policy: OwnPolicy, evaluation: RecordedEvaluation, text: string): Promise<string> {
  try {
    const decision = await policy.decide(evaluation, text);
    return `"decision":${typeof decision === "string" ? decision : JSON.stringify(decision)}`;
  } catch (error) {
    return `"error":${JSON.stringify(error instanceof Error ? error.message : String(error))}`;
  }
}
