/**
 * `runseal head`: the head to keep elsewhere.
 *
 * @module
 */
import { writeFile } from "node:fs/promises";
import type { Command } from "../command.ts";
import { clientOf, EXIT, JSON_OPTION, PRINCIPAL_OPTION, required, SERVER_OPTIONS, text } from "../command.ts";

export const headCommand: Command = {
  name: "head",
  usage: "--principal NAME [--out FILE]",
  summary: "Print a log's signed head: its label SEQ:HASH, and the checkpoint to keep elsewhere",
  options: {
    ...PRINCIPAL_OPTION,
    out: { type: "string", short: "o", value: "FILE", help: "write the checkpoint there" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const { values, out, json } = invocation;
    const head = await clientOf(invocation).head(required(values, "principal"));
    const file = text(values, "out");
    if (file !== undefined) await writeFile(file, head.checkpoint);
    if (json) out(JSON.stringify(head));
    else {
      out(`head: ${head.seq}:${head.hash}`);
      if (file === undefined) out(head.checkpoint.trimEnd());
      else out(`checkpoint of ${head.size} entries written to ${file}`);
    }
    return EXIT.holds;
  },
};
