/**
 * Re-check jobs under Cedar and under a module on the real server, which is killed while they are at work: the module's
 * sandbox is a process of its own there, and ends with it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { RunsealClient } from "../../../sdk/client.ts";
import { contentHash } from "../../../shared/recheck/hash.ts";
import type { TestServer } from "../../support/server.ts";
import { startServerProcess } from "../../support/server.ts";
import { createTenant, type Tenant } from "../faults/load.ts";

const RUNS = 80;
const CALLS = 5;
const SPEC = '{"name":"pay","side_effect":"remote_mutation"}';
const SPEC_HASH = contentHash(nativeCrypto, SPEC);
/** Each lets the first calls of a run through, as they were recorded, and no other. */
const POLICIES = {
  cedar: "permit(principal, action, resource) when { context.args.n < 2 };",
  module: 'export const decide = ({ args }) => ({ outcome: args.n < 2 ? "allow" : "deny" });',
};

interface Job {
  readonly id: string;
  readonly status: string;
  readonly report_hash: string | null;
  readonly progress: { readonly runs: { readonly done: number } };
}

let server: TestServer;
let tenant: Tenant;
const client = () => new RunsealClient({ url: server.url, apiKey: tenant.key });

function runEntries(run: string): unknown[] {
  const view = {
    status: "RUNNING",
    step_count: 1,
    model_calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_input_tokens: 0,
    estimated_cost_micros: 0,
    active_ms: 0,
    steps: 0,
    approvals: 0,
  };
  const evaluated = Array.from({ length: CALLS }, (_, n) => ({
    id: `${run}.${n}`,
    kind: "policy.evaluated",
    run,
    step: `s${n}`,
    action: {
      tool: "pay",
      args: { n },
      spec_hash: SPEC_HASH,
      policy_id: "recorded/v1",
      decision: { outcome: "allow" },
      view,
    },
  }));
  return [
    { id: `${run}.c`, kind: "run.created", run, action: { goal: "g", limits: {}, tools: [] } },
    ...evaluated,
  ];
}

beforeAll(async () => {
  server = await startServerProcess();
  tenant = await createTenant(server);
  await client().request("PUT", `/v1/tools/${SPEC_HASH}`, { body: SPEC });
  const entries = Array.from({ length: RUNS }, (_, i) => runEntries(`r${i}`)).flat();
  for (let i = 0; i < entries.length; i += 800) {
    const { results } = await client().append("agent", entries.slice(i, i + 800) as never);
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
  }
});

it.each(["cedar", "module"] as const)(
  "a job under a %s policy comes to the same on a server that is killed",
  async (engine) => {
    const body = JSON.stringify({ policy: { [engine]: POLICIES[engine] }, selection: {} });
    const start = async (): Promise<Job> =>
      (await (await client().request("POST", "/v1/rechecks", { body })).json()) as Job;
    const jobAt = (id: string, wait = 0): Promise<Job> =>
      client().json("GET", `/v1/rechecks/${id}?wait=${wait}`);
    const findingsOf = async (id: string): Promise<Record<string, unknown>> => {
      while ((await jobAt(id, 20)).report_hash === null) {}
      const report = await client().json<Record<string, unknown>>("GET", `/v1/rechecks/${id}/report`);
      const { id: _id, created_at: _created, finished_at: _finished, ...rest } = report;
      return rest;
    };

    const alone = await findingsOf((await start()).id);
    expect(alone).toMatchObject({
      status: "complete",
      policy: { engine },
      summary: {
        totals: { evaluated: RUNS * CALLS, same: RUNS * 2, different: RUNS * (CALLS - 2) },
        transitions: expect.arrayContaining([
          { recorded: "allow", rechecked: "deny", same: 0, different: RUNS * (CALLS - 2) },
        ]),
        complete: true,
      },
    });
    const { id } = await start();
    for (;;) {
      const { progress, status } = await jobAt(id);
      if (status !== "resolving" && status !== "running")
        throw new Error(`the job is ${status} already: it needs more runs`);
      if (progress.runs.done > 0) break;
      await delay(5);
    }
    await server.killTree();
    server = await server.restart();
    expect((await jobAt(id)).progress.runs.done).toBeGreaterThan(0);
    expect(await findingsOf(id)).toEqual(alone);
  },
);
