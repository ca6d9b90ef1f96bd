/**
 * Importers of recorded runs: `importRuns(format, bytes, options)` gives one run after the other, so that a file of
 * thousands is never in memory as entries. docs/importing.md says what each format becomes and what is lost.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";
import { importAgentDojo } from "./agentdojo.ts";
import { importClaudeCode } from "./claude-code.ts";
import { ImportContext } from "./context.ts";
import { decodeText } from "./decode.ts";
import { checkPolicy } from "./evaluate.ts";
import { importInspect } from "./inspect.ts";
import { importLangBot } from "./langbot.ts";
import { importChat } from "./openai-chat.ts";
import { importSweAgent } from "./swe-agent.ts";
import type { ImportedRun, ImportFormat, ImportOptions } from "./types.ts";

export { readToolSpecs } from "./specs.ts";
export {
  IMPORT_FORMATS,
  type ImportCounts,
  type ImportedRun,
  type ImportedSpec,
  type ImportFormat,
  type ImportOptions,
} from "./types.ts";

/**
 * The runs of a file, in its order. A part that cannot be read is passed over: the next run's notes say so, or
 * `options.onNote` is told. A file without runs gives none.
 *
 * @throws `RunsealError("import-zip")` for an archive that is not readable, `RunsealError("import-policy")` for a policy
 * that cannot decide an import
 */
export async function* importRuns(
  format: ImportFormat,
  bytes: Uint8Array,
  options: ImportOptions = {},
): AsyncGenerator<ImportedRun, void, undefined> {
  if (options.policy !== undefined) checkPolicy(options.policy);
  const context = new ImportContext(options);
  yield* runsIn(format, bytes, context);
  for (const note of context.takeNotes()) options.onNote?.(note);
}

/** The runs, by format. */
function runsIn(
  format: ImportFormat,
  bytes: Uint8Array,
  context: ImportContext,
): Iterable<ImportedRun> | AsyncIterable<ImportedRun> {
  switch (format) {
    case "openai-chat":
      return importChat(decodeText(bytes), context);
    case "agentdojo":
      return importAgentDojo(decodeText(bytes), context);
    case "swe-agent":
      return importSweAgent(decodeText(bytes), context);
    case "claude-code":
      return importClaudeCode(decodeText(bytes), context);
    case "langbot":
      return importLangBot(decodeText(bytes), context);
    case "inspect":
      return importInspect(bytes, context);
    default:
      throw new RunsealError("import-format", "there is no importer of that name");
  }
}
