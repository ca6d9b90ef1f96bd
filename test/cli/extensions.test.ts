import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { UsageError } from "../../cli/command.ts";
import { extensionsCommand } from "../../cli/commands/extensions.ts";
import { main } from "../../cli/main.ts";

let server: Server;
let url: string;
let seen: string[];
let answer: { status: number; body: unknown };
const TEXT =
  '{"kinds": {"n": {"action": {"type": "object", "properties": {"x": {"type": "number", "maximum": 1.0}}}}}}\n';
const file = join(mkdtempSync(join(tmpdir(), "runseal-extensions-")), "acme.json");
writeFileSync(file, TEXT);

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => {
      body += part;
    });
    request.on("end", () => {
      seen.push(`${request.method} ${request.url} ${body}`);
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

async function run(positionals: string[], values: Record<string, string> = {}, json = false) {
  const out: string[] = [];
  const notes: string[] = [];
  const code = await extensionsCommand.run({
    positionals,
    values: { url, key: "k", ...values },
    json,
    out: (line) => out.push(line),
    note: (line) => notes.push(line),
  });
  return { code, out, notes: notes.join("\n") };
}

const version = { prefix: "acme", version: 2, hash: "ab", created_at: "2026-01-01T00:00:00Z" };

it("put sends the file as it is, and says whether that is a new version", async () => {
  answer = { status: 201, body: version };
  const first = await run(["put", file], { prefix: "acme" });
  expect([first.code, first.out]).toEqual([0, ["acme@2  ab  2026-01-01T00:00:00Z"]]);
  expect(first.notes).toContain("a new version");
  expect(seen).toEqual([`PUT /v1/extensions/acme ${TEXT}`]);
  answer = { status: 200, body: version };
  const again = await run(["put", file], { prefix: "acme" }, true);
  expect([again.out, again.notes]).toEqual([[JSON.stringify(version)], "this is declared already"]);
});

it("list prints each prefix with its kinds", async () => {
  answer = { status: 200, body: { extensions: [{ ...version, kinds: ["n", "a.b"] }] } };
  const { code, out } = await run([]);
  expect([code, out]).toEqual([0, ["acme@2  ab  2026-01-01T00:00:00Z", "  ext.acme.n", "  ext.acme.a.b"]]);
  expect((await run(["list"], {}, true)).out).toEqual([
    JSON.stringify([{ ...version, kinds: ["n", "a.b"] }]),
  ]);
  expect(seen).toEqual(Array(2).fill("GET /v1/extensions "));
});

it.each([
  [["remove"], {}],
  [["list", "x"], {}],
  [["list"], { prefix: "acme" }],
  [["put"], { prefix: "acme" }],
  [["put", file], {}],
  [["put", file, "x"], { prefix: "acme" }],
  [["put", `${file}.absent`], { prefix: "acme" }],
] as [string[], Record<string, string>][])(
  "refuses %j with %j as usage, and asks nothing of the service",
  async (positionals, values) => {
    await expect(run(positionals, values)).rejects.toThrow(UsageError);
    expect(seen).toEqual([]);
  },
);

it("is a command with a help", async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  expect(await main(["extensions", "--help"])).toBe(0);
  expect(printed.mock.calls.join("\n")).toContain("--prefix NAME");
  printed.mockRestore();
});
