/**
 * Installs the packages of package-lock.json, where they are not installed already.
 *
 * A finished install leaves a stamp in node_modules with the hash of the lock file. `npm ci` begins by removing
 * node_modules, so an interrupted one has no stamp and is made again.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join, sep } from "node:path";
import process from "node:process";
import { BootError } from "./boot-error.mjs";

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Whether a person has installed exactly this by hand: npm writes a lock file of its own into node_modules at the end
 * of an install.
 */
function installedByHand(modules, lockFile) {
  const wanted = readJson(lockFile)?.packages;
  const present = readJson(join(modules, ".package-lock.json"))?.packages;
  if (wanted === undefined || present === undefined) return false;
  const same = (path) =>
    wanted[path]?.version === present[path]?.version && wanted[path]?.integrity === present[path]?.integrity;
  return (
    Object.keys(present).every(same) &&
    Object.keys(wanted).every((path) => path === "" || wanted[path].optional || same(path)) &&
    Object.keys(present).every((path) => existsSync(join(modules, "..", path, "package.json")))
  );
}

/** Runs `npm ci`; the Node that runs it must not be the one in the folder that it removes. */
function npmCi(root) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const outside = folders.filter((folder) => !folder.includes(`node_modules${sep}.bin`)).join(delimiter);
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  return new Promise((resolve, reject) => {
    const npm = spawn(process.platform === "win32" ? "npm.cmd" : "npm", args, {
      cwd: root,
      env: { ...process.env, PATH: outside },
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    let output = "";
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    npm.on("error", (error) =>
      reject(new BootError(`npm could not be started (${error.message}). It comes with Node.`)),
    );
    npm.on("close", (code) => {
      if (code === 0) resolve();
      else reject(new BootError(`${output.trim()}\nnpm ci failed: the packages could not be installed.`));
    });
  });
}

/**
 * Installs unless what is there is of this package-lock.json. Says so in one line on standard error.
 *
 * @param {string} root the project's folder
 * @throws {BootError} with npm's output where it fails
 */
export async function installIfNeeded(root) {
  const lockFile = join(root, "package-lock.json");
  const modules = join(root, "node_modules");
  const stampFile = join(modules, ".runseal-install");
  const wanted = createHash("sha256").update(readFileSync(lockFile)).digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  if (!installedByHand(modules, lockFile)) {
    process.stderr.write("Installing packages (the first time takes about a minute) ...\n");
    await npmCi(root);
  }
  try {
    writeFileSync(stampFile, wanted);
  } catch {
    // A read-only installation that somebody else made: it is looked through again next time.
  }
}
