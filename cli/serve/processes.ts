/**
 * Finding processes of this machine: whether a pid is still the process that it was, and which workerd belongs to which
 * state folder. workerd is recognised by a variable that the embedded server puts into its environment, so that a pid
 * that was reused, or another project's workerd, is never killed.
 *
 * The search for workerd reads /proc and therefore works on Linux alone; elsewhere it finds nothing.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** The variable in a workerd's environment: `<device>:<inode of the state folder>:<run id>`. */
export const OWNER_VARIABLE = "RUNSEAL_WORKERD_OWNER";

const hasProc = existsSync("/proc/self/stat");

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * A text that names one process for good: the same pid given to another process has another one. Undefined where no
 * process has the pid, or only a dead one that nobody has waited for.
 */
export function processIdentity(pid: number): string | undefined {
  if (hasProc) {
    const stat = readProc(`${pid}/stat`);
    // The second field is the command in parentheses and may hold spaces; state and start time come after it.
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields?.[0];
    if (state === undefined || state === "Z" || state === "X") return undefined;
    return `${readProc("sys/kernel/random/boot_id")?.trim() ?? ""}/${fields?.[19] ?? ""}`;
  }
  try {
    const started = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
    return started === "" ? undefined : started;
  } catch {
    return undefined;
  }
}

function isWorkerd(pid: string): boolean {
  try {
    return /\/workerd( \(deleted\))?$/.test(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    return false;
  }
}

/** Pids of the running workerd processes whose owner begins with `owner`. */
export function findWorkerd(owner: string): number[] {
  if (!hasProc) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isWorkerd(name))
    .filter((pid) =>
      (readProc(`${pid}/environ`) ?? "")
        .split("\0")
        .some((one) => one.startsWith(`${OWNER_VARIABLE}=${owner}`)),
    )
    .map(Number)
    .filter((pid) => processIdentity(pid) !== undefined);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It went away by itself in the meantime.
  }
}

/**
 * Kills the workerd processes whose owner begins with `owner`, and waits until they are gone. workerd commits with an
 * fsync before it answers, so that SIGKILL loses nothing that was acknowledged.
 *
 * @returns the pids that were killed
 */
export async function killWorkerd(owner: string): Promise<number[]> {
  const killed = new Set<number>();
  for (let left = findWorkerd(owner); left.length > 0; left = findWorkerd(owner)) {
    for (const pid of left) {
      killed.add(pid);
      kill(pid);
    }
    await delay(20);
  }
  return [...killed];
}
