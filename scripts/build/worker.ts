/**
 * Bundles the Worker with wrangler's own dry run, so that the embedded server runs the very bytes that
 * `wrangler deploy` uploads, and writes beside them what wrangler.toml binds (`worker.json`), so that it need not load
 * wrangler, which takes longer than starting workerd.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import type { BuiltDatabase, BuiltModule, BuiltOptions, BuiltWorker } from "../../cli/serve/built-worker.ts";
import { publishFolder } from "./publish.ts";
import { checkCovered, hashSources } from "./stamp.ts";

/** Everything that the bundle, its bindings and its migrations come from. */
const SOURCES = [
  "workers",
  "durable-objects",
  "shared",
  "native",
  "sdk",
  "migrations",
  "dashboard",
  "wrangler.toml",
  "tsconfig.json",
  "package-lock.json",
  "scripts/build",
];

/** As wrangler's default rules have it. */
const MODULE_TYPES: Readonly<Record<string, BuiltModule["type"]>> = {
  ".js": "ESModule",
  ".mjs": "ESModule",
  ".wasm": "CompiledWasm",
  ".bin": "Data",
  ".txt": "Text",
  ".html": "Text",
  ".sql": "Text",
};

/** A `[[d1_databases]]` of wrangler.toml. */
interface ConfiguredDatabase {
  readonly binding: string;
  readonly migrations_dir?: string;
  readonly migrations_table?: string;
}

/** No network, and nothing said but errors: it would report a .dev.vars file, which is not used here. */
const OFFLINE = { WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true", WRANGLER_LOG: "error" };

/** Runs wrangler's bundler; throws with its output where it fails. */
function bundle(root: string, outDir: string, metafile: string): Promise<void> {
  const wrangler = join(
    dirname(createRequire(import.meta.url).resolve("wrangler/package.json")),
    "bin",
    "wrangler.js",
  );
  const args = [wrangler, "deploy", "--dry-run", "--outdir", outDir, "--metafile", metafile];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...args, "--config", join(root, "wrangler.toml")], {
      cwd: root,
      env: {
        ...process.env,
        ...OFFLINE,
        FORCE_COLOR: "0",
        WRANGLER_LOG_PATH: join(outDir, "..", "wrangler-logs"),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`wrangler could not bundle the Worker:\n${output.trim()}`)),
    );
  });
}

/** What wrangler.toml says, in the terms of Miniflare. */
async function readSettings(root: string): Promise<Omit<BuiltWorker, "modules">> {
  Object.assign(process.env, OFFLINE);
  const { unstable_getMiniflareWorkerOptions, unstable_readConfig, unstable_splitSqlQuery } = await import(
    "wrangler"
  );
  const config = unstable_readConfig({ config: join(root, "wrangler.toml") });
  const { workerOptions } = unstable_getMiniflareWorkerOptions(config);
  // This runtime holds no sandbox to a budget, and a policy that loops would stop ingest: cli/serve/sandboxes.ts.
  const { rootPath: _root, modulesRules: _rules, workerLoaders: _loaders, ...options } = workerOptions;
  const databases = (config.d1_databases as ConfiguredDatabase[]).map((database): BuiltDatabase => {
    const folder = join(root, database.migrations_dir ?? "migrations");
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".sql")) : [];
    return {
      binding: database.binding,
      table: database.migrations_table ?? "d1_migrations",
      migrations: names
        .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1))
        .map((name) => ({
          name,
          statements: unstable_splitSqlQuery(readFileSync(join(folder, name), "utf8")),
        })),
    };
  });
  // The vars of wrangler.toml alone: `workerOptions` also holds what a .dev.vars or .env file says.
  const bindings = config.vars as BuiltOptions["bindings"];
  return { options: { ...options, name: config.name ?? "runseal", bindings } as BuiltOptions, databases };
}

/**
 * Builds into `<root>/dist/worker` unless it is there and of the same sources.
 *
 * @returns whether it built
 * @throws Error with wrangler's output where the Worker does not bundle
 */
export async function buildWorker(root: string): Promise<boolean> {
  const target = join(root, "dist", "worker");
  const stamp = hashSources(root, SOURCES);
  const stampFile = join(target, "stamp");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return false;

  const draft = `${target}.draft-${randomUUID()}`;
  const metafile = join(draft, "meta.json");
  try {
    mkdirSync(draft, { recursive: true });
    const bundleDir = join(draft, "bundle");
    const [, settings] = await Promise.all([bundle(root, bundleDir, metafile), readSettings(root)]);
    const meta = JSON.parse(readFileSync(metafile, "utf8")) as { inputs: Record<string, unknown> };
    checkCovered(Object.keys(meta.inputs), SOURCES);
    const modules = readdirSync(bundleDir)
      .flatMap((path): BuiltModule[] => {
        const type = MODULE_TYPES[extname(path)];
        return type === undefined ? [] : [{ type, path }];
      })
      // Miniflare takes the first module for the entry.
      .sort((a, b) => Number(b.path === "index.js") - Number(a.path === "index.js"));
    const built: BuiltWorker = { ...settings, modules };
    writeFileSync(join(draft, "worker.json"), `${JSON.stringify(built, null, 2)}\n`);
    rmSync(join(draft, "wrangler-logs"), { recursive: true, force: true });
    writeFileSync(join(draft, "stamp"), stamp);
    publishFolder(draft, target);
    return true;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
