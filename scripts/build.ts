/**
 * `npm run build`: the Worker to dist/worker/ and the command to dist/runseal.js, each only where its sources changed.
 *
 * @module
 */
import { buildAll } from "./build/all.ts";

try {
  const written = await buildAll();
  console.log(written.length === 0 ? "Up to date." : `Built ${written.join(" and ")}.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
