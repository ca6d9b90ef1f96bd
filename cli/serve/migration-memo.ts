/**
 * Remembers which migrations were applied to which files, so that an ordinary start need not ask the databases.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { storageDir } from "./state-dir.ts";

/** What was applied, and to which files; in `storage/d1/migrated`. */
interface Memo {
  /** SHA-256 over the databases with their migrations, hex. */
  readonly applied: string;
  /** By path under `storage/d1`: inode and bytes at that time. */
  readonly files: Readonly<Record<string, readonly [inode: number, bytes: number]>>;
}

export class MigrationMemo {
  readonly #folder: string;
  readonly #file: string;
  readonly #applied: string;

  /** @param databases the databases of the built Worker, with their migrations */
  constructor(stateDir: string, databases: unknown) {
    this.#folder = join(storageDir(stateDir), "d1");
    this.#file = join(this.#folder, "migrated");
    this.#applied = createHash("sha256").update(JSON.stringify(databases)).digest("hex");
  }

  /**
   * Whether these very migrations were applied to these very files. A file that is gone, another one in its place (a
   * backup, a copy of the folder) and one that shrank, which a database never does by itself, are to be looked into.
   */
  isCurrent(): boolean {
    try {
      const memo = JSON.parse(readFileSync(this.#file, "utf8")) as Memo;
      const files = Object.entries(memo.files);
      return (
        memo.applied === this.#applied &&
        files.length > 0 &&
        files.every(([name, [inode, bytes]]) => {
          const { ino, size } = statSync(join(this.#folder, name));
          return ino === inode && size >= bytes;
        })
      );
    } catch {
      // Absent, in an older form, or about files that are: applying looks for itself what is missing.
      return false;
    }
  }

  write(): void {
    mkdirSync(this.#folder, { recursive: true });
    const files: Record<string, [number, number]> = {};
    for (const entry of readdirSync(this.#folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith(".sqlite")) continue;
      const path = join(entry.parentPath, entry.name);
      const { ino, size } = statSync(path);
      files[relative(this.#folder, path)] = [ino, size];
    }
    const memo: Memo = { applied: this.#applied, files };
    writeFileSync(this.#file, JSON.stringify(memo));
  }
}
