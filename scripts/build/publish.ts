/**
 * Puts a finished folder in the place of an older one, so that nobody ever sees half of it, two builds at once included.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { renameSync, rmSync } from "node:fs";

const TAKEN = ["ENOTEMPTY", "EEXIST", "EPERM"];

/** Moves `from` to `to`; what was at `to` is removed. Both lie in the same folder. */
export function publishFolder(from: string, to: string): void {
  for (;;) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      if (!TAKEN.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
    const old = `${to}.old-${randomUUID()}`;
    try {
      renameSync(to, old);
    } catch {
      continue; // The other build has just moved it.
    }
    rmSync(old, { recursive: true, force: true });
  }
}
