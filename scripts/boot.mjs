/**
 * The one entry of the npm scripts. It runs on bare Node 20 with nothing installed: installs what is missing, picks a
 * Node that runs TypeScript, and hands over.
 *
 * Usage: node scripts/boot.mjs start|demo|test|bench|soak|build|page [arguments]
 *
 * @module
 */
import { spawn } from "node:child_process";
import * as module from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { installIfNeeded } from "./boot-install.mjs";
import { findNode } from "./boot-node.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The file behind each command, and the arguments that go before the caller's. */
const COMMANDS = {
  start: { file: "cli/serve/main.ts", before: ["start"] },
  demo: { file: "cli/serve/main.ts", before: ["demo"] },
  test: { file: "scripts/test.ts", before: [] },
  bench: { file: "bench/main.ts", before: [] },
  soak: { file: "scripts/soak.ts", before: [] },
  build: { file: "scripts/build.ts", before: [] },
  page: { file: "examples/verify-in-browser/build.ts", before: [] },
};

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Under npm: ends this process as SIGTERM does when npm is gone. Whoever kills npm with SIGKILL means the server too.
 * A server started without npm may outlive the shell that it was started from.
 */
function endWithNpm() {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, 250);
  timer.unref();
}

/** Runs the file in another Node, and ends as that one ends. */
function runWith(node, file, args) {
  const env = { ...process.env, PATH: `${dirname(node.path)}:${process.env.PATH ?? ""}` };
  // Over the IPC channel the child learns when this process is gone, however that came about.
  const child = spawn(node.path, [...node.flags, file, ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env,
  });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    process.stderr.write(`${node.path} could not be started: ${error.message}\n`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const one of SIGNALS) process.removeAllListeners(one);
    process.kill(process.pid, signal);
  });
}

const [name = "", ...args] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command === undefined) {
  process.stderr.write(`Usage: node scripts/boot.mjs ${Object.keys(COMMANDS).join("|")} [arguments]\n`);
  process.exit(2);
}

if (process.env.npm_lifecycle_event !== undefined) endWithNpm();

try {
  await installIfNeeded(root);
  const node = findNode(root);
  const file = join(root, command.file);
  if (node.path === process.execPath && node.flags.length === 0) {
    // Loading Miniflare and wrangler is most of a start: their compiled code is kept.
    module.enableCompileCache?.(join(root, "node_modules", ".cache", "compiled"));
    // This Node will do: no second process that signals and exit codes would have to pass through.
    process.argv = [process.execPath, file, ...command.before, ...args];
    await import(pathToFileURL(file).href);
  } else {
    runWith(node, file, [...command.before, ...args]);
  }
} catch (error) {
  if (error?.name !== "BootError") throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
}
