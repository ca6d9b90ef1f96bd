/**
 * Runs the real server, as `npm start -- --no-demo` does, in a process of its own, for tests that drive it over HTTP
 * and kill it. Whatever is left at the end of a test file is killed, and its folders are removed.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { TestClient } from "./client.ts";
import { executes, killAll, processTree } from "./process-tree.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const folders: string[] = [];
const children = new Set<ChildProcess>();

afterAll(async () => {
  for (const child of children) if (child.pid !== undefined) await killAll(processTree(child.pid));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A new empty folder, which is removed after the test file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "runseal-test-"));
  folders.push(folder);
  return folder;
}

/** A `node scripts/boot.mjs` command at work. */
export interface Command {
  readonly pid: number;
  /** What it wrote to standard output and standard error so far. */
  output(): string;
  /** Resolves to its exit code when it ends; a signal's name where one ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  signal(signal: NodeJS.Signals): void;
}

export interface CommandOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Through `npm run`, as a person types it; `pid` and `signal` are then npm's. */
  readonly npm?: boolean;
}

/** Starts `start`, `demo` or `build` with these arguments. RUNSEAL_OPERATOR_TOKEN of the tests' own is not passed on. */
export function startCommand(
  name: string,
  { args = [], env = {}, npm = false }: CommandOptions = {},
): Command {
  const { RUNSEAL_OPERATOR_TOKEN: _token, ...inherited } = process.env;
  const [program, ...before] = npm
    ? ["npm", "run", "--silent", name, "--"]
    : [process.execPath, join(root, "scripts", "boot.mjs"), name];
  const child = spawn(program as string, [...before, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...inherited, ...env },
  });
  children.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject);
    // Not "close": a process that outlives this one may hold the pipes open.
    child.once("exit", (code, signal) => {
      children.delete(child);
      // What it wrote last may still be in the pipe.
      setTimeout(() => resolve(code ?? signal ?? 1), 50);
    });
  });
  return { pid: child.pid ?? -1, output: () => output, ended, signal: (signal) => child.kill(signal) };
}

export interface TestServer extends Command {
  /** Without a slash at the end. */
  readonly url: string;
  readonly stateDir: string;
  readonly operatorToken: string;
  /** A client with this bearer token; without one where it is absent. */
  client(token?: string): TestClient;
  /** Pids of its workerd processes. */
  workerd(): number[];
  /** Kills the server with everything that it started, at once. */
  killTree(): Promise<void>;
  /** SIGTERM. Resolves to the exit code. */
  stop(): Promise<number | NodeJS.Signals>;
  /** Starts a server on the same state folder; this one must have ended. */
  restart(options?: CommandOptions): Promise<TestServer>;
}

/**
 * Starts a server on a free port and waits until it is ready.
 *
 * @param stateDir default: a new temporary folder
 * @throws Error with its output where it ends instead
 */
export async function startServerProcess(
  stateDir: string = join(temporaryFolder(), "state"),
  options: CommandOptions = {},
): Promise<TestServer> {
  const port = options.args?.includes("--port") ? [] : ["--port", "0"];
  const args = ["--no-demo", "--state", stateDir, ...port, ...(options.args ?? [])];
  const command = startCommand("start", { ...options, args });
  let ended = false;
  void command.ended.then(() => {
    ended = true;
  });
  let url: string | undefined;
  while (url === undefined) {
    if (ended) throw new Error(`the server did not start:\n${command.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    url = /^Runseal is at (\S+)\n(?:.*\n)*Operator token:.*\n/m.exec(command.output())?.[1];
  }
  const readyUrl = url;
  return {
    ...command,
    url: readyUrl,
    stateDir,
    operatorToken:
      options.env?.RUNSEAL_OPERATOR_TOKEN ?? readFileSync(join(stateDir, "operator-token"), "utf8").trim(),
    client: (token) => new TestClient(readyUrl, token),
    workerd: () => processTree(command.pid).filter((pid) => executes(pid, "workerd")),
    killTree: async () => {
      await killAll(processTree(command.pid));
      await command.ended;
    },
    stop: () => {
      command.signal("SIGTERM");
      return command.ended;
    },
    restart: (again = options) => startServerProcess(stateDir, again),
  };
}
