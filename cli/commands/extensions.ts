/**
 * `runseal extensions`: declare kinds of your own, and see which are declared (docs/kinds.md).
 *
 * @module
 */
import type { DeclaredVersion } from "../../sdk/extensions.ts";
import { Extensions } from "../../sdk/extensions.ts";
import type { Command, ExitCode, Invocation } from "../command.ts";
import { clientOf, EXIT, JSON_OPTION, required, SERVER_OPTIONS, UsageError } from "../command.ts";
import { fileText } from "../files.ts";

function line({ prefix, version, hash, created_at: at }: DeclaredVersion): string {
  return `${prefix}@${version}  ${hash}  ${at}`;
}

async function put(invocation: Invocation, file: string): Promise<ExitCode> {
  const { values, out, note, json } = invocation;
  const prefix = required(values, "prefix");
  const text = await fileText(file);
  const { isNew, ...version } = await new Extensions(clientOf(invocation)).declare(prefix, text);
  out(json ? JSON.stringify(version) : line(version));
  note(
    isNew ? "declared as a new version; it holds everywhere within 60 seconds" : "this is declared already",
  );
  return EXIT.holds;
}

async function list(invocation: Invocation): Promise<ExitCode> {
  const { values, out, json } = invocation;
  if (values.prefix !== undefined) throw new UsageError("--prefix goes with put");
  const declared = await new Extensions(clientOf(invocation)).list();
  if (json) out(JSON.stringify(declared));
  else {
    for (const each of declared) {
      out(line(each));
      for (const name of each.kinds) out(`  ext.${each.prefix}.${name}`);
    }
  }
  return EXIT.holds;
}

export const extensionsCommand: Command = {
  name: "extensions",
  usage: "[list | put FILE --prefix NAME]",
  summary: "Declare kinds of your own with their schemas, and list them",
  details:
    'FILE holds {"kinds": {"<name>": {"action": SCHEMA, "outcome"?: SCHEMA}}}, all that are to hold under the prefix:\n' +
    "entries of kind ext.<prefix>.<name> are checked against it from then on. The same content is stored once.",
  options: {
    prefix: { type: "string", value: "NAME", help: "put: the prefix that the kinds are under" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const [action = "list", file, ...more] = invocation.positionals;
    if (action === "list" && file === undefined) return list(invocation);
    if (action === "put" && file !== undefined && more.length === 0) return put(invocation, file);
    throw new UsageError("see runseal help extensions");
  },
};
