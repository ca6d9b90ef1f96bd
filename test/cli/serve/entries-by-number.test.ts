import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unstable_splitSqlQuery } from "wrangler";
import { applyMigrations, type Migration, type MigrationDatabase } from "../../../cli/serve/migrations.ts";
import { startDatabases } from "../../../cli/serve/runtime.ts";
import { entryNumber } from "../../../workers/index-db/entry-number.ts";

const TABLE = "d1_migrations";
const MIGRATIONS: Migration[] = readdirSync("migrations")
  .sort()
  .map((name) => ({
    name,
    statements: unstable_splitSqlQuery(readFileSync(join("migrations", name), "utf8")),
  }));
const AT = MIGRATIONS.findIndex(({ name }) => name === "0008_entries_by_number.sql");

const COLUMNS = [
  "log",
  "seq",
  "pos",
  "tenant",
  "hash",
  "leaf",
  "recorded_at",
  "id",
  "kind",
  "session",
  "run",
  "step",
  "call",
  "tool",
  "status",
  "content",
  "salts",
];

/** Rows as SQL: every column, null wherever one may be, the same id in two logs, and the ends of the numbers. */
const ROWS = [
  "7, 1, 40, 't1', 'h1', 'bGVhZg==', 1700000000123000000, 'same', 'run.created', 's', 'r', 'p', 'c', 'it''s \"a\\b\"', 'ok', '{\"action\":{\"x\":\"\\u0000 é 😀\"}}', '{\"action\":{}}'",
  "7, 2, 41, 't1', 'h2', 'bGVhZg==', 9223372036854775807, 'b', 'tool.call.started', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
  `7, 3, 9, 't1', 'h3', '${"A".repeat(20_000)}', 1700000000123456789, 'c', 'k', NULL, 'r', NULL, 'c', NULL, 'ok', '${"v".repeat(30_000)}', NULL`,
  "7, 4294967295, 42, 't1', 'h4', 'bGVhZg==', 1700000000123000001, 'd', 'k', '', NULL, NULL, NULL, '', NULL, '', ''",
  "8, 1, 1, 't2', 'h5', 'bGVhZg==', 1700000000123000002, 'same', 'k', NULL, NULL, NULL, NULL, 't', NULL, NULL, '{}'",
  "8, 70000, 2, 't2', 'h6', 'bGVhZg==', 1700000000123000003, 'a', 'k', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
  "2000000, 5, 3, 't2', 'h7', 'bGVhZg==', 1, 'a', 'k', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
];

let folder: string;
let runtime: Miniflare;
let filled: MigrationDatabase;
let empty: MigrationDatabase;
let before: unknown[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "runseal-entries-"));
  const worker = {
    options: { name: "x", bindings: {}, d1Databases: { FILLED: { id: "filled" }, EMPTY: { id: "empty" } } },
    modules: [],
    databases: [],
  };
  runtime = startDatabases(worker, { stateDir: folder, owner: "none", onLog: () => {} });
  filled = await runtime.getD1Database("FILLED");
  empty = await runtime.getD1Database("EMPTY");
  expect(AT).toBeGreaterThan(0);
  await applyMigrations(filled, TABLE, MIGRATIONS.slice(0, AT));
  await filled.batch(ROWS.map((row) => filled.prepare(insert(row))));
  before = await everyRow();
  await applyMigrations(filled, TABLE, MIGRATIONS.slice(0, AT + 1));
  await applyMigrations(empty, TABLE, MIGRATIONS);
}, 60_000);

afterAll(async () => {
  await runtime.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const insert = (row: string): string => `INSERT INTO entries (${COLUMNS.join(", ")}) VALUES (${row})`;

async function query(sql: string, database = filled): Promise<Record<string, unknown>[]> {
  return (await database.prepare(sql).all<Record<string, unknown>>()).results;
}

/** As SQLite writes each value: with its type, and numbers to the last digit. */
async function everyRow(): Promise<unknown[]> {
  const values = COLUMNS.map((column) => `quote(${column}) AS ${column}`);
  return query(`SELECT ${values.join(", ")} FROM entries ORDER BY entries.log, entries.seq`);
}

describe("the migration that gives entries numbers", () => {
  it("keeps every column of every row", async () => {
    expect(before).toHaveLength(ROWS.length);
    expect(before[1]).toMatchObject({ recorded_at: "9223372036854775807", tool: "NULL" });
    expect(await everyRow()).toEqual(before);
    expect(await query("SELECT name FROM sqlite_master WHERE name LIKE 'entries_by_number%'")).toEqual([]);
  });

  it("numbers them so that they are found by log and sequence number, in their order", async () => {
    const rows = await query(
      "SELECT hash, CAST(log AS TEXT) AS log, CAST(seq AS TEXT) AS seq FROM entries ORDER BY entry",
    );
    expect(rows.map(({ hash }) => hash)).toEqual(ROWS.map((_, i) => `h${i + 1}`));
    for (const { hash, log, seq } of rows) {
      const found = `SELECT hash FROM entries WHERE entry = ${entryNumber(String(log), String(seq))}`;
      expect(await query(found)).toEqual([{ hash }]);
    }
    expect(await query("SELECT hash FROM entries WHERE log = 7 AND seq = 4294967295")).toEqual([
      { hash: "h4" },
    ]);
  });

  it("refuses a second row at a place, and a second row of an id in a log", async () => {
    const other = COLUMNS.slice(2).map((column) => (column === "id" ? "?2" : column));
    const add = (entry: string, id: string): Promise<unknown> =>
      filled
        .prepare(
          `INSERT INTO entries (entry, ${COLUMNS.slice(2).join(", ")})
           SELECT ${entry}, ${other.join(", ")} FROM entries WHERE hash = ?1`,
        )
        .bind("h2", id)
        .all();
    await expect(add("7 << 32 | 1", "new")).rejects.toThrow("UNIQUE constraint failed: entries.entry");
    await expect(add("7 << 32 | 9", "same")).rejects.toThrow(
      "UNIQUE constraint failed: entries.log, entries.id",
    );
    expect(await everyRow()).toEqual(before);
    await add("9 << 32 | 9", "same");
    await filled.prepare("DELETE FROM entries WHERE log = 9").all();
    expect(await everyRow()).toEqual(before);
  });

  it.each([
    ["one that holds entries", () => filled],
    ["an empty one", () => empty],
  ])("leaves %s with the two indexes and no other", async (_name, database) => {
    const indexes = await query(
      `SELECT name, "unique" AS u, (SELECT group_concat(c.name) FROM pragma_index_info(l.name) c) AS columns
       FROM pragma_index_list('entries') l ORDER BY name`,
      database(),
    );
    expect(indexes).toEqual([
      { name: "entries_by_arrival", u: 0, columns: "tenant,pos,kind" },
      { name: "entries_by_id", u: 1, columns: "log,id" },
    ]);
  });

  it("migrates an empty database, which then takes entries", async () => {
    expect(await query("SELECT * FROM entries", empty)).toEqual([]);
    const { length } = await query(`SELECT name FROM ${TABLE}`, empty);
    expect(length).toBe(MIGRATIONS.length);
    const columns = "entry, pos, tenant, hash, leaf, recorded_at, id, kind";
    const row = `${entryNumber("3", "4")}, 1, 't', 'h', 'l', 1700000000123456789, 'i', 'k'`;
    await empty.prepare(`INSERT INTO entries (${columns}) VALUES (${row})`).all();
    expect(await query("SELECT log, seq FROM entries", empty)).toEqual([{ log: 3, seq: 4 }]);
  });
});
