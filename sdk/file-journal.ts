/**
 * A queue's journal in a file, for runtimes with `node:fs`: written whole beside it, synced and renamed, so that it is
 * either the old text or the new one.
 *
 * @module
 */
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { QueueJournal } from "./queue-journal.ts";

export class FileJournal implements QueueJournal {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<string | null> {
    try {
      return await readFile(this.#path, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw error;
    }
  }

  async write(text: string): Promise<void> {
    const beside = `${this.#path}.new`;
    const file = await open(beside, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, this.#path);
    await syncFolder(dirname(this.#path));
  }

  async clear(): Promise<void> {
    await rm(this.#path, { force: true });
    await syncFolder(dirname(this.#path));
  }
}

/** Without this a rename may be lost with the power. Not every system can open a folder. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, "r");
    await folder.sync().finally(() => folder.close());
  } catch {
    // The file itself is whole in any case.
  }
}
