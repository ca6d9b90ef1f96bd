/**
 * The files of a server's storage, as somebody with access to the disk sees them.
 *
 * @module
 */
import { cpSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestServer } from "../../support/server.ts";

/** Parts of the storage, by their folder. */
export const PARTS = {
  index: "d1/miniflare-D1DatabaseObject",
  mirror: "r2/miniflare-R2BucketObject",
  logs: "do/runseal-PrincipalLog",
  directories: "do/runseal-TenantDirectory",
} as const;

export type Part = keyof typeof PARTS;

function folderOf(server: TestServer, part: Part): string {
  return join(server.stateDir, "storage", PARTS[part]);
}

/**
 * Takes the write locks of a part's databases, as another process that writes at the same time does: what the server
 * writes there fails until they are given back.
 */
export function lockPart(server: TestServer, part: Part): () => void {
  const folder = folderOf(server, part);
  const databases = readdirSync(folder)
    .filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite")
    .flatMap((name) => {
      const database = new DatabaseSync(join(folder, name), { timeout: 2000 });
      try {
        database.exec("BEGIN IMMEDIATE");
        return [database];
      } catch {
        // One that the server writes without a pause is left out.
        database.close();
        return [];
      }
    });
  if (databases.length === 0) throw new Error(`nothing to lock under ${folder}`);
  return () => {
    for (const database of databases) {
      database.exec("ROLLBACK");
      database.close();
    }
  };
}

/** Copies a part of a server that has ended; the function puts the copy in its place again. */
export function copyPart(server: TestServer, part: Part, to: string): () => void {
  const folder = folderOf(server, part);
  cpSync(folder, to, { recursive: true });
  return () => {
    rmSync(folder, { recursive: true });
    cpSync(to, folder, { recursive: true });
  };
}

/** Deletes D1 of a server that has ended, with all that the server notes about it. */
export function removeIndex(server: TestServer): void {
  rmSync(dirname(folderOf(server, "index")), { recursive: true });
}
