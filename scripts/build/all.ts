/**
 * Everything that is built from the sources.
 *
 * @module
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { buildCli } from "./cli.ts";
import { buildWorker } from "./worker.ts";

/** The project's folder. */
export const projectRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Builds what is out of date. Returns the paths that were written. Throws Error with the bundler's output. */
export async function buildAll(root: string = projectRoot): Promise<string[]> {
  const [worker, cli] = await Promise.all([buildWorker(root), buildCli(root)]);
  return [...(worker ? ["dist/worker/"] : []), ...(cli ? ["dist/runseal.js"] : [])];
}
