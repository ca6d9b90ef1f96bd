/**
 * `runseal evaluations`: a run's policy evaluations, for a policy of your own.
 *
 * @module
 */
import { logPath } from "../../sdk/client.ts";
import type { Command } from "../command.ts";
import { clientOf, EXIT, PRINCIPAL_OPTION, required, SERVER_OPTIONS } from "../command.ts";

export const evaluationsCommand: Command = {
  name: "evaluations",
  usage: "--principal NAME --run RUN",
  summary: "Print a run's policy evaluations as a policy saw them, one JSON object a line",
  details:
    "Run your own policy over the lines that have a request, write {seq, hash, decision} for each, and give the file to runseal recheck --decisions.",
  options: {
    ...PRINCIPAL_OPTION,
    run: { type: "string", short: "r", value: "RUN", help: "the run" },
    lean: { type: "boolean", help: "leave out the steps and approvals that each evaluation saw" },
    ...SERVER_OPTIONS,
  },
  async run(invocation) {
    const { values, out, note } = invocation;
    const run = encodeURIComponent(required(values, "run"));
    const views = values.lean === true ? "?views=false" : "";
    const path = `${logPath(required(values, "principal"))}/runs/${run}/evaluations${views}`;
    const answer = await clientOf(invocation).request("GET", path);
    const decoder = new TextDecoder();
    let rest = "";
    let count = 0;
    for await (const chunk of answer.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) out(line);
      count += lines.length;
    }
    const promised = Number(answer.headers.get("runseal-evaluations"));
    if (count !== promised || rest !== "") {
      note(`the answer broke off after ${count} of ${promised} evaluations`);
      return EXIT.fails;
    }
    return EXIT.holds;
  },
};
