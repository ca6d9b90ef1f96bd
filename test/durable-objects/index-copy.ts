/**
 * Copies of D1's rows, to set it back to an older state as a restored backup does: all of it, to one moment.
 *
 * @module
 */
import { env } from "cloudflare:workers";

/** What the service writes into the index; other tables hold what only D1 has. */
export const INDEX_TABLES = ["tenants", "registry_records", "logs", "arrivals", "entries", "runs"] as const;

export type IndexRows = Readonly<Record<(typeof INDEX_TABLES)[number], Record<string, unknown>[]>>;

/** Every row. Times keep their 64 bits as text. */
export async function readIndex(): Promise<IndexRows> {
  const rows: Record<string, Record<string, unknown>[]> = {};
  for (const table of INDEX_TABLES) {
    const columns = table === "entries" ? "*, CAST(recorded_at AS TEXT) AS recorded_at" : "*";
    const { results } = await env.DB.prepare(`SELECT ${columns} FROM ${table}`).all();
    rows[table] = results;
  }
  return rows as IndexRows;
}

export async function clearIndex(): Promise<void> {
  await env.DB.batch(INDEX_TABLES.map((table) => env.DB.prepare(`DELETE FROM ${table}`)));
}

/** Puts these rows, and no others, into D1. */
export async function restoreIndex(rows: IndexRows): Promise<void> {
  await clearIndex();
  for (const table of INDEX_TABLES) {
    const [first] = rows[table];
    if (first === undefined) continue;
    const columns = Object.keys(first);
    const marks = columns.map((column) => (column === "recorded_at" ? "CAST(? AS INTEGER)" : "?"));
    const insert = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks.join(", ")})`;
    await env.DB.batch(
      rows[table].map((row) => env.DB.prepare(insert).bind(...columns.map((column) => row[column]))),
    );
  }
}
