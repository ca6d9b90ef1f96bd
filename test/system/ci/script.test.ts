/**
 * examples/ci/recheck.sh as a CI job runs it, against a real server.
 */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parseXml } from "../../shared/recheck/xml.ts";
import { type CommandResult, run } from "../../support/command.ts";
import { temporaryFolder } from "../../support/server.ts";
import { EXAMPLES, policyFile, type Recorded, recordedRuns } from "./recorded.ts";

const SCRIPT = join(EXAMPLES, "ci", "recheck.sh");
const RUN = "refund-10417";
let recorded: Recorded;

function script(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
  const { url, recheckKey } = recorded;
  return run("sh", [SCRIPT, ...args], { RUNSEAL_URL: url, RUNSEAL_API_KEY: recheckKey, ...env });
}

beforeAll(async () => {
  recorded = await recordedRuns();
});

describe("examples/ci/recheck.sh", () => {
  it("passes under the policy that the run was recorded with, and prints the report", async () => {
    for (const gate of ["strict", "proxy"]) {
      const { code, stdout, stderr } = await script([policyFile("default"), "bot", RUN], { GATE: gate });
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(
        new RegExp(`^run ${RUN} COMPLETED: 0 of [1-9][0-9]* re-checked evaluations differ`),
      );
      expect(stdout).toContain("verified: what was re-checked is what was logged");
    }
  });

  it("fails under a stricter one, with the report", async () => {
    const { code, stdout, stderr } = await script([policyFile("strict"), "bot", RUN]);
    expect([code, stderr]).toEqual([1, `run ${RUN} does not pass\n`]);
    expect(stdout).toContain("\nDIFFERENT step ");
  });

  it("fails for a run that is not there, a principal that is not there, and a run without evaluations", async () => {
    for (const [principal, name] of [
      ["bot", "nope"],
      ["nobody", RUN],
      ["bot", "empty"],
    ] as const)
      expect((await script([policyFile("default"), principal, name])).code).toBe(1);
  });

  it("fails for all the runs where one fails, and still looks at the others", async () => {
    const { code, stdout, stderr } = await script([policyFile("default"), "bot", "nope", RUN], {
      GATE: "proxy",
    });
    expect([code, stderr]).toEqual([1, "run nope of bot is not there\n"]);
    expect(stdout).toContain("0 of ");
  });

  it("exits 2 with a wrong key, a key that may not re-check, and a server that is away", async () => {
    const narrow = await recorded.client.json<{ api_key: string }>("POST", "/v1/api-keys", {
      name: "narrow",
      scopes: ["read"],
      principals: ["*"],
    });
    const wrong = `${recorded.recheckKey.slice(0, -2)}AA`;
    for (const [env, status] of [
      [{ RUNSEAL_API_KEY: wrong }, "401"],
      [{ RUNSEAL_API_KEY: narrow.api_key }, "403"],
      [{ RUNSEAL_URL: "http://127.0.0.1:1" }, "000"],
    ] as const) {
      const { code, stdout, stderr } = await script([policyFile("default"), "bot", RUN], env);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain(`HTTP status ${status}`);
      expect(stderr).not.toContain("rsk_");
    }
  });

  it("exits 2 for wrong usage: an empty selection of runs is none that passes", async () => {
    for (const args of [[], [policyFile("default")], [policyFile("default"), "bot"]])
      expect((await script(args)).code).toBe(2);
    expect((await script(["nowhere.json", "bot", RUN])).code).toBe(2);
    expect((await run("sh", [SCRIPT, policyFile("default"), "bot", RUN], {})).code).not.toBe(0);
  });

  it("exits 2 for a policy that can't be used", async () => {
    const file = join(temporaryFolder(), "policy.json");
    writeFileSync(file, '{"side_effects": {"read_only": "perhaps"}}');
    const { code, stderr } = await script([file, "bot", RUN]);
    expect([code, stderr.includes("invalid-policy")]).toEqual([2, true]);
  });

  it("gives Markdown and JUnit, also where the gate fails", async () => {
    const markdown = await script([policyFile("strict"), "bot", RUN], { FORMAT: "markdown" });
    expect([markdown.code, markdown.stdout.startsWith("### Recheck **failed**: ")]).toEqual([1, true]);
    expect(markdown.stdout).toContain("| step | seq | tool | recorded | now | why |");
    const junit = await script([policyFile("strict"), "bot", RUN], { FORMAT: "junit" });
    expect(Number(parseXml(junit.stdout).attributes.failures)).toBeGreaterThan(1);
  });

  it("keeps the key off every command line", async () => {
    // A curl of our own says what it was called with.
    const folder = temporaryFolder();
    writeFileSync(join(folder, "curl"), '#!/bin/sh\nprintf "%s\\n" "$@" >&2\nexit 7\n');
    chmodSync(join(folder, "curl"), 0o755);
    const { code, stderr } = await script([policyFile("default"), "bot", RUN], {
      PATH: `${folder}:${process.env.PATH}`,
    });
    expect([code, stderr.includes("--config"), stderr.includes(recorded.recheckKey)]).toEqual([
      2,
      true,
      false,
    ]);
  });
});
