/**
 * Runs the built Worker in workerd, through Miniflare, with a socket that leads straight into the Worker.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from "miniflare";
import type { BuiltWorker } from "./built-worker.ts";
import { OWNER_VARIABLE } from "./processes.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { storageDir } from "./state-dir.ts";

/** A line that the Worker logged. */
export interface WorkerLog {
  readonly level: string;
  readonly message: string;
}

export interface RuntimeOptions {
  readonly stateDir: string;
  /** Written into workerd's environment; see processes.ts. */
  readonly owner: string;
  readonly onLog: (line: WorkerLog) => void;
}

/** Warnings of Miniflare itself go where the Worker's lines go. */
class RuntimeLog extends Log {
  readonly #onLog: (line: WorkerLog) => void;

  constructor(onLog: (line: WorkerLog) => void) {
    super(LogLevel.WARN);
    this.#onLog = onLog;
  }

  override logWithLevel(level: LogLevel, message: string): void {
    if (level > this.level) return;
    this.#onLog({ level: level === LogLevel.ERROR ? "error" : "warn", message });
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Makes a Miniflare without its signal handlers, which end the process before anything else can be put in order. */
export function createMiniflare(options: V4MiniflareOptions): Miniflare {
  const before = new Map(SIGNALS.map((signal) => [signal, process.listeners(signal)]));
  const miniflare = new Miniflare(convertV4MiniflareOptions(options));
  for (const [signal, listeners] of before) {
    for (const listener of process.listeners(signal)) {
      if (!listeners.includes(listener)) process.removeListener(signal, listener);
    }
  }
  return miniflare;
}

function sharedOptions({ stateDir, owner, onLog }: RuntimeOptions) {
  return {
    host: "127.0.0.1",
    cf: false,
    telemetry: { enabled: false },
    resourcePersistencePath: storageDir(stateDir),
    unsafeRuntimeEnv: { [OWNER_VARIABLE]: owner },
    log: new RuntimeLog(onLog),
    handleStructuredLogs: onLog,
  } satisfies Partial<V4MiniflareOptions>;
}

/** Starts workerd with the databases alone, so that they are brought up to date before anybody can ask the Worker. */
export function startDatabases(worker: BuiltWorker, options: RuntimeOptions): Miniflare {
  return createMiniflare({
    ...sharedOptions(options),
    name: worker.options.name,
    modules: true,
    script: "export default {};",
    compatibilityDate: worker.options.compatibilityDate ?? "2026-01-01",
    d1Databases: worker.options.d1Databases ?? {},
  });
}

/** Starts workerd with the Worker, listening on `host:port`; port 0 takes any free one. */
export function startWorker(
  worker: BuiltWorker,
  workerDir: string,
  secrets: Readonly<Record<string, string>>,
  listen: { host: string; port: number },
  options: RuntimeOptions,
  sandboxes: Sandboxes,
): Miniflare {
  const bundleDir = join(workerDir, "bundle");
  return createMiniflare({
    ...sharedOptions(options),
    ...worker.options,
    bindings: { ...worker.options.bindings, ...secrets },
    serviceBindings: {
      MODULE_RUNNER: async (request) => sandboxes.call(await request.text()),
    },
    modulesRoot: bundleDir,
    // Contents, not paths alone: a later build must not change what a restart of a crashed workerd runs.
    modules: worker.modules.map(({ type, path }) => {
      const bytes = readFileSync(join(bundleDir, path));
      const contents =
        type === "ESModule" || type === "Text" ? bytes.toString("utf8") : new Uint8Array(bytes);
      return { type, path: join(bundleDir, path), contents };
    }),
    unsafeDirectSockets: [listen],
  });
}
