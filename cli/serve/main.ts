/**
 * `npm start` and `npm run demo`: builds what is out of date, starts the embedded server, and tells the demo's story.
 *
 * Exit codes: `start` 0 after a signal, `demo` 0 where every step held and 1 where one did not; 2 where the server
 * could not be started, with one sentence that says why.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { buildAll, projectRoot } from "../../scripts/build/all.ts";
import { ServeError } from "./errors.ts";
import { parseServeFlags, type ServeFlags, USAGE } from "./flags.ts";
import { DEFAULT_PORT } from "./port.ts";
import { type RunningServer, startServer } from "./server.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const INTERRUPTED = 130;

function say(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** Until the server is up, a signal ends the process at once; exit handlers put the lock and workerd away. */
function exitOnSignal(): void {
  process.exit(INTERRUPTED);
}

/** From now on: resolves at the first signal, or when the process that holds the IPC channel to this one is gone. */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of SIGNALS) {
      process.on(signal, () => resolve());
      process.removeListener(signal, exitOnSignal);
    }
    if (process.connected) process.once("disconnect", () => resolve());
  });
}

async function build(): Promise<void> {
  let written: string[];
  try {
    written = await buildAll();
  } catch (error) {
    throw new ServeError("not-built", error instanceof Error ? error.message : String(error));
  }
  if (written.length > 0) say(`Built ${written.join(" and ")}.`);
}

function start({ host, port }: ServeFlags, stateDir: string): Promise<RunningServer> {
  return startServer({
    stateDir,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
  });
}

function shortPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") || short === "" ? path : short;
}

function announce(server: RunningServer): void {
  if (server.orphans.length > 0) say(`Stopped a workerd that a server killed earlier had left behind.`);
  say(`Runseal is at ${server.url}`);
  say(`State: ${shortPath(server.stateDir)}`);
  say(
    server.operatorTokenFile === null
      ? "Operator token: the one that was given in RUNSEAL_OPERATOR_TOKEN"
      : `Operator token: in ${shortPath(server.operatorTokenFile)}`,
  );
}

/** Tells the story. A failure is told too: it must not look like an end of the story. */
async function tellStory(server: RunningServer, stays: boolean): Promise<boolean> {
  const { url, operatorToken, stateDir } = server;
  try {
    const { runDemo } = await import("../demo/story.ts");
    return await runDemo({ url, operatorToken, stateDir, log: say, stays });
  } catch (error) {
    process.stderr.write(
      `The demo failed: ${error instanceof Error ? (error.stack ?? error.message) : error}\n`,
    );
    return false;
  }
}

async function runStart(flags: ServeFlags): Promise<number> {
  const server = await start(flags, flags.state ?? join(projectRoot, ".runseal"));
  const stopped = stopRequested();
  if (flags.port === undefined && new URL(server.url).port !== String(DEFAULT_PORT)) {
    say(`Port ${DEFAULT_PORT} is in use by another program, so this server takes a free one.`);
  }
  announce(server);
  say();
  if (flags.demo) await Promise.race([tellStory(server, true), stopped]);
  say("Ctrl-C stops the server; what it holds is kept.");
  await stopped;
  await server.close();
  say("Stopped.");
  return 0;
}

async function runDemoAlone(flags: ServeFlags): Promise<number> {
  const temporary = flags.state === undefined ? mkdtempSync(join(tmpdir(), "runseal-demo-")) : undefined;
  process.once("exit", () => {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  });
  const server = await start({ ...flags, port: flags.port ?? 0 }, temporary ?? flags.state ?? "");
  const stopped = stopRequested();
  announce(server);
  say();
  const held = await Promise.race([tellStory(server, false), stopped.then(() => undefined)]);
  await server.close();
  if (held === undefined) return INTERRUPTED;
  return held ? 0 : 1;
}

async function main(args: readonly string[]): Promise<number> {
  for (const signal of SIGNALS) process.on(signal, exitOnSignal);
  const flags = parseServeFlags(args);
  if (flags.help) {
    say(USAGE);
    return 0;
  }
  await build();
  // What workerd writes is for its owner alone too; the build's output, before this, is not secret.
  process.umask(0o077);
  return flags.command === "start" ? runStart(flags) : runDemoAlone(flags);
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof ServeError)) throw error;
  process.stderr.write(`${error.message}\n${error.code === "usage" ? `\n${USAGE}\n` : ""}`);
  process.exit(2);
}
