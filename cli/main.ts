/**
 * The command `runseal`.
 *
 * @module
 */
import { ProblemError } from "../sdk/client.ts";
import type { Command, ExitCode } from "./command.ts";
import { EXIT, helpOf, parse, UsageError } from "./command.ts";
import { anchorsCommand } from "./commands/anchors.ts";
import { auditCommand } from "./commands/audit.ts";
import { evaluationsCommand } from "./commands/evaluations.ts";
import { exportCommand } from "./commands/export.ts";
import { extensionsCommand } from "./commands/extensions.ts";
import { headCommand } from "./commands/head.ts";
import { importCommand } from "./commands/import.ts";
import { keysCommand } from "./commands/keys.ts";
import { policyCommand } from "./commands/policy.ts";
import { rebuildIndexCommand } from "./commands/rebuild-index.ts";
import { recheckCommand } from "./commands/recheck.ts";
import { rechecksCommand } from "./commands/rechecks.ts";
import { sendCommand } from "./commands/send.ts";
import { verifyCommand } from "./commands/verify.ts";

const COMMANDS: readonly Command[] = [
  sendCommand,
  importCommand,
  headCommand,
  anchorsCommand,
  verifyCommand,
  auditCommand,
  recheckCommand,
  rechecksCommand,
  evaluationsCommand,
  policyCommand,
  extensionsCommand,
  exportCommand,
  keysCommand,
  rebuildIndexCommand,
];

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length)) + 2;
  return [
    "runseal: a tamper-evident audit log for AI-agent runs",
    "",
    "  runseal COMMAND [options]      runseal help COMMAND",
    "",
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`),
    "",
    "Environment: RUNSEAL_URL, RUNSEAL_API_KEY.",
    "Exit codes: 0 it holds, 1 it does not hold, 2 usage or environment.",
  ].join("\n");
}

/** Runs a command line; answers the exit code. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    const command = COMMANDS.find((one) => one.name === rest[0]);
    console.log(command === undefined ? overview() : helpOf(command));
    return name === undefined ? EXIT.usage : EXIT.holds;
  }
  const command = COMMANDS.find((one) => one.name === name);
  try {
    if (command === undefined) throw new UsageError(`there is no command ${name}: see runseal help`);
    const { values, positionals } = parse(command, rest);
    if (values.help === true) {
      console.log(helpOf(command));
      return EXIT.holds;
    }
    return await command.run({
      values,
      positionals,
      json: values.json === true,
      out: (line) => console.log(line),
      note: (line) => console.error(line),
    });
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`runseal: ${error.message}`);
      return EXIT.usage;
    }
    if (error instanceof ProblemError) {
      console.error(`runseal: ${error.message}`);
      return error.type.endsWith(":gate-failed") ? EXIT.fails : EXIT.usage;
    }
    throw error;
  }
}
