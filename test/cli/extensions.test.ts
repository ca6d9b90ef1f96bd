import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { UsageError } from "../../cli/command.ts";
import { extensionsCommand } from "../../cli/commands/extensions.ts";
import { main } from "../../cli/main.ts";
import { stubService } from "./stub-service.ts";

let answer: { status: number; body: unknown };
const stub = stubService(extensionsCommand, () => answer);
const { run } = stub;
const TEXT =
  '{"kinds": {"n": {"action": {"type": "object", "properties": {"x": {"type": "number", "maximum": 1.0}}}}}}\n';
const file = join(mkdtempSync(join(tmpdir(), "runseal-extensions-")), "acme.json");
writeFileSync(file, TEXT);

const version = { prefix: "acme", version: 2, hash: "ab", created_at: "2026-01-01T00:00:00Z" };

it("put sends the file as it is, and says whether that is a new version", async () => {
  answer = { status: 201, body: version };
  const first = await run(["put", file], { prefix: "acme" });
  expect([first.code, first.out]).toEqual([0, "acme@2  ab  2026-01-01T00:00:00Z"]);
  expect(first.notes).toContain("a new version");
  expect(stub.asked).toEqual([`PUT /v1/extensions/acme ${TEXT}`]);
  answer = { status: 200, body: version };
  const again = await run(["put", file], { prefix: "acme" }, true);
  expect([again.out, again.notes]).toEqual([JSON.stringify(version), "this is declared already"]);
});

it("list prints each prefix with its kinds", async () => {
  answer = { status: 200, body: { extensions: [{ ...version, kinds: ["n", "a.b"] }] } };
  const { code, out } = await run([]);
  expect([code, out]).toEqual([
    0,
    ["acme@2  ab  2026-01-01T00:00:00Z", "  ext.acme.n", "  ext.acme.a.b"].join("\n"),
  ]);
  expect((await run(["list"], {}, true)).out).toBe(JSON.stringify([{ ...version, kinds: ["n", "a.b"] }]));
  expect(stub.asked).toEqual(Array(2).fill("GET /v1/extensions "));
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
    expect(stub.asked).toEqual([]);
  },
);

it("is a command with a help", async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  expect(await main(["extensions", "--help"])).toBe(0);
  expect(printed.mock.calls.join("\n")).toContain("--prefix NAME");
  printed.mockRestore();
});
