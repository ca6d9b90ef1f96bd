/**
 * Processes as /proc shows them: what a test needs to kill a server with everything that it started.
 *
 * @module
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** A process that ended and was not waited for yet has the state Z. */
  readonly state: string;
}

function processes(): ProcessInfo[] {
  return readdirSync("/proc").flatMap((name): ProcessInfo[] => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(name), parent: Number(parent), state }];
    } catch {
      return [];
    }
  });
}

/** The process and all below it. */
export function processTree(root: number): number[] {
  const all = processes();
  const tree = [root];
  for (const pid of tree) tree.push(...all.filter(({ parent }) => parent === pid).map((child) => child.pid));
  return tree;
}

/** Whether a process has this pid and runs. */
export function isRunning(pid: number): boolean {
  return processes().some((one) => one.pid === pid && one.state !== "Z");
}

/** Whether the process executes a file of this name. */
export function executes(pid: number, file: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`).split("/").at(-1) === file;
  } catch {
    return false;
  }
}

/** Kills them, and waits until they are gone. Those that are gone already are no error. */
export async function killAll(pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
  await waitFor(() => !pids.some(isRunning), "the killed processes to end");
}

/** Waits until the condition holds; throws after 60 seconds, naming what was waited for. */
export async function waitFor(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 20) {
    if (waited > 60_000) throw new Error(`waited in vain for ${what}`);
    await delay(20);
  }
}
