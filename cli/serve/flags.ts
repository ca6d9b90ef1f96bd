/**
 * The flags of `npm start` and `npm run demo`.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { ServeError } from "./errors.ts";

export interface ServeFlags {
  readonly command: "start" | "demo";
  /** Undefined: not asked for. */
  readonly port: number | undefined;
  readonly host: string | undefined;
  readonly state: string | undefined;
  /** Whether to run the demo. */
  readonly demo: boolean;
  readonly help: boolean;
}

export const USAGE = `Usage: npm start -- [options]      start the server, and show it at work on sample runs
       npm run demo -- [options]   the same show on a server of its own, then exit

  --port N       listen on this port (default 8787, or any free one where that is taken)
  --host HOST    listen on this address (default 127.0.0.1)
  --state DIR    keep everything in this folder (default .runseal; for the demo a folder that is removed again)
  --no-demo      start the server and nothing else
  --help         show this

RUNSEAL_OPERATOR_TOKEN sets the token that creates tenants. Without it one is made and kept in the state folder.
RUNSEAL_WITNESSES names the witnesses of the service's log, as JSON; docs/heads.md.`;

function parsePort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new ServeError("usage", "--port takes a number from 0 to 65535; 0 means any free port.");
}

/**
 * Reads the arguments after the script's name: a command and its flags.
 *
 * @throws ServeError `usage`
 */
export function parseServeFlags(args: readonly string[]): ServeFlags {
  const [command, ...rest] = args;
  if (command !== "start" && command !== "demo")
    throw new ServeError("usage", "The command is start or demo.");
  let values: { port?: string; host?: string; state?: string; "no-demo"?: boolean; help?: boolean };
  try {
    ({ values } = parseArgs({
      args: rest,
      options: {
        port: { type: "string" },
        host: { type: "string" },
        state: { type: "string" },
        "no-demo": { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }));
  } catch (error) {
    throw new ServeError("usage", error instanceof Error ? error.message : "The flags can't be read.");
  }
  if (values.state === "") throw new ServeError("usage", "--state takes a folder.");
  return {
    command,
    port: parsePort(values.port),
    host: values.host,
    state: values.state,
    demo: values["no-demo"] !== true,
    help: values.help === true,
  };
}
