/**
 * `runseal recheck`: what another policy would have decided on a recorded run, and whether that is what was expected.
 *
 * @module
 */
import { logPath, ProblemError } from "../../sdk/client.ts";
import { RunsealError } from "../../shared/errors.ts";
import { type Check, validCheck } from "../../shared/recheck/check.ts";
import { formatReports, type ShownReport, shownReports } from "../../shared/recheck/format-report.ts";
import { readReport } from "../../shared/recheck/report-read.ts";
import type { Command, ExitCode, Invocation, Values } from "../command.ts";
import {
  clientOf,
  EXIT,
  JSON_OPTION,
  PRINCIPAL_OPTION,
  required,
  SERVER_OPTIONS,
  text,
  UsageError,
} from "../command.ts";
import { fileText } from "../files.ts";
import { POLICY_OPTIONS, policyText, RECHECK_OPTIONS } from "../policy-file.ts";
import { FORMAT_OPTION, formatOf } from "../report-format.ts";

/** What the options expect of the report; the proxy's gate unless told. */
function checkOf(values: Values): Check {
  const gate = text(values, "gate");
  if (gate !== undefined && gate !== "proxy" && gate !== "strict")
    throw new UsageError("--gate is proxy or strict");
  const steps = text(values, "expect-different");
  if (steps !== undefined && !/^[0-9]{1,9}(?:,[0-9]{1,9})*$/.test(steps))
    throw new UsageError("--expect-different takes the indices of steps, with commas between: 2,5");
  const noNewAllow = values["no-new-allow"] === true;
  const expectsElse = steps !== undefined || noNewAllow;
  const check: Check = {
    ...(gate !== undefined ? { gate } : expectsElse ? {} : { gate: "proxy" }),
    ...(steps === undefined ? {} : { differs: steps.split(",").map(Number) }),
    ...(noNewAllow ? { noNewAllow } : {}),
    ...(values.partial === true ? { partial: true } : {}),
  };
  try {
    return validCheck(check);
  } catch (error) {
    if (error instanceof RunsealError) throw new UsageError(error.message);
    throw error;
  }
}

/** What the service adds to a report, as far as it is shown. */
interface Added {
  readonly head?: { readonly size: number; readonly root: string };
  readonly verified?: { readonly verdict: string };
}

/** The report's text as it was answered, and what is shown of it; null where there is no such run. */
async function ask(
  invocation: Invocation,
  principal: string,
): Promise<{ readonly answered: string; readonly report: ShownReport } | null> {
  const { values } = invocation;
  const policy = await policyText(values, POLICY_OPTIONS);
  const toolsFile = text(values, "tools");
  const tools = toolsFile === undefined ? "" : `,"specs":"current","tools":${await fileText(toolsFile)}`;
  const run = encodeURIComponent(required(values, "run"));
  const query = values.verified === true ? "?verified=true" : "";
  let answered: string;
  try {
    const response = await clientOf(invocation).request(
      "POST",
      `${logPath(principal)}/runs/${run}/recheck${query}`,
      // Joined as text: a number of the policy keeps its digits.
      { body: `{"policy":${policy}${tools}}` },
    );
    answered = await response.text();
  } catch (error) {
    // A stored policy that is not there is 404, too, with the pointer to its name.
    if (error instanceof ProblemError && error.status === 404 && error.problem.pointer === undefined)
      return null;
    throw error;
  }
  const { head, verified } = JSON.parse(answered) as Added;
  const intact = verified === undefined ? undefined : verified.verdict === "intact";
  return { answered, report: { report: readReport(answered), principal, head, intact } };
}

export const recheckCommand: Command = {
  name: "recheck",
  usage: "--principal NAME --run RUN (--policy FILE | --stored NAME[@N] | --decisions FILE)",
  summary: "Re-check a run under another policy: exit 1 if any decision differs, or none could be re-checked",
  options: {
    ...PRINCIPAL_OPTION,
    run: { type: "string", short: "r", value: "RUN", help: "the run" },
    ...POLICY_OPTIONS,
    ...RECHECK_OPTIONS,
    "expect-different": {
      type: "string",
      value: "STEPS",
      help: "exactly these steps differ, by index: 2,5. In place of a gate",
    },
    "no-new-allow": {
      type: "boolean",
      help: "nothing is allowed that was not; without --gate other differences are let pass",
    },
    partial: {
      type: "boolean",
      help: "let pass what can't be re-checked, with --expect-different and --no-new-allow",
    },
    verified: { type: "boolean", help: "verify the range that the run is read from first" },
    ...FORMAT_OPTION,
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation): Promise<ExitCode> {
    const { values, out, note, positionals } = invocation;
    if (positionals.length > 0) throw new UsageError("recheck takes no arguments but its options");
    const check = checkOf(values);
    const format = formatOf(invocation);
    const asked = await ask(invocation, required(values, "principal"));
    const shown = shownReports(asked === null ? [] : [asked.report], check);
    const { passed, failures } = shown.result ?? { passed: false, failures: [] };
    const printed = format === "json" ? (asked?.answered ?? "") : formatReports(format, shown).trimEnd();
    if (printed !== "") out(printed);
    for (const { message } of failures) note(`FAILED: ${message}`);
    return passed ? EXIT.holds : EXIT.fails;
  },
};
