import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { MigrationMemo } from "../../../cli/serve/migration-memo.ts";

const DATABASES = [{ binding: "DB", table: "d1_migrations", migrations: [{ name: "0001.sql" }] }];
let folder: string;
let database: string;

const isCurrent = (databases: unknown = DATABASES) => new MigrationMemo(folder, databases).isCurrent();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runseal-memo-"));
  const objects = join(folder, "storage", "d1", "objects");
  mkdirSync(objects, { recursive: true });
  database = join(objects, "one.sqlite");
  writeFileSync(database, "0123456789");
  writeFileSync(join(objects, "one.sqlite-wal"), "0123456789");
  expect(isCurrent()).toBe(false);
  new MigrationMemo(folder, DATABASES).write();
  expect(isCurrent()).toBe(true);
});

afterEach(() => rmSync(folder, { recursive: true }));

it("holds while the databases grow, and where their journals go", () => {
  writeFileSync(database, "0123456789abc");
  rmSync(`${database}-wal`);
  expect(isCurrent()).toBe(true);
});

it("does not hold for other migrations", () => {
  expect(isCurrent([...DATABASES, ...DATABASES])).toBe(false);
});

it.each<[string, () => void]>([
  ["is gone", () => rmSync(database)],
  ["is gone with its folder", () => rmSync(join(folder, "storage", "d1", "objects"), { recursive: true })],
  ["was cut", () => writeFileSync(database, "")],
  [
    "was put back",
    () => {
      cpSync(database, `${database}.backup`);
      renameSync(`${database}.backup`, database);
    },
  ],
  [
    "was noted in the form of before",
    () => writeFileSync(join(folder, "storage", "d1", "migrated"), "ab".repeat(32)),
  ],
])("does not hold for a database that %s", (_what, change) => {
  change();
  expect(isCurrent()).toBe(false);
  new MigrationMemo(folder, DATABASES).write();
});

it("does not hold where there was no database", () => {
  rmSync(database);
  new MigrationMemo(folder, DATABASES).write();
  expect(isCurrent()).toBe(false);
});
