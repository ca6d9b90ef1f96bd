/**
 * Reads the vector files as they lie beside this one.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Text of a file of this folder. */
export function readVectorFile(name: string): string {
  return readFileSync(join(dirname(fileURLToPath(import.meta.url)), name), "utf8");
}

/** The vectors in `<name>.json`. */
export function readVectors<T>(name: string): T {
  return (JSON.parse(readVectorFile(`${name}.json`)) as { vectors: T }).vectors;
}
