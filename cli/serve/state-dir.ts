/**
 * The folder in which an embedded server keeps everything: `storage/` (Durable Objects, D1, R2), `master-key`,
 * `operator-token`, `lock`. It is for its owner alone.
 *
 * @module
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ServeError } from "./errors.ts";

/** Names by which a folder is known as a state folder. */
const KNOWN = ["master-key", "operator-token", "storage", "lock"];

/** Where workerd keeps its files. */
export function storageDir(stateDir: string): string {
  return join(stateDir, "storage");
}

/** Whether anything was stored in the folder before. */
export function hasStorage(stateDir: string): boolean {
  return existsSync(storageDir(stateDir));
}

/**
 * Makes the folder, or takes an existing one, with mode 0700.
 *
 * @returns `<device>:<inode>`: names the folder whatever its path, and tells a copy from the original
 * @throws ServeError `state-dir` where the path is no folder, or a folder with other things in it
 */
export function prepareStateDir(stateDir: string): string {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    const names = readdirSync(stateDir);
    if (names.length > 0 && !names.some((name) => KNOWN.includes(name))) {
      throw new ServeError(
        "state-dir",
        `${stateDir} holds other files and no Runseal state. Give an empty or a new folder with --state DIR.`,
      );
    }
    chmodSync(stateDir, 0o700);
    const { dev, ino } = statSync(stateDir);
    return `${dev}:${ino}`;
  } catch (error) {
    if (error instanceof ServeError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new ServeError("state-dir", `${stateDir} can't be used as the state folder: ${code}.`);
  }
}
