/**
 * Copies of one log's storage, to set it back to an older state as a restored backup does: every table of it.
 *
 * @module
 */
import type { TestLog } from "./support.ts";

type Rows = Record<string, SqlStorageValue>[];

function tablesOf(state: DurableObjectState): string[] {
  return state.storage.sql
    .exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'",
    )
    .toArray()
    .map(({ name }) => name);
}

/** Takes a copy; the function puts it back, and takes the object's memory away. */
export async function copyLog(log: TestLog): Promise<() => Promise<void>> {
  const copy = await log.inside((state) =>
    tablesOf(state).map(
      (table) => [table, state.storage.sql.exec(`SELECT * FROM ${table}`).toArray() as Rows] as const,
    ),
  );
  return async () => {
    await log.inside((state) => {
      for (const table of tablesOf(state)) state.storage.sql.exec(`DELETE FROM ${table}`);
      for (const [table, rows] of copy) {
        for (const row of rows) {
          const columns = Object.keys(row);
          state.storage.sql.exec(
            `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
            ...Object.values(row),
          );
        }
      }
    });
    await log.evict();
  };
}

/** Takes everything from the log, as if its object had never been. */
export async function emptyLog(log: TestLog): Promise<void> {
  await log.inside((state) => {
    for (const table of tablesOf(state)) state.storage.sql.exec(`DELETE FROM ${table}`);
  });
  await log.evict();
}
