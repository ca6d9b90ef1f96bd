/**
 * The script's own answers (`../shared/oracles/langbot`), and its command line.
 *
 * @module
 */
import { readdirSync } from "node:fs";
import { type ImportedRun, importRuns } from "../../../cli/import/index.ts";
import { nativeCrypto } from "../../../native/crypto.ts";
import type { LedgerArguments } from "../../../shared/audit/langbot-query.ts";
import type { LedgerReport } from "../../../shared/audit/langbot-report.ts";
import type { EntryView } from "../../../shared/entry/view.ts";
import { hasShared, readShared, sharedPath } from "../../support/shared-files.ts";
import { viewOf } from "./support.ts";

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

/** The case's run as the entries of `runseal import langbot`, after the ingest. */
export async function importedViews(oracle: Oracle): Promise<EntryView[]> {
  return importRows(rowsOf(oracle));
}

/** The entries that an import of one run's rows leaves in a log. */
export async function importRows(rows: string): Promise<EntryView[]> {
  const runs: ImportedRun[] = [];
  const bytes = new TextEncoder().encode(rows);
  for await (const run of importRuns("langbot", bytes, { crypto: nativeCrypto })) runs.push(run);
  return runs.flatMap(({ entries }) => entries).map((text, place) => viewOf(text, place + 1));
}
