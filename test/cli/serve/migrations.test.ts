import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Miniflare } from "miniflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { applyMigrations, type Migration, type MigrationDatabase } from "../../../cli/serve/migrations.ts";
import { startDatabases } from "../../../cli/serve/runtime.ts";

const TABLE = "d1_migrations";
const first: Migration = {
  name: "0001_a.sql",
  statements: ["CREATE TABLE a (x INTEGER)", "INSERT INTO a VALUES (1)"],
};
const second: Migration = { name: "0002_b.sql", statements: ["ALTER TABLE a ADD COLUMN y TEXT"] };

let folder: string;
let runtime: Miniflare;
let database: MigrationDatabase;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "runseal-migrations-"));
  const worker = {
    options: { name: "x", bindings: {}, d1Databases: { DB: { id: "x" } } },
    modules: [],
    databases: [],
  };
  runtime = startDatabases(worker, { stateDir: folder, owner: "none", onLog: () => {} });
  database = await runtime.getD1Database("DB");
}, 60_000);

afterAll(async () => {
  await runtime.dispose();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  await database.batch(["a", "b", TABLE].map((name) => database.prepare(`DROP TABLE IF EXISTS ${name}`)));
});

async function query(sql: string): Promise<unknown[]> {
  return (await database.prepare(sql).all()).results;
}

describe("the migrations of D1", () => {
  it("apply in order, once, and are recorded where wrangler records them", async () => {
    expect(await applyMigrations(database, TABLE, [first])).toEqual(["0001_a.sql"]);
    expect(await applyMigrations(database, TABLE, [first])).toEqual([]);
    expect(await applyMigrations(database, TABLE, [first, second])).toEqual(["0002_b.sql"]);
    expect(await query("SELECT x, y FROM a")).toEqual([{ x: 1, y: null }]);
    expect(await query(`SELECT id, name FROM ${TABLE} ORDER BY id`)).toEqual([
      { id: 1, name: "0001_a.sql" },
      { id: 2, name: "0002_b.sql" },
    ]);
    expect(await query(`SELECT count(*) AS n FROM ${TABLE} WHERE applied_at IS NULL`)).toEqual([{ n: 0 }]);
  });

  it("leave nothing of one that fails, and keep those before it", async () => {
    const broken: Migration = {
      name: "0002_b.sql",
      statements: ["CREATE TABLE b (x)", "INSERT INTO nowhere VALUES (1)"],
    };
    await expect(applyMigrations(database, TABLE, [first, broken])).rejects.toMatchObject({
      code: "migrations",
      message: expect.stringContaining("0002_b.sql"),
    });
    expect(await query("SELECT name FROM sqlite_master WHERE name = 'b'")).toEqual([]);
    expect(await query(`SELECT name FROM ${TABLE}`)).toEqual([{ name: "0001_a.sql" }]);
    expect(await applyMigrations(database, TABLE, [first, second])).toEqual(["0002_b.sql"]);
  });

  it.each([
    ["a newer version wrote", [first, second], [first]],
    ["another history wrote", [first, second], [{ ...first, name: "0001_other.sql" }, second]],
  ])("refuse a database that %s", async (_name, theirs, ours) => {
    await applyMigrations(database, TABLE, theirs);
    await expect(applyMigrations(database, TABLE, ours)).rejects.toMatchObject({ code: "migrations" });
    expect(await query(`SELECT count(*) AS n FROM ${TABLE}`)).toEqual([{ n: 2 }]);
  });
});
