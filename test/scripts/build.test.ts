import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildCli } from "../../scripts/build/cli.ts";
import { publishFolder } from "../../scripts/build/publish.ts";
import { checkCovered, hashSources } from "../../scripts/build/stamp.ts";
import { buildWorker } from "../../scripts/build/worker.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "runseal-build-"));
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

describe("the hash of the sources", () => {
  it("changes with any byte, any name and any file, and with nothing else", () => {
    write("src/a.ts", "one");
    write("src/deep/b.ts", "two");
    write("file.toml", "three");
    const sources = ["src", "file.toml", "absent"];
    const seen = [hashSources(root, sources)];
    write("elsewhere.ts", "x");
    write("src/node_modules/x.ts", "x");
    expect(hashSources(root, sources)).toBe(seen[0]);
    write("src/a.ts", "onE");
    seen.push(hashSources(root, sources));
    write("src/c.ts", "");
    seen.push(hashSources(root, sources));
    rmSync(join(root, "src/deep/b.ts"));
    seen.push(hashSources(root, sources));
    write("src/deep/B.ts", "two");
    seen.push(hashSources(root, sources));
    write("file.toml", "");
    seen.push(hashSources(root, sources));
    expect(new Set(seen).size).toBe(6);
  });

  it("must cover every input of a bundle", () => {
    const sources = ["workers", "wrangler.toml"];
    checkCovered(
      ["workers/a.ts", "wrangler.toml", "node_modules/x/y.js", "node:crypto", ".wrangler/tmp/z.js"],
      sources,
    );
    expect(() => checkCovered(["workers/a.ts", "workers-too/b.ts"], sources)).toThrow("workers-too/b.ts");
  });
});

describe("publishing a folder", () => {
  it("replaces an older one whole", () => {
    write("new/a", "new");
    write("old/b", "old");
    publishFolder(join(root, "new"), join(root, "old"));
    expect(readdirSync(root)).toEqual(["old"]);
    expect(readdirSync(join(root, "old"))).toEqual(["a"]);
  });
});

describe("building the Worker", () => {
  const wrangler = `
    name = "small"
    main = "workers/index.ts"
    compatibility_date = "2026-10-01"
    [vars]
    PLAIN = "from wrangler.toml"
    [[durable_objects.bindings]]
    name = "LOG"
    class_name = "Log"
    [[migrations]]
    tag = "v1"
    new_sqlite_classes = ["Log"]
    [[d1_databases]]
    binding = "DB"
    database_name = "small"
    database_id = "an-id"
    migrations_dir = "migrations"
    [[r2_buckets]]
    binding = "FILES"
    bucket_name = "a-bucket"`;

  beforeEach(() => {
    write("wrangler.toml", wrangler);
    write(
      "workers/index.ts",
      `import { DurableObject } from "cloudflare:workers";
       import { createHash } from "node:crypto";
       import { text } from "../shared/text.ts";
       export class Log extends DurableObject {}
       export default { fetch: (): Response => new Response(createHash("sha256").update(text).digest("hex")) };`,
    );
    write("shared/text.ts", `export const text: string = "a text of the sources";`);
    write("migrations/10_later.sql", "CREATE TABLE b (x);");
    write(
      "migrations/9_earlier.sql",
      "CREATE TABLE a (x TEXT DEFAULT 'a;b'); -- a; comment\nCREATE TABLE c (x);",
    );
    write(".dev.vars", "PLAIN=from .dev.vars\nMASTER_KEY=a developer's own");
  });

  function built(): Record<string, Record<string, unknown> & unknown[]> {
    return JSON.parse(readFileSync(join(root, "dist/worker/worker.json"), "utf8"));
  }

  it("writes the bundle, and what wrangler.toml binds, and nothing that it does not name", async () => {
    expect(await buildWorker(root)).toBe(true);
    expect(readdirSync(join(root, "dist"))).toEqual(["worker"]);
    const bundle = readFileSync(join(root, "dist/worker/bundle/index.js"), "utf8");
    expect(bundle).toContain("a text of the sources");
    expect(bundle).toMatch(/from "node:crypto"/);
    const { options, modules, databases } = built();
    expect(modules?.[0]).toEqual({ type: "ESModule", path: "index.js" });
    expect(options).toMatchObject({
      name: "small",
      compatibilityDate: "2026-10-01",
      bindings: { PLAIN: "from wrangler.toml" },
      durableObjects: { LOG: { className: "Log", useSQLite: true } },
      d1Databases: { DB: { id: "an-id" } },
      r2Buckets: { FILES: { id: "a-bucket" } },
    });
    expect(Object.keys(options?.bindings as object)).toEqual(["PLAIN"]);
    expect(databases).toMatchObject([
      {
        binding: "DB",
        table: "d1_migrations",
        migrations: [
          {
            name: "9_earlier.sql",
            statements: [expect.stringContaining("'a;b'"), expect.stringContaining("TABLE c")],
          },
          { name: "10_later.sql", statements: [expect.stringContaining("TABLE b")] },
        ],
      },
    ]);
  }, 60_000);

  it("happens again only where a source changed", async () => {
    expect(await buildWorker(root)).toBe(true);
    expect(await buildWorker(root)).toBe(false);
    write("shared/text.ts", `export const text: string = "another text";`);
    expect(await buildWorker(root)).toBe(true);
    expect(readFileSync(join(root, "dist/worker/bundle/index.js"), "utf8")).toContain("another text");
  }, 60_000);

  it("that fails tells why, and leaves the older build", async () => {
    expect(await buildWorker(root)).toBe(true);
    write("shared/text.ts", "export const text: string = ;");
    await expect(buildWorker(root)).rejects.toThrow("shared/text.ts");
    expect(readdirSync(join(root, "dist"))).toEqual(["worker"]);
    expect(readFileSync(join(root, "dist/worker/bundle/index.js"), "utf8")).toContain(
      "a text of the sources",
    );
  }, 60_000);
});

describe("building the command", () => {
  it("makes one file that runs by itself", async () => {
    write("package.json", `{"type": "module"}`);
    write(
      "cli/runseal.ts",
      `import { word } from "../shared/word.ts";\nconsole.log(word, process.argv.slice(2).join());`,
    );
    write("shared/word.ts", `export const word: string = "hello";`);
    expect(await buildCli(root)).toBe(true);
    expect(await buildCli(root)).toBe(false);
    expect(execFileSync(join(root, "dist/runseal.js"), ["a", "b"], { encoding: "utf8" })).toBe("hello a,b\n");
    write("shared/word.ts", `export const word: string = "goodbye";`);
    expect(await buildCli(root)).toBe(true);
    expect(execFileSync(process.execPath, [join(root, "dist/runseal.js")], { encoding: "utf8" })).toBe(
      "goodbye \n",
    );
    expect(existsSync(join(root, "dist/worker"))).toBe(false);
  });
});
