/**
 * Bundles the command `runseal` into one file that runs on Node 20 and later with nothing installed.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkCovered, hashSources } from "./stamp.ts";

const ENTRY = "cli/runseal.ts";

const SOURCES = [
  "cli",
  "sdk",
  "shared",
  "native",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "scripts/build",
];

/**
 * Builds `<root>/dist/runseal.js` unless it is there and of the same sources.
 *
 * @returns whether it built
 * @throws Error (esbuild's BuildFailure) where the command does not bundle
 */
export async function buildCli(root: string): Promise<boolean> {
  const target = join(root, "dist", "runseal.js");
  const stampFile = join(root, "dist", "runseal.stamp");
  const stamp = hashSources(root, SOURCES);
  if (existsSync(target) && existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return false;

  const { build, stop } = await import("esbuild");
  const result = await build({
    absWorkingDir: root,
    entryPoints: [ENTRY],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    write: false,
    metafile: true,
    logLevel: "silent",
    // The shebang stands in the bundle, not in the sources; CommonJS packages in an ESM bundle need a `require`.
    banner: {
      js: '#!/usr/bin/env node\nimport { createRequire as $createRequire } from "node:module";\nconst require = $createRequire(import.meta.url);',
    },
  });
  // Its helper process would live as long as the server that is started next.
  await stop();
  checkCovered(Object.keys(result.metafile.inputs), SOURCES);
  const bytes = result.outputFiles[0]?.contents;
  if (bytes === undefined) throw new Error("esbuild wrote no bundle of the command");

  mkdirSync(join(root, "dist"), { recursive: true });
  rmSync(stampFile, { force: true });
  const draft = `${target}.draft-${randomUUID()}`;
  writeFileSync(draft, bytes, { mode: 0o755 });
  renameSync(draft, target);
  writeFileSync(stampFile, stamp);
  return true;
}
