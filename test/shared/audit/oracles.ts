/**
 * The script's own answers (`../shared/oracles/langbot`), and its command line.
 *
 * @module
 */
import { readdirSync } from "node:fs";
import type { LedgerArguments } from "../../../shared/audit/langbot-query.ts";
import type { LedgerReport } from "../../../shared/audit/langbot-report.ts";
import { hasShared, readShared, sharedPath } from "../../support/shared-files.ts";

export const ORACLES = "oracles/langbot";

export interface Oracle {
  readonly case: string;
  readonly args: readonly string[];
  readonly run?: Readonly<Record<string, unknown>>;
  readonly events?: readonly Readonly<Record<string, unknown>>[];
  readonly exit_code: number;
  readonly report: LedgerReport;
}

/** In the order of their names, which is the order in which the script's database got them. */
export const oracles: readonly Oracle[] = hasShared(ORACLES)
  ? readdirSync(sharedPath(ORACLES))
      .sort()
      .map((name) => JSON.parse(readShared(`${ORACLES}/${name}`)) as Oracle)
  : [];

/** The rows of a case, as `runseal import langbot` takes them. */
export const rowsOf = ({ run, events }: Oracle): string => JSON.stringify({ run, events });

/** The options of the script's command line. */
export function argumentsOf(args: readonly string[]): LedgerArguments {
  const options: Record<string, string> = {};
  for (let at = 0; at < args.length; at += 2)
    options[(args[at] ?? "").slice(2).replaceAll("-", "_")] = args[at + 1] ?? "";
  return options;
}
