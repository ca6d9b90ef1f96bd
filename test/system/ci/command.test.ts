/**
 * `runseal recheck` as a CI job runs it, against a real server.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parseXml } from "../../shared/recheck/xml.ts";
import type { CommandResult } from "../../support/command.ts";
import { runseal } from "../../support/command.ts";
import { temporaryFolder } from "../../support/server.ts";
import { policyFile, type Recorded, recordedRuns } from "./recorded.ts";

const RUN = "refund-10417";
let recorded: Recorded;
/** Steps that the strict policy decides otherwise. */
let steps: number[];
let lax: string;

function recheck(
  args: readonly string[],
  run = RUN,
  env: Record<string, string> = {},
): Promise<CommandResult> {
  return runseal(["recheck", "--principal", "bot", "--run", run, ...args], {
    RUNSEAL_URL: recorded.url,
    RUNSEAL_API_KEY: recorded.recheckKey,
    ...env,
  });
}
const strict = (...args: string[]): Promise<CommandResult> =>
  recheck(["--policy", policyFile("strict"), ...args]);
const same = (...args: string[]): Promise<CommandResult> =>
  recheck(["--policy", policyFile("default"), ...args]);

interface Report {
  evaluations: { step_index: number; result: string }[];
}

beforeAll(async () => {
  recorded = await recordedRuns();
  const report = JSON.parse((await strict("--json")).stdout) as Report;
  const different = report.evaluations.filter(({ result }) => result === "different");
  steps = [...new Set(different.map(({ step_index }) => step_index))];
  lax = join(temporaryFolder(), "lax.json");
  const all = { read_only: "allow", local_mutation: "allow", remote_mutation: "allow", destructive: "allow" };
  writeFileSync(lax, JSON.stringify({ policy_id: "lax/v1", side_effects: all }));
});

describe("runseal rechecks", () => {
  const rechecks = (...args: string[]): Promise<CommandResult> =>
    runseal(["rechecks", ...args], { RUNSEAL_URL: recorded.url, RUNSEAL_API_KEY: recorded.recheckKey });
  const start = (policy: "default" | "strict", ...args: string[]): Promise<CommandResult> =>
    rechecks("--policy", policyFile(policy), "--principal", "bot", ...args);

  it("prints a job's report in each form, red where the gate is", async () => {
    const junit = await start("strict", "--format", "junit");
    const document = parseXml(junit.stdout);
    expect([junit.code, document.attributes.name]).toEqual([1, "runseal rechecks"]);
    expect(Number(document.attributes.failures)).toBeGreaterThan(1);
    const markdown = await start("strict", "--format", "markdown");
    expect([markdown.code, markdown.stdout.startsWith("### Recheck **failed**: ")]).toEqual([1, true]);
    const text = await start("strict");
    expect(text.stdout).toMatch(/^recheck [0-9a-f]{32} complete: 2 of 2 runs/);
    expect(text.stderr).toContain("FAILED: ");
    const good = await start("default", "--format", "junit");
    expect([good.code, parseXml(good.stdout).attributes.failures]).toEqual([0, "0"]);
  });

  it("prints the stored report of a job, and of a single run, in each form", async () => {
    const { stdout: id } = await start("strict", "--no-wait");
    const wait = (of: string, ...args: string[]) => rechecks("wait", of.trim(), ...args);
    const json = await wait(id, "--format", "json");
    expect(json.stdout).toBe((await wait(id, "--json")).stdout);
    expect(JSON.parse(json.stdout)).toMatchObject({ report: "runseal.recheck.v1" });
    expect(parseXml((await wait(id, "--format", "junit")).stdout).attributes.name).toBe("runseal rechecks");

    const response = await recorded.client.request(
      "POST",
      `/v1/principals/bot/runs/${RUN}/recheck?store=true`,
      { body: `{"policy":{"rules":${readFileSync(policyFile("strict"), "utf8")}}}` },
    );
    const { stored } = (await response.json()) as { stored: { id: string } };
    const run = await wait(stored.id, "--format", "junit");
    expect([run.code, parseXml(run.stdout).children[0]?.attributes.name]).toEqual([1, `bot/${RUN}`]);
    expect((await wait(stored.id)).stdout).toMatch(/^run refund-10417 COMPLETED: /);
    expect((await wait(stored.id, "--format", "markdown")).stdout).toContain("Run <code>bot</code>");
    expect(JSON.parse((await wait(stored.id, "--json")).stdout)).toMatchObject({ run_id: RUN });
  });

  it.each([
    [["--format", "xml"], "--format is one of"],
    [["--format", "junit", "--json"], "give one of them"],
    [["--stored", "gate", "--policy", "x.json"], "name one policy: --policy or --stored\n"],
  ])("refuses %j as usage", async (args, message) => {
    const { code, stdout, stderr } = await rechecks("--all", ...args);
    expect([code, stdout, stderr.includes(message)]).toEqual([2, "", true]);
    expect(stderr).not.toContain("--decisions");
  });
});

describe("runseal recheck", () => {
  it("exits 0 where all is the same, 1 where something differs, 2 where it can't tell", async () => {
    expect((await same()).code).toBe(0);
    expect((await strict()).code).toBe(1);
    expect((await recheck(["--policy", policyFile("default")], RUN, { RUNSEAL_API_KEY: "rsk_x" })).code).toBe(
      2,
    );
  });

  it.each([
    ["text", "--gate", "strict"],
    ["json", "--no-new-allow"],
    ["junit", "--no-new-allow", "--partial"],
    ["markdown", "--gate", "proxy"],
  ])("as %s does not pass by checking nothing", async (format, ...gate) => {
    for (const run of ["empty", "nope"]) {
      const options = ["--policy", policyFile("default"), "--format", format, ...gate];
      const { code, stdout, stderr } = await recheck(options, run);
      expect([run, code]).toEqual([run, 1]);
      expect(stdout + stderr).toContain(run === "nope" ? "no run was re-checked" : "proves nothing");
      if (format === "junit") expect(parseXml(stdout).attributes.failures).toBe("1");
    }
  });

  it("expects exactly the steps that differ", async () => {
    expect(steps.length).toBeGreaterThan(1);
    expect((await strict("--expect-different", steps.join(","))).code).toBe(0);
    expect((await strict("--expect-different", `${steps[0]}`)).code).toBe(1);
    expect((await strict("--expect-different", `${steps.join(",")},999`)).code).toBe(1);
    const wrong = await same("--expect-different", `${steps[0]}`);
    expect([wrong.code, wrong.stderr.includes("were expected to differ, and do not")]).toEqual([1, true]);
  });

  it("fails on what is newly allowed, and lets what is stricter pass", async () => {
    expect((await strict("--no-new-allow")).code).toBe(0);
    const allowed = await recheck(["--policy", lax, "--no-new-allow"]);
    expect([allowed.code, allowed.stderr.includes("were not allowed are allowed now")]).toEqual([1, true]);
    expect((await strict("--no-new-allow", "--gate", "proxy")).code).toBe(1);
  });

  it("verifies the log first", async () => {
    const { code, stdout } = await same("--verified");
    expect([code, stdout.endsWith("verified: what was re-checked is what was logged\n")]).toEqual([0, true]);
    expect(JSON.parse((await same("--verified", "--json")).stdout)).toMatchObject({
      verified: { verdict: "intact" },
    });
  });

  it("prints each form", async () => {
    const text = await strict();
    expect(text.stdout).toMatch(/^run refund-10417 COMPLETED: [1-9][0-9]* of [1-9][0-9]* re-checked/);
    expect([text.stdout.includes("FAILED"), text.stderr.startsWith("FAILED: ")]).toEqual([false, true]);
    const markdown = await strict("--format", "markdown");
    expect([markdown.code, markdown.stdout.startsWith("### Recheck **failed**: ")]).toEqual([1, true]);
    const junit = await strict("--format", "junit", "--expect-different", steps.join(","));
    expect([junit.code, parseXml(junit.stdout).attributes.failures]).toEqual([0, "0"]);
    expect((await strict("--format", "json")).stdout).toBe((await strict("--json")).stdout);
  });

  it.each([
    ["--gate", "lax"],
    ["--format", "xml"],
    ["--format", "junit", "--json"],
    ["--expect-different", ""],
    ["--expect-different", "2,2"],
    ["--expect-different", "-1"],
    ["--expect-different", "2", "--gate", "strict"],
    ["--gate", "strict", "--partial"],
    ["extra"],
  ])("refuses %s %s %s %s as usage", async (...args) => {
    const { code, stdout } = await same(...args.filter((one) => one !== undefined));
    expect([code, stdout]).toEqual([2, ""]);
  });

  it("is 2 for a stored policy that is not there", async () => {
    expect((await recheck(["--stored", "nope"])).code).toBe(2);
  });
});
