/**
 * `npm test`: type check, lint and format check, and every test. The last line is `N passed, N failed`, with
 * `, N skipped` where some were; the two checks count as one each. Arguments go to vitest: `npm test -- test/shared`.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectRoot } from "./build/all.ts";
import { addCounts, countReport, formatCounts, type TestCounts, type VitestReport } from "./test/counts.ts";

/** Runs a package's command with this Node. Resolves to its exit code; its output goes where ours goes. */
function run(script: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(projectRoot, "node_modules", script), ...args], {
      cwd: projectRoot,
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
}

/** A check that holds or not. */
async function check(name: string, script: string, args: readonly string[]): Promise<TestCounts> {
  const held = (await run(script, args)) === 0;
  console.log(`${held ? "ok" : "FAILED"}: ${name}`);
  return { passed: Number(held), failed: Number(!held), skipped: 0 };
}

async function runVitest(args: readonly string[]): Promise<TestCounts> {
  const folder = mkdtempSync(join(tmpdir(), "runseal-test-"));
  const reportFile = join(folder, "report.json");
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
    const exitCode = await run("vitest/vitest.mjs", ["run", ...reporters, ...args]);
    let report: VitestReport | undefined;
    try {
      report = JSON.parse(readFileSync(reportFile, "utf8")) as VitestReport;
    } catch {
      // Vitest ended before it could write one: that counts as a failure.
    }
    return countReport(report, exitCode);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.env.WRANGLER_SEND_METRICS ??= "false";
process.env.CLOUDFLARE_CF_FETCH_ENABLED ??= "false";

const types = await check("types (tsc --noEmit)", "typescript/bin/tsc", ["--noEmit"]);
const lint = await check("lint and format (biome ci .)", "@biomejs/biome/bin/biome", ["ci", "."]);
const tests = await runVitest(process.argv.slice(2));
const counts = [types, lint, tests].reduce(addCounts);
process.exitCode = counts.failed === 0 ? 0 : 1;
console.log(formatCounts(counts));
