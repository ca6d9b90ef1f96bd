/**
 * Copies of D1's rows, to set it back to an older state as a restored backup does: all of it, to one moment.
 *
 * @module
 */
import { env } from "cloudflare:workers";

/** What the service writes into the index; other tables hold what only D1 has. */
export const INDEX_TABLES = ["tenants", "registry_records", "logs", "arrivals", "entries", "runs"] as const;

/** Columns of `entries` that D1 makes from the entry's number. */
const DERIVED: ReadonlySet<string> = new Set(["log", "seq"]);

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
    const columns = Object.keys(first).filter((column) => table !== "entries" || !DERIVED.has(column));
    const marks = columns.map((column) => (column === "recorded_at" ? "CAST(? AS INTEGER)" : "?"));
    const insert = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${marks.join(", ")})`;
    await env.DB.batch(
      rows[table].map((row) => env.DB.prepare(insert).bind(...columns.map((column) => row[column]))),
    );
  }
}

type Row = Record<string, unknown>;

/** The rows without what D1 itself gave them: a log's short number, theirs, and the order in which they arrived. */
export function comparable(rows: IndexRows): Record<string, string[]> {
  const names = new Map(rows.logs.map(({ log, log_id }) => [log, log_id]));
  const texts = (table: Row[], change: (row: Row) => Row): string[] =>
    table.map((row) => JSON.stringify(change(row))).sort();
  const named = ({ log, entry: _entry, pos: _pos, ...row }: Row): Row => ({
    log: names.get(log as number),
    ...row,
  });
  return {
    tenants: texts(rows.tenants, (row) => row),
    registry: texts(rows.registry_records, (row) => row),
    logs: texts(rows.logs, ({ log: _log, ...row }) => row),
    arrivals: texts(rows.arrivals, (row) => row),
    entries: texts(rows.entries, named),
    runs: texts(rows.runs, named),
  };
}
