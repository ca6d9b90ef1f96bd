/**
 * `runseal recheck`: what another policy would have decided on a recorded run.
 *
 * @module
 */
import { logPath } from "../../sdk/client.ts";
import type { Command } from "../command.ts";
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

/** The members of a report that decide the exit code. */
interface Report {
  readonly same: boolean;
  readonly rechecked: number;
  readonly complete: boolean;
}

export const recheckCommand: Command = {
  name: "recheck",
  usage: "--principal NAME --run RUN --policy FILE",
  summary: "Re-check a run under another policy: exit 1 if any decision differs, or none could be re-checked",
  options: {
    ...PRINCIPAL_OPTION,
    run: { type: "string", short: "r", value: "RUN", help: "the run" },
    policy: { type: "string", value: "FILE", help: "a rules policy (JSON)" },
    tools: {
      type: "string",
      value: "FILE",
      help: "the tools as they are now (JSON array): check under current specs",
    },
    gate: {
      type: "string",
      value: "NAME",
      help: "proxy (the default): all same, at least one re-checked; strict: and none left out",
    },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const { values, out, json } = invocation;
    const gate = text(values, "gate") ?? "proxy";
    if (gate !== "proxy" && gate !== "strict") throw new UsageError("--gate is proxy or strict");
    const policy = await fileText(required(values, "policy"));
    const toolsFile = text(values, "tools");
    const tools = toolsFile === undefined ? "" : `,"specs":"current","tools":${await fileText(toolsFile)}`;
    // Joined as text: a number of the policy keeps its digits.
    const body = `{"policy":{"rules":${policy}}${tools}}`;
    const run = encodeURIComponent(required(values, "run"));
    const path = `${logPath(required(values, "principal"))}/runs/${run}/recheck`;
    const client = clientOf(invocation);
    const report = await (await client.request("POST", path, { body })).text();
    out(
      json
        ? report
        : (await (await client.request("POST", `${path}?format=text`, { body })).text()).trimEnd(),
    );
    const { same, rechecked, complete } = JSON.parse(report) as Report;
    if (rechecked === 0) invocation.note("nothing was re-checked: that proves nothing");
    return same && rechecked > 0 && (gate === "proxy" || complete) ? EXIT.holds : EXIT.fails;
  },
};
