/**
 * One server per state folder. `lock/` in the folder holds one file whose name is a number that only grows; it names
 * the process that holds the folder by pid and start time, so that a process that died is recognised, also where its
 * pid is in use again.
 *
 * Why a growing number: a single lock file that is removed as stale and made again lets two starters, who both saw
 * the dead one, each remove what the other has just made. A number is made once.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ServeError } from "./errors.ts";
import { processIdentity } from "./processes.ts";

const RELEASED = "released\n";

interface Holder {
  readonly pid: number;
  /** As `processIdentity` tells it. */
  readonly identity: string;
  /** A fresh UUID per start. */
  readonly run: string;
  /** RFC 3339, for people. */
  readonly since: string;
}

export interface Lock {
  /** Names this start; workerd carries it. */
  readonly run: string;
  /** Gives the folder free. Synchronous, so that it works in an exit handler too. */
  release(): void;
}

/** The numbers in the folder, the highest first. */
function numbers(folder: string): number[] {
  return readdirSync(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => b - a);
}

/** Makes the file durably; false where it exists already. */
function create(path: string, text: string): boolean {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return true;
}

/** The holder that the file names; null where it is released or gone; "unclear" where it is not (yet) written whole. */
function readHolder(path: string): Holder | null | "unclear" {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return null;
  }
  if (text === RELEASED) return null;
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    return typeof holder?.pid === "number" && typeof holder.identity === "string"
      ? (holder as Holder)
      : "unclear";
  } catch {
    return "unclear";
  }
}

function refuseIfAlive(stateDir: string, holder: Holder | null | "unclear"): void {
  if (holder === null || holder === "unclear" || processIdentity(holder.pid) !== holder.identity) return;
  throw new ServeError(
    "locked",
    `${stateDir} is in use by process ${holder.pid} since ${holder.since}. ` +
      "Stop that server first, or give this one another folder with --state DIR.",
  );
}

/**
 * Takes the folder for this process.
 *
 * Of two processes that are at it together at most one succeeds: who made a number looks again whether there is a
 * higher one, and whether the one before it has come alive, after its own file is written; the other does the same.
 *
 * @throws ServeError `locked` where a living process holds it
 */
export async function acquireLock(stateDir: string): Promise<Lock> {
  const folder = join(stateDir, "lock");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const run = randomUUID();
  const mine: Holder = {
    pid: process.pid,
    identity: processIdentity(process.pid) ?? "",
    run,
    since: new Date().toISOString(),
  };
  for (;;) {
    const [last = 0] = numbers(folder);
    const lastFile = join(folder, String(last));
    let holder = last === 0 ? null : readHolder(lastFile);
    if (holder === "unclear") {
      // Either it is being written right now, or a power cut left it so.
      await delay(300);
      holder = readHolder(lastFile);
    }
    refuseIfAlive(stateDir, holder);

    const file = join(folder, String(last + 1));
    if (!create(file, `${JSON.stringify(mine)}\n`)) continue;
    try {
      refuseIfAlive(stateDir, last === 0 ? null : readHolder(lastFile));
    } catch (error) {
      rmSync(file, { force: true });
      throw error;
    }
    const [highest = 0, ...lower] = numbers(folder);
    if (highest !== last + 1) {
      rmSync(file, { force: true });
      continue;
    }
    for (const number of lower) rmSync(join(folder, String(number)), { force: true });
    let released = false;
    return {
      run,
      release() {
        // The file stays, so that its number is not made again.
        if (!released) writeFileSync(file, RELEASED);
        released = true;
      },
    };
  }
}
