/**
 * What a command is: its help, its options, its run. Exit codes: 0 it holds, 1 it does not, 2 usage or environment.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { RunsealClient } from "../sdk/client.ts";

export const EXIT = { holds: 0, fails: 1, usage: 2 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Wrong usage or environment: printed as one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** For the help: the value's name. */
  readonly value?: string;
  readonly help: string;
}

export type Values = Readonly<Record<string, string | boolean | undefined>>;

export interface Invocation {
  readonly values: Values;
  readonly positionals: readonly string[];
  /** A line for the person or the pipe. */
  readonly out: (text: string) => void;
  /** Progress and notes: never mixed with the output. */
  readonly note: (text: string) => void;
  readonly json: boolean;
}

export interface Command {
  readonly name: string;
  /** Positional arguments, for the usage line. */
  readonly usage: string;
  readonly summary: string;
  readonly details?: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  readonly run: (invocation: Invocation) => Promise<ExitCode>;
}

/** Options of every command that speaks to a server. */
export const SERVER_OPTIONS = {
  url: {
    type: "string",
    value: "URL",
    help: "the service (or RUNSEAL_URL; http://127.0.0.1:8787 by default)",
  },
  key: {
    type: "string",
    value: "KEY",
    help: "the API key (better: RUNSEAL_API_KEY, which no process list shows)",
  },
} as const satisfies Record<string, OptionSpec>;

export const JSON_OPTION = { json: { type: "boolean", help: "print JSON" } } as const satisfies Record<
  string,
  OptionSpec
>;

export const PRINCIPAL_OPTION = {
  principal: { type: "string", short: "p", value: "NAME", help: "the principal whose log it is" },
} as const satisfies Record<string, OptionSpec>;

/** A client for the server that the options or the environment name. Throws `UsageError` without a key. */
export function clientOf({ values }: Invocation): RunsealClient {
  const url = text(values, "url") ?? process.env.RUNSEAL_URL ?? "http://127.0.0.1:8787";
  const apiKey = text(values, "key") ?? process.env.RUNSEAL_API_KEY;
  if (apiKey === undefined) throw new UsageError("no API key: set RUNSEAL_API_KEY, or give --key");
  return new RunsealClient({ url, apiKey });
}

/** A string option, or undefined. */
export function text(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** A string option that must be there. */
export function required(values: Values, name: string): string {
  const value = text(values, name);
  if (value === undefined || value === "") throw new UsageError(`--${name} is needed`);
  return value;
}

/** A whole number from 1 on, or undefined. */
export function positive(values: Values, name: string): number | undefined {
  const value = text(values, name);
  if (value === undefined) return undefined;
  if (!/^[1-9][0-9]{0,15}$/.test(value)) throw new UsageError(`--${name} takes a whole number from 1 on`);
  return Number(value);
}

/** Parses a command's arguments. Throws `UsageError`. */
export function parse(command: Command, args: readonly string[]): { values: Values; positionals: string[] } {
  try {
    const options = Object.fromEntries(
      Object.entries(command.options).map(([name, { type, short }]) => [
        name,
        short === undefined ? { type } : { type, short },
      ]),
    );
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { ...options, help: { type: "boolean", short: "h" } },
      allowPositionals: true,
    });
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : "the arguments can't be read");
  }
}

/** A command's help. */
export function helpOf(command: Command): string {
  const lines = [`runseal ${command.name} ${command.usage}`.trimEnd(), "", command.summary];
  if (command.details !== undefined) lines.push("", command.details);
  lines.push("", "Options:");
  const rows = Object.entries(command.options).map(([name, { short, value, help }]) => [
    `  ${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`,
    help,
  ]);
  const width = Math.max(...rows.map(([left = ""]) => left.length)) + 2;
  for (const [left = "", right = ""] of rows) lines.push(left.padEnd(width) + right);
  return lines.join("\n");
}
