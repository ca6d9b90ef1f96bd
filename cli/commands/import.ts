/**
 * `runseal import`: recorded runs of other systems, as entries.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { JsonValue } from "../../shared/json/value.ts";
import { parseJsonValue } from "../../shared/json/value.ts";
import type { Policy } from "../../shared/recheck/policy.ts";
import { rulesPolicy } from "../../shared/recheck/rules.ts";
import type { Command, Invocation } from "../command.ts";
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
import { fileBytes, fileText } from "../files.ts";
import { importRuns } from "../import/index.ts";
import type { ImportedRun, ImportFormat, ImportOptions } from "../import/types.ts";
import { IMPORT_FORMATS } from "../import/types.ts";
import { sendTexts } from "./send.ts";

function isFormat(name: string): name is ImportFormat {
  return (IMPORT_FORMATS as readonly string[]).includes(name);
}

/** Reads a file for an option; what is wrong with it is a usage error that names it. */
async function readOption<T>(path: string, read: (content: string) => T): Promise<T> {
  try {
    return read(await fileText(path));
  } catch (error) {
    if (error instanceof RunsealError)
      throw new UsageError(`${path}: ${error.message} ${error.pointer ?? ""}`.trim());
    throw error;
  }
}

async function optionsOf({ values }: Invocation): Promise<ImportOptions> {
  const policyFile = text(values, "policy");
  const toolsFile = text(values, "tools");
  const policy: Policy | undefined =
    policyFile === undefined
      ? undefined
      : await readOption(policyFile, (content) => rulesPolicy(content, nativeCrypto));
  const tools: JsonValue[] | undefined =
    toolsFile === undefined
      ? undefined
      : await readOption(toolsFile, (content) => {
          const value = parseJsonValue(content);
          return Array.isArray(value) ? value : [value];
        });
  return {
    crypto: nativeCrypto,
    ...(policy === undefined ? {} : { policy }),
    ...(tools === undefined ? {} : { tools }),
  };
}

function describe(run: ImportedRun): string {
  const { calls, results, failures, unanswered } = run.counts;
  const parts = [`${run.entries.length} entries`, `${calls} calls`, `${results} results`];
  if (failures > 0) parts.push(`${failures} failed`);
  if (unanswered > 0) parts.push(`${unanswered} unanswered`);
  return `${run.run}: ${parts.join(", ")}`;
}

export const importCommand: Command = {
  name: "import",
  usage: "FORMAT FILE --principal NAME [--policy FILE] [--dry-run]",
  summary: "Turn recorded runs of another system into entries and send them",
  details: [
    `Formats: ${IMPORT_FORMATS.join(", ")}.`,
    "Ids are made from the content: importing a file twice stores it once. No time is invented.",
  ].join("\n"),
  options: {
    ...PRINCIPAL_OPTION,
    policy: {
      type: "string",
      value: "FILE",
      help: "a rules policy: record its decision before each tool call",
    },
    tools: {
      type: "string",
      value: "FILE",
      help: "tool specs (JSON array), stored and named by their hashes",
    },
    "dry-run": { type: "boolean", help: "print the entries (NDJSON), send nothing" },
    ...SERVER_OPTIONS,
    ...JSON_OPTION,
  },
  async run(invocation) {
    const { values, positionals, out, note, json } = invocation;
    const [format, path] = positionals;
    if (format === undefined || path === undefined || positionals.length > 2) {
      throw new UsageError("import takes a format and a file");
    }
    if (!isFormat(format)) throw new UsageError(`there is no format ${format}: ${IMPORT_FORMATS.join(", ")}`);
    const dryRun = values["dry-run"] === true;
    const principal = dryRun ? "" : required(values, "principal");
    const options = await optionsOf(invocation);
    const bytes = await fileBytes(path);
    const specs = new Set<string>();
    let refused = 0;
    let runs = 0;
    try {
      for await (const run of importRuns(format, bytes, options)) {
        runs += 1;
        for (const line of run.notes) note(`${run.run}: ${line}`);
        if (dryRun) {
          for (const line of run.entries) out(line);
          note(describe(run));
          continue;
        }
        for (const spec of run.specs) {
          if (specs.has(spec.hash)) continue;
          await clientOf(invocation).request("PUT", `/v1/tools/${spec.hash}`, { body: spec.text });
          specs.add(spec.hash);
        }
        const quiet = { ...invocation, note: () => {} };
        const sent = await sendTexts(quiet, principal, run.entries, (result) => {
          if (result.error !== undefined) {
            note(
              `${run.run}: entry ${result.index} refused: ${result.error.title} ${result.error.pointer ?? ""}`,
            );
          }
        });
        refused += sent.refused;
        const facts = {
          run: run.run,
          stored: sent.stored,
          seen: sent.seen,
          refused: sent.refused,
          head: sent.head?.seq,
        };
        out(
          json ? JSON.stringify(facts) : `${describe(run)}; ${sent.stored} stored, ${sent.seen} seen before`,
        );
      }
    } catch (error) {
      if (error instanceof RunsealError) throw new UsageError(`${path}: ${error.message}`);
      throw error;
    }
    if (runs === 0) throw new UsageError(`${path} holds no run in the format ${format}`);
    return refused > 0 ? EXIT.fails : EXIT.holds;
  },
};
