import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../cli/command.ts";
import { anchorsCommand } from "../../cli/commands/anchors.ts";
import { main } from "../../cli/main.ts";
import { stubService } from "./stub-service.ts";

let answer: { status: number; body: unknown };
const stub = stubService(anchorsCommand, () => answer);
const { run } = stub;
const folder = mkdtempSync(join(tmpdir(), "runseal-anchors-"));
function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}
const checkpoint = file("agent.checkpoint", "origin\n3\nroot\n");
const receipt = file("receipt", "token\n");
const empty = file("empty", "\n");

describe("runseal anchors add", () => {
  it("sends the kept head as it is in the file, with where it is kept and the receipt", async () => {
    answer = { status: 200, body: { result: "advanced", log_id: "ab", size: 3, root: "cd" } };
    const values = { principal: "agent", where: "the auditor", receipt };
    const { code, out } = await run(["add", checkpoint], values);
    expect([code, out]).toEqual([0, "advanced: a head of 3 entries"]);
    const body = {
      principal: "agent",
      checkpoint: "origin\n3\nroot\n",
      where: "the auditor",
      receipt: "token",
    };
    expect(stub.asked).toEqual([`POST /v1/anchors ${JSON.stringify(body)}`]);
    await run(["add", checkpoint], { "tenant-log": true, where: "w" });
    expect(stub.asked[1]).toContain('{"log":"tenant"');
    expect((await run(["add", checkpoint], values, true)).out).toBe(JSON.stringify(answer.body));
  });

  it("exits 1 for a head that the log does not go on from", async () => {
    const type = "urn:runseal:problem:anchor-rejected";
    answer = { status: 409, body: { type, reason: "inconsistent", detail: "not of the history" } };
    const { code, out } = await run(["add", checkpoint], { principal: "agent", where: "w" });
    expect([code, out]).toEqual([1, "rejected (inconsistent): not of the history"]);
  });
});

describe("runseal anchors list", () => {
  const log = (principal: string | null, lag: number, anchored: boolean) => ({
    principal,
    generation: 1,
    log_id: "ab",
    size: 9,
    anchor: anchored ? { size: 9 - lag, where: "the \u001b[31mauditor" } : null,
    age_seconds: anchored ? 60 : null,
    lag_entries: lag,
  });

  it("prints each log with what came after its anchor, and exits 1 where that is too much", async () => {
    answer = {
      status: 200,
      body: { log: log(null, 0, true), logs: [log("a", 9, false), log("b", 2, true)], next_cursor: null },
    };
    const { code, out } = await run([]);
    expect([code, out.split("\n")]).toEqual([
      0,
      [
        "(the tenant's log of heads): 9 entries, 0 after the anchor of 9, 60 s ago: the \\x1b[31mauditor",
        "a: 9 entries, none anchored",
        "b: 9 entries, 2 after the anchor of 7, 60 s ago: the \\x1b[31mauditor",
      ],
    ]);
    expect((await run(["list"], { "max-lag": "9" })).code).toBe(0);
    const behind = await run(["list"], { "max-lag": "8" });
    expect([behind.code, behind.notes]).toEqual([
      1,
      "FAILED: 1 log(s) have more than 8 entries after their anchor",
    ]);
    expect((await run(["list"], { "max-lag": "0", principal: "b" })).code).toBe(1);
    expect((await run(["list"], { "max-lag": "0", "tenant-log": true })).code).toBe(0);
    expect((await run(["list"], { principal: "b" }, true)).out).toBe(JSON.stringify(log("b", 2, true)));
    const none = await run(["list"], { principal: "nobody" });
    expect([none.code, none.out, none.notes]).toEqual([1, "", expect.stringContaining("no such log")]);
  });
});

describe("runseal anchors", () => {
  it.each([
    [["remove"], {}],
    [["list", "x"], {}],
    [["add"], { principal: "a", where: "w" }],
    [["add", checkpoint], { where: "w" }],
    [["add", checkpoint], { principal: "a", "tenant-log": true, where: "w" }],
    [["add", checkpoint], { principal: "a" }],
    [["add", checkpoint], { principal: "a", where: "w", "max-lag": "1" }],
    [["add", checkpoint], { principal: "a", where: "w", receipt: empty }],
    [["add", join(folder, "absent")], { principal: "a", where: "w" }],
    [["list"], { receipt }],
    [["list"], { "max-lag": "-1" }],
    [["list"], { principal: "a", "tenant-log": true }],
  ] as [string[], Record<string, string | boolean>][])(
    "refuses %j with %j as usage, and asks nothing of the service",
    async (positionals, values) => {
      await expect(run(positionals, values)).rejects.toThrow(UsageError);
      expect(stub.asked).toEqual([]);
    },
  );

  it("is a command with a help", async () => {
    expect(await main(["help", "anchors"])).toBe(0);
  });
});
