/**
 * Brings a D1 database up to date, forward only. What was applied is recorded in the table and the form that
 * `wrangler d1 migrations apply` uses for the deployed one.
 *
 * @module
 */
import { ServeError } from "./errors.ts";

export interface Migration {
  /** File name; its leading number gives the order. */
  readonly name: string;
  readonly statements: readonly string[];
}

/** The part of D1 that is needed here. */
export interface MigrationDatabase {
  prepare(sql: string): MigrationStatement;
  batch(statements: MigrationStatement[]): Promise<unknown>;
}

export interface MigrationStatement {
  bind(...values: unknown[]): MigrationStatement;
  all<Row>(): Promise<{ results: Row[] }>;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Applies those that are missing, each in one transaction with its record.
 *
 * @param table where the applied ones are recorded
 * @returns the names of those that were applied now
 * @throws ServeError `migrations` where the database was written by a newer or another version of the code, or where a
 *   migration fails; nothing of that one is left then
 */
export async function applyMigrations(
  database: MigrationDatabase,
  table: string,
  migrations: readonly Migration[],
): Promise<string[]> {
  await database.batch([
    database.prepare(
      `CREATE TABLE IF NOT EXISTS ${quoted(table)} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, ` +
        "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
    ),
  ]);
  const applied = (
    await database.prepare(`SELECT name FROM ${quoted(table)} ORDER BY id`).all<{ name: string }>()
  ).results.map((row) => row.name);
  const stranger = applied.find((name, index) => migrations[index]?.name !== name);
  if (stranger !== undefined) {
    throw new ServeError(
      "migrations",
      `The database was brought up to ${stranger}, which this version does not have in that place. ` +
        "Use the version of Runseal that wrote it, or a newer one.",
    );
  }
  const missing = migrations.slice(applied.length);
  for (const { name, statements } of missing) {
    const record = database.prepare(`INSERT INTO ${quoted(table)} (name) VALUES (?1)`).bind(name);
    try {
      await database.batch([...statements.map((sql) => database.prepare(sql)), record]);
    } catch (error) {
      throw new ServeError(
        "migrations",
        `Migration ${name} failed: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
  return missing.map(({ name }) => name);
}
