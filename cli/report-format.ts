/**
 * The option for the form in which a report is printed.
 *
 * @module
 */
import { RECHECK_FORMATS, type RecheckFormat } from "../shared/recheck/format-report.ts";
import type { Invocation, OptionSpec } from "./command.ts";
import { text, UsageError } from "./command.ts";

export const FORMAT_OPTION = {
  format: { type: "string", value: "FORM", help: `one of ${RECHECK_FORMATS.join(", ")}; text unless told` },
} as const satisfies Record<string, OptionSpec>;

/** The form that is asked for. Throws `UsageError` for another one, and for two. */
export function formatOf({ values, json }: Invocation): RecheckFormat {
  const name = text(values, "format");
  const format = RECHECK_FORMATS.find((one) => one === name);
  if (name !== undefined && format === undefined)
    throw new UsageError(`--format is one of ${RECHECK_FORMATS.join(", ")}`);
  if (json && format !== undefined && format !== "json")
    throw new UsageError("--json is --format json: give one of them");
  return format ?? (json ? "json" : "text");
}
