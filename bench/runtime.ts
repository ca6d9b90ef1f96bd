/**
 * The service and the floor in one workerd, each behind a socket of its own.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { readBuiltWorker } from "../cli/serve/built-worker.ts";
import { buildAll } from "../scripts/build/all.ts";

const root = fileURLToPath(new URL("..", import.meta.url).href);

export interface BenchRuntime {
  readonly service: string;
  readonly floor: string;
  readonly operatorToken: string;
  readonly stateDir: string;
  close(): Promise<void>;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

async function floorScript(): Promise<string> {
  const result = await build({
    entryPoints: [join(root, "bench/floor/worker.ts")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2023",
    external: ["cloudflare:*", "node:*"],
    conditions: ["workerd", "worker"],
  });
  return result.outputFiles[0]?.text ?? "";
}

/** Starts both on fresh storage. */
export async function startBench(): Promise<BenchRuntime> {
  await buildAll();
  const workerDir = join(root, "dist/worker");
  const worker = readBuiltWorker(workerDir);
  const bundle = join(workerDir, "bundle");
  const stateDir = mkdtempSync(join(tmpdir(), "runseal-bench-"));
  const [servicePort, floorPort] = [await freePort(), await freePort()];
  const operatorToken = randomBytes(16).toString("hex");
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      cf: false,
      telemetry: { enabled: false },
      resourcePersistencePath: join(stateDir, "storage"),
      handleStructuredLogs: () => {},
      workers: [
        {
          ...worker.options,
          bindings: {
            ...worker.options.bindings,
            RUNSEAL_OPERATOR_TOKEN: operatorToken,
            MASTER_KEY: randomBytes(32).toString("hex"),
          },
          modulesRoot: bundle,
          modules: worker.modules.map(({ type, path }) => ({
            type,
            path: join(bundle, path),
            contents: readFileSync(join(bundle, path)),
          })),
          unsafeDirectSockets: [{ host: "127.0.0.1", port: servicePort }],
        },
        {
          name: "floor",
          modules: true,
          script: await floorScript(),
          compatibilityDate: worker.options.compatibilityDate ?? "2026-10-01",
          durableObjects: { FLOOR: { className: "FloorLog", useSQLite: true } },
          unsafeDirectSockets: [{ host: "127.0.0.1", port: floorPort }],
        },
      ],
    }),
  );
  await miniflare.ready;
  for (const { binding, migrations } of worker.databases) {
    const database = await miniflare.getD1Database(binding, worker.options.name);
    for (const migration of migrations) {
      for (const statement of migration.statements) await database.prepare(statement).run();
    }
  }
  return {
    service: `http://127.0.0.1:${servicePort}`,
    floor: `http://127.0.0.1:${floorPort}`,
    operatorToken,
    stateDir,
    close: async () => {
      await miniflare.dispose();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
