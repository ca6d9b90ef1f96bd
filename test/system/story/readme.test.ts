/**
 * The README as a new user follows it: its shell blocks run as they stand, against a server that `npm start` started.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { startCommand, temporaryFolder } from "../../support/server.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url).href);
const readme = readFileSync(join(root, "README.md"), "utf8");

interface Shell {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let env: Record<string, string>;
let folder: string;

/** Runs a script in a folder that looks like the clone, so that what it writes does not lie in the clone. */
async function shell(script: string): Promise<Shell> {
  try {
    const { stdout, stderr } = await run("bash", ["-c", script], {
      cwd: folder,
      env,
      maxBuffer: 64 * 1024 * 1024,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const failed = error as { code: number; stdout: string; stderr: string };
    return { code: failed.code, stdout: failed.stdout, stderr: failed.stderr };
  }
}

function blocks(): string[] {
  return [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
}

/** The commands of a block, continuation lines joined, comments left out. */
function commands(block: string): string[] {
  const out: string[] = [];
  let pending = "";
  for (const line of block.split("\n")) {
    if (pending === "" && (line.startsWith("#") || line.trim() === "")) continue;
    pending += `${line}\n`;
    const quotes = [...pending].filter((char) => char === "'").length;
    if (line.endsWith("\\") || quotes % 2 === 1) continue;
    out.push(pending);
    pending = "";
  }
  return out;
}

beforeAll(async () => {
  const stateDir = join(temporaryFolder(), "state");
  const server = startCommand("start", { args: ["--state", stateDir, "--port", "0"] });
  let ended = false;
  void server.ended.then(() => {
    ended = true;
  });
  while (!server.output().includes("Ctrl-C stops")) {
    if (ended) throw new Error(server.output());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(server.output()).toContain("Every step held.");
  const value = (name: string) => new RegExp(`export ${name}=(\\S+)`).exec(server.output())?.[1] ?? "";
  env = {
    PATH: process.env.PATH ?? "",
    HOME: process.env.HOME ?? "",
    RUNSEAL_URL: value("RUNSEAL_URL"),
    RUNSEAL_API_KEY: value("RUNSEAL_API_KEY"),
  };
  folder = join(temporaryFolder(), "clone");
  mkdirSync(folder);
  for (const name of ["examples", "dist", "package.json", "node_modules"])
    symlinkSync(join(root, name), join(folder, name));
  symlinkSync(stateDir, join(folder, ".runseal"));
});

describe("the README", () => {
  it("shows calls that work as pasted", async () => {
    const block = blocks().find((text) => text.includes("auth="));
    const [auth = "", ...calls] = commands(block ?? "");
    expect(calls.length).toBeGreaterThan(9);
    const outputs: string[] = [];
    for (const call of calls) {
      const result = await shell(`set -o pipefail\n${auth}\n${call}`);
      expect([call, result.code, result.stderr.includes("problem")]).toEqual([call, 0, false]);
      expect(result.stdout).not.toContain("urn:runseal:problem");
      outputs.push(result.stdout);
    }
    expect(outputs[0]).toContain('"status":"stored"');
    expect(outputs[1]).toContain('"max":1.0');
    expect(outputs.find((text) => text.includes('"verdict"'))).toContain('"verdict":"intact"');
    expect(outputs.find((text) => text.includes("DIFFERENT"))).toContain("require_approval -> deny");
    expect(outputs.filter((text) => text.startsWith("head: 47 entries, signed\nintact"))).toHaveLength(2);
    expect(existsSync(join(folder, "refund.bundle"))).toBe(true);
  });

  it("shows commands that work as pasted", async () => {
    const block = blocks().find((text) => text.includes("runseal send")) ?? "";
    const [send, head, verify, recheck, bundle] = commands(block);
    expect((await shell(send ?? "false")).stdout).toMatch(/^1 [0-9a-f]{64} /);
    expect((await shell(head ?? "false")).code).toBe(0);
    expect((await shell(verify ?? "false")).stdout).toContain("intact: 43 entries");
    const strict = await shell(recheck ?? "false");
    expect([strict.code, strict.stdout.includes("DIFFERENT")]).toEqual([1, true]);
    expect((await shell(bundle ?? "false")).code).toBe(0);
    const offline = await shell("npx runseal verify coder.bundle --checkpoint coder.checkpoint");
    expect([offline.code, offline.stdout.includes("intact: 43 entries")]).toEqual([0, true]);
  });

  it("has a demo that tells the story and ends, without an address that nobody answers any more", async () => {
    const demo = startCommand("demo");
    expect(await demo.ended).toBe(0);
    expect(demo.output()).toContain("Every step held.");
    expect(demo.output()).not.toContain("RUNSEAL_URL");
  });

  it("shows how a tenant is made", async () => {
    const block = blocks().find((text) => text.includes("Idempotency-Key")) ?? "";
    const result = await shell(block);
    expect(JSON.parse(result.stdout)).toMatchObject({
      tenant: { name: "acme" },
      api_key: expect.stringMatching(/^rsk_/),
    });
  });
});

describe("the command, offline and against the service", () => {
  it("says consistent, not pinned, and exits 1; with --allow-unpinned it exits 0", async () => {
    const unpinned = await shell("npx runseal verify refund.bundle");
    expect([unpinned.code, unpinned.stdout.includes("consistent, not pinned")]).toEqual([1, true]);
    expect((await shell("npx runseal verify refund.bundle --allow-unpinned")).code).toBe(0);
    const wrong = await shell(`npx runseal verify refund.bundle --registry ${"ab".repeat(32)}`);
    expect([wrong.code, wrong.stdout.includes("broken")]).toEqual([1, true]);
  });

  it("needs no network for a bundle", async () => {
    const cut = await shell(
      "unset RUNSEAL_URL RUNSEAL_API_KEY; unshare -rn npx runseal verify refund.bundle --checkpoint kept.txt 2>&1 || RUNSEAL_URL=http://127.0.0.1:1 npx runseal verify refund.bundle --checkpoint kept.txt",
    );
    expect(cut.code).toBe(0);
  });

  it("exits 2 for wrong usage, a missing file and a service that is away", async () => {
    for (const command of [
      "runseal verify",
      "runseal verify nowhere.bundle --allow-unpinned",
      "runseal send nowhere.ndjson --principal x",
      "runseal import nosuch file --principal x",
      "runseal head --principal nobody",
      "runseal head --principal coder --url http://127.0.0.1:1 --key k",
    ]) {
      const result = await shell(`npx ${command}`);
      expect([command, result.code]).toEqual([command, 2]);
      expect(result.stderr).toMatch(/^runseal: /);
    }
  });

  it("sends a file twice and stores it once; a refused entry is named and exits 1", async () => {
    await shell("npx runseal send examples/runs/refund-10417.ndjson --principal twice");
    const again = await shell("npx runseal send examples/runs/refund-10417.ndjson --principal twice --json");
    expect(
      again.stdout
        .trimEnd()
        .split("\n")
        .every((line) => line.includes('"status":"seen"')),
    ).toBe(true);
    const bad = await shell(
      `echo '{"kind":"no.such.kind","action":{}}' | npx runseal send - --principal twice`,
    );
    expect([bad.code, bad.stdout.includes("Unknown kind: /kind")]).toEqual([1, true]);
  });
});
