/**
 * A re-check job over every run of the corpus, several times over, on a server that is killed while the job is at work:
 * it comes to the same as one that was left alone, and names exactly the calls that the stricter policy denies, run by run.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { rechecksCommand } from "../../../cli/commands/rechecks.ts";
import { RunsealClient } from "../../../sdk/client.ts";
import type { TestServer } from "../../support/server.ts";
import { startServerProcess, temporaryFolder } from "../../support/server.ts";
import { describeWithShared } from "../../support/shared-files.ts";
import { createTenant } from "../faults/load.ts";
import { allowing, callsOf, corpusFiles, runsOf } from "./corpus-runs.ts";

const COPIES = 2;
const KILLS = 2;
/** What the stricter policy denies. */
const DENIED = ["send_money", "shell", "get_reservation_details"];

interface Job {
  readonly id: string;
  readonly status: string;
  readonly report_hash: string | null;
  readonly progress: { readonly runs: { readonly done: number; readonly total: number | null } };
}

interface Report {
  readonly summary: {
    readonly totals: { readonly evaluated: number; readonly same: number; readonly different: number };
    readonly by_principal: { readonly groups: readonly { name: string; different: number }[] };
    readonly worst: { readonly differences: readonly { tool: string }[] };
    readonly complete: boolean;
  };
  readonly [member: string]: unknown;
}

/** What a report says, apart from what differs between two jobs. */
const findings = ({ id: _id, created_at: _c, finished_at: _f, ...rest }: Report): unknown => rest;

interface Sent {
  readonly calls: number;
  /** Denied calls by run. */
  readonly denied: ReadonlyMap<string, number>;
  readonly tools: ReadonlySet<string>;
  readonly runs: number;
}

/** Sends every run of the corpus to each of some principals. */
async function sendCorpus(client: RunsealClient): Promise<Sent> {
  const files = corpusFiles();
  const tools = new Set<string>();
  for (const file of files) {
    for (const run of await runsOf(file)) for (const tool of callsOf(run).keys()) tools.add(tool);
  }
  const denied = new Map<string, number>();
  const specs = new Map<string, string>();
  const entries: string[] = [];
  let [calls, runs] = [0, 0];
  for (const file of files) {
    for (const run of await runsOf(file, allowing("corpus/v1", tools))) {
      runs++;
      for (const { hash, text } of run.specs) specs.set(hash, text);
      for (const [tool, count] of callsOf(run)) {
        calls += count;
        if (DENIED.includes(tool)) denied.set(run.run, (denied.get(run.run) ?? 0) + count);
      }
      entries.push(...run.entries);
    }
  }
  for (const [hash, text] of specs) await client.request("PUT", `/v1/tools/${hash}`, { body: text });
  for (let copy = 0; copy < COPIES; copy++) {
    for (let i = 0; i < entries.length; i += 200) {
      const { results } = await client.appendTexts(`copy-${copy}`, entries.slice(i, i + 200));
      expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    }
  }
  return { calls, denied, tools, runs };
}

describeWithShared("a re-check job over the corpus", "corpus/FORMATS.md", () => {
  it(`comes to the same on a server that is killed ${KILLS} times while it is at work`, {
    timeout: 600_000,
  }, async () => {
    let server: TestServer = await startServerProcess();
    const tenant = await createTenant(server);
    const clientOf = () => new RunsealClient({ url: server.url, apiKey: tenant.key });
    const { calls, denied, tools, runs } = await sendCorpus(clientOf());
    const recorded = allowing("corpus/v1", tools);
    const strict = `{"policy":{"rules":${allowing("corpus/strict", tools, DENIED)}},"selection":{}}`;
    const startJob = async (body: string): Promise<Job> =>
      (await (await clientOf().request("POST", "/v1/rechecks", { body })).json()) as Job;
    const jobAt = (id: string, wait = 0): Promise<Job> =>
      clientOf().json("GET", `/v1/rechecks/${id}?wait=${wait}`);
    const reportOf = async (id: string): Promise<Report> => {
      for (;;) {
        const { status, report_hash: hash } = await jobAt(id, 20);
        if (hash === null) continue;
        expect(status).toBe("complete");
        return clientOf().json("GET", `/v1/rechecks/${id}/report`);
      }
    };

    const alone = await reportOf((await startJob(strict)).id);
    const { id } = await startJob(strict);
    const seen: number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      // It has to be at work, and further than it was at the last kill.
      for (;;) {
        const { progress, status } = await jobAt(id);
        if (progress.runs.done > (seen.at(-1) ?? 0)) {
          seen.push(progress.runs.done);
          break;
        }
        if (status !== "resolving" && status !== "running")
          throw new Error(`the job is ${status} after ${seen} runs: it needs more of them`);
        await delay(10);
      }
      await delay(Math.random() * 60);
      await server.killTree();
      server = await server.restart();
    }
    expect(seen.at(-1)).toBeLessThan(COPIES * runs);
    // Nobody asks for the job: its own alarm sets it going again.
    for (let listed = ""; listed !== "complete"; await delay(100)) {
      const { rechecks } = await clientOf().json<{ rechecks: Job[] }>("GET", "/v1/rechecks");
      listed = rechecks.find((job) => job.id === id)?.status ?? "";
    }
    const killed = await reportOf(id);
    expect(findings(killed)).toEqual(findings(alone));

    const { totals, worst, by_principal: principals, complete } = killed.summary;
    const expected = [...denied.values()].reduce((sum, count) => sum + count, 0) * COPIES;
    expect(totals).toMatchObject({
      evaluated: calls * COPIES,
      same: calls * COPIES - expected,
      different: expected,
    });
    expect(complete).toBe(true);
    expect(new Set(worst.differences.map(({ tool }) => tool)).size).toBeGreaterThan(1);
    for (const { tool } of worst.differences) expect(DENIED).toContain(tool);
    expect(principals.groups.map(({ different }) => different)).toEqual(
      Array.from({ length: COPIES }, () => expected / COPIES),
    );
    // Line by line, each run has exactly the calls that are denied in it.
    const lines = await (await clientOf().request("GET", `/v1/rechecks/${id}/runs`)).text();
    const byRun = new Map<string, number>();
    for (const line of lines.trimEnd().split("\n")) {
      const { run, different } = JSON.parse(line) as { run: string; different: number };
      byRun.set(run, (byRun.get(run) ?? 0) + different);
    }
    const table = [...denied].map(([run, count]): [string, number] => [run, count * COPIES]);
    expect(new Map([...byRun].sort())).toEqual(new Map(table.sort()));

    const file = join(temporaryFolder(), "policy.json");
    const command = async (policy: string, values: Record<string, string | boolean>) => {
      writeFileSync(file, policy);
      const out: string[] = [];
      const code = await rechecksCommand.run({
        positionals: [],
        values: { url: server.url, key: tenant.key, policy: file, gate: "strict", ...values },
        json: false,
        out: (text) => out.push(text),
        note: () => {},
      });
      return { code, out: out.join("\n") };
    };
    const same = await command(recorded, { all: true });
    expect([same.code, same.out.split("\n")[1]]).toEqual([
      0,
      `0 of ${calls * COPIES} re-checked evaluations differ in ${rechecked(alone)} runs; policy unchanged: "corpus/v1"; recorded specs`,
    ]);
    expect((await command(allowing("corpus/strict", tools, DENIED), { newest: "500" })).code).toBe(1);
    expect((await command(recorded, { since: "2200-01-01T00:00:00Z" })).code).toBe(1);
    await server.stop();
  });
});

/** Runs that have an evaluation. */
function rechecked({ summary }: Report): number {
  return (summary as unknown as { runs: { rechecked: number } }).runs.rechecked;
}
