/**
 * The script's own answers over the whole way: each run is imported by the command into a real server, and audited by
 * the command.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { RunsealClient } from "../../../sdk/client.ts";
import type { AuditReport } from "../../../shared/audit/report.ts";
import { exitCodeOf, ledgerPart } from "../../../shared/audit/report.ts";
import { ORACLES, type Oracle, oracles, rowsOf } from "../../shared/audit/oracles.ts";
import { runseal } from "../../support/command.ts";
import { startServerProcess, temporaryFolder } from "../../support/server.ts";
import { describeWithShared, sharedPath } from "../../support/shared-files.ts";

let env: Record<string, string>;
let client: RunsealClient;
let all: string;

/** The words of the JSON parser are its own: what is compared is that there are some. */
function comparable(report: object): unknown {
  return JSON.parse(
    JSON.stringify(report, (key, value: unknown) => {
      const item = value as { kind?: string; reason?: string } | null;
      return typeof item === "object" && item?.kind === "invalid_json" && key !== ""
        ? { ...item, reason: typeof item.reason }
        : value;
    }),
  );
}

async function importFile(file: string, principal: string): Promise<void> {
  const imported = await runseal(["import", "langbot", file, "--principal", principal], env);
  expect([imported.code, imported.stderr.includes("refused")]).toEqual([0, false]);
}

/** The arguments of a case: where it has a run, the script was told its id. */
function argumentsOf({ run, args }: Oracle): string[] {
  return run === undefined ? [...args] : ["--run-id", String(run.run_id), ...args];
}

describeWithShared("the script's own answers, over import, log and command", ORACLES, () => {
  beforeAll(async () => {
    const server = await startServerProcess();
    const operator = new RunsealClient({ url: server.url, apiKey: server.operatorToken });
    const tenant = await operator.createTenant("langbot");
    env = { RUNSEAL_URL: server.url, RUNSEAL_API_KEY: tenant.api_key };
    client = new RunsealClient({ url: server.url, apiKey: tenant.api_key });
    // In the order of their names, which is the order in which the script's database got them.
    const rows = oracles.filter(({ run }) => run !== undefined).map(rowsOf);
    all = join(temporaryFolder(), "all.jsonl");
    writeFileSync(all, rows.join("\n"));
    await importFile(all, "langbot");
  });

  it("are 34", () => {
    expect(oracles.length).toBe(34);
  });

  it.each(oracles.map((oracle) => [oracle.case, oracle] as const))("%s", async (_name, oracle) => {
    const { code, stdout, stderr } = await runseal(["audit", "--json", ...argumentsOf(oracle)], env);
    expect([code, stderr]).toEqual([oracle.exit_code, ""]);
    const report = JSON.parse(stdout) as AuditReport;
    expect(comparable(ledgerPart(report))).toEqual(comparable(oracle.report));
    expect(Object.keys(report).slice(0, Object.keys(oracle.report).length)).toEqual(
      Object.keys(oracle.report),
    );
    expect([report.findings, report.not_checked]).toEqual([[], []]);
    expect(report.covered).toBe(oracle.run !== undefined);
  });

  it("are the same of a log of one run, without its id, and as text", async () => {
    for (const name of ["01-pass", "02-unpaired-start", "30-auth-resources-null"]) {
      const oracle = oracles.find((one) => one.case === name) as Oracle;
      await importFile(sharedPath(`${ORACLES}/${name}.json`), `alone-${name}`);
      const report = await runseal(["audit", "--principal", `alone-${name}`, ...oracle.args], env);
      expect(report.code).toBe(oracle.exit_code);
      expect(report.stdout.startsWith(`${oracle.report.status}: `)).toBe(true);
      expect(report.stdout).toContain(`\nlog: alone-${name}\n`);
    }
  });

  it("are stored once, however often they are imported", async () => {
    const before = (await client.head("langbot")).size;
    await importFile(all, "langbot");
    expect((await client.head("langbot")).size).toBe(before);
  });
});

describe("runseal audit", () => {
  it("exits 2 for wrong usage, without a key, and for a service that is away", async () => {
    const away = { RUNSEAL_URL: "http://127.0.0.1:1", RUNSEAL_API_KEY: "rsk_x" };
    for (const [args, environment] of [
      [["--tool-authorization-mode", "lenient"], away],
      [["run-1"], away],
      [["--nosuch"], away],
      [[], {}],
    ] as const) {
      const { code, stdout } = await runseal(["audit", ...args], environment);
      expect([args, code, stdout]).toEqual([args, 2, ""]);
    }
  });

  it("answers what the arguments forbid in the script's words, without a service", async () => {
    const { code, stdout } = await runseal(["audit", "--json", "--expected-result-text", "x"], {});
    const report = JSON.parse(stdout) as AuditReport;
    expect([code, exitCodeOf(report), report.reason]).toEqual([
      2,
      2,
      "--expected-tool-name is required with expected parameters or result text",
    ]);
  });
});
