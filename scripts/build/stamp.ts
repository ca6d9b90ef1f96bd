/**
 * Whether something built is still of the sources as they are: a hash over their names and bytes, kept beside it.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

function* filesUnder(path: string): Generator<string> {
  if (!existsSync(path)) return;
  if (statSync(path).isFile()) {
    yield path;
    return;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name === "node_modules" || entry.name.startsWith(".")) continue;
    yield* filesUnder(join(path, entry.name));
  }
}

/**
 * SHA-256 over every file of the sources, 64 hexadecimal digits.
 *
 * @param root folder that the names are relative to
 * @param sources files and folders below it; absent ones count as empty
 */
export function hashSources(root: string, sources: readonly string[]): string {
  const hash = createHash("sha256");
  const files = sources.flatMap((source) => [...filesUnder(join(root, source))]).sort();
  for (const file of files) {
    const bytes = readFileSync(file);
    hash.update(`${relative(root, file)}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

/**
 * Throws where a bundle has an input that the hash does not cover: a change of it would go unnoticed.
 *
 * @param inputs paths as esbuild's metafile names them, relative to the root
 */
export function checkCovered(inputs: readonly string[], sources: readonly string[]): void {
  for (const input of inputs) {
    const own = !input.includes(":") && !input.includes("node_modules/") && !input.startsWith(".wrangler/");
    if (own && !sources.some((source) => input === source || input.startsWith(`${source}/`))) {
      throw new Error(`the bundle reads ${input}, which is not among the sources that scripts/build/ hashes`);
    }
  }
}
