/**
 * `npm run soak`: the long forms of the crash, fault, concurrency, rewind and prune tests. About ten minutes. Arguments go to
 * vitest: `npm run soak -- test/system/crash`.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { projectRoot } from "./build/all.ts";

const PLACES = ["crash", "faults", "concurrency", "rewind", "prune"].map((name) => `test/system/${name}`);
const chosen = process.argv.slice(2);

const child = spawn(
  process.execPath,
  [
    join(projectRoot, "node_modules", "vitest", "vitest.mjs"),
    "run",
    "--project",
    "system",
    ...(chosen.length > 0 ? chosen : PLACES),
  ],
  { cwd: projectRoot, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, RUNSEAL_SOAK: "1" } },
);
child.once("exit", (code) => {
  process.exitCode = code ?? 1;
});
