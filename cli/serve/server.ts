/**
 * The embedded server: the Worker of dist/worker/ in a workerd of its own, with everything kept in one folder.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Miniflare } from "miniflare";
import { type BuiltWorker, readBuiltWorker } from "./built-worker.ts";
import { ServeError } from "./errors.ts";
import { acquireLock, type Lock } from "./lock.ts";
import { MigrationMemo } from "./migration-memo.ts";
import { applyMigrations } from "./migrations.ts";
import { choosePort, portInUse } from "./port.ts";
import { killWorkerd } from "./processes.ts";
import { type RuntimeOptions, startDatabases, startWorker, type WorkerLog } from "./runtime.ts";
import { Sandboxes } from "./sandboxes.ts";
import { loadSecrets } from "./secrets.ts";
import { hasStorage, prepareStateDir } from "./state-dir.ts";

export interface ServerOptions {
  /** Made where it is absent, with mode 0700. */
  readonly stateDir: string;
  /** The port to listen on; 0 for any free one. Absent: 8787, or any free one where that is taken. */
  readonly port?: number;
  /** Address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** Default: RUNSEAL_OPERATOR_TOKEN, or the one kept in the state folder. */
  readonly operatorToken?: string;
  /** What the build left. Default: dist/worker/ of this project. */
  readonly workerDir?: string;
  /** Receives the lines that the Worker logs, and the runtime's warnings. Default: standard error. */
  readonly onLog?: (line: WorkerLog) => void;
}

export interface RunningServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly operatorToken: string;
  /** The file that holds the token; null where it was given. */
  readonly operatorTokenFile: string | null;
  readonly stateDir: string;
  /** Names of the migrations that this start applied. */
  readonly migrated: readonly string[];
  /** Pids of the orphaned workerd processes that this start found on the folder, and killed. */
  readonly orphans: readonly number[];
  /** Stops workerd and gives the folder free. May be called again. */
  close(): Promise<void>;
}

const here = dirname(fileURLToPath(import.meta.url));
const DEFAULT_WORKER_DIR = join(here, "..", "..", "dist", "worker");

/** Starts the process that kills workerd should this one die. See guard.ts. */
function startGuard(owner: string): ChildProcess {
  const flags = process.execArgv.filter((flag) => flag === "--experimental-strip-types");
  const guard = spawn(process.execPath, [...flags, join(here, "guard.ts"), owner], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  // Without a guard the server works all the same; the next start then finds the orphan.
  guard.on("error", () => {});
  guard.stdin?.on("error", () => {});
  guard.unref();
  return guard;
}

async function disposeQuietly(miniflare: Miniflare | undefined): Promise<void> {
  await miniflare?.dispose().catch(() => {});
}

async function applyAll(worker: BuiltWorker, runtime: Miniflare): Promise<string[]> {
  const applied: string[] = [];
  for (const { binding, table, migrations } of worker.databases) {
    applied.push(...(await applyMigrations(await runtime.getD1Database(binding), table, migrations)));
  }
  return applied;
}

/** Brings the databases up to date in a workerd that serves nothing, so that nobody meets a half-made database. */
async function migrateBeforehand(worker: BuiltWorker, options: RuntimeOptions): Promise<string[]> {
  const runtime = startDatabases(worker, options);
  try {
    return await applyAll(worker, runtime);
  } finally {
    await disposeQuietly(runtime);
  }
}

/** Waits until the Worker listens. Throws ServeError `port-in-use` or `runtime`. */
async function waitUntilReady(runtime: Miniflare, host: string, port: number): Promise<string> {
  try {
    await runtime.ready;
    const direct = await runtime.unsafeGetDirectURL();
    return direct.href.replace(/\/$/, "");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_ADDRESS_IN_USE")
      throw portInUse(host, port);
    throw new ServeError(
      "runtime",
      `workerd did not start: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function writeToStderr({ level, message }: WorkerLog): void {
  process.stderr.write(`${level}: ${message}\n`);
}

/**
 * Starts a server in this process. It is ready, with its migrations applied, when the promise resolves.
 *
 * @throws ServeError: see errors.ts; nothing is left running or locked then
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { host = "127.0.0.1", workerDir = DEFAULT_WORKER_DIR, onLog = writeToStderr } = options;
  const stateDir = resolve(options.stateDir);
  const worker = readBuiltWorker(workerDir);
  const folder = prepareStateDir(stateDir);
  const lock: Lock = await acquireLock(stateDir);
  process.once("exit", lock.release);

  let guard: ChildProcess | undefined;
  let runtime: Miniflare | undefined;
  let sandboxes: Sandboxes | undefined;
  async function close(): Promise<void> {
    await disposeQuietly(runtime);
    await sandboxes?.close();
    guard?.kill("SIGKILL");
    lock.release();
    process.removeListener("exit", lock.release);
  }

  try {
    const orphans = await killWorkerd(`${folder}:`);
    const port = await choosePort(host, options.port);
    const isNew = !hasStorage(stateDir);
    const secrets = loadSecrets(stateDir, options.operatorToken ?? process.env.RUNSEAL_OPERATOR_TOKEN);
    const owner = `${folder}:${lock.run}`;
    guard = startGuard(owner);
    const runtimeOptions = { stateDir, owner, onLog };
    const memo = new MigrationMemo(stateDir, worker.databases);
    const isCurrent = memo.isCurrent();
    const migrated = isCurrent || isNew ? [] : await migrateBeforehand(worker, runtimeOptions);
    const { RUNSEAL_WITNESSES: witnesses } = process.env;
    const bound = {
      RUNSEAL_OPERATOR_TOKEN: secrets.operatorToken,
      MASTER_KEY: secrets.masterKey,
      ...(witnesses === undefined ? {} : { WITNESSES: witnesses }),
    };
    sandboxes = new Sandboxes(owner, worker.options.compatibilityDate ?? "2026-10-01");
    runtime = startWorker(worker, workerDir, bound, { host, port }, runtimeOptions, sandboxes);
    const url = await waitUntilReady(runtime, host, port);
    // A new folder holds nothing that could be asked for yet, so its database is made in the workerd that serves.
    if (isNew) migrated.push(...(await applyAll(worker, runtime)));
    if (!isCurrent) memo.write();
    const { operatorToken, operatorTokenFile } = secrets;
    return { url, operatorToken, operatorTokenFile, stateDir, migrated, orphans, close };
  } catch (error) {
    await close();
    throw error;
  }
}
