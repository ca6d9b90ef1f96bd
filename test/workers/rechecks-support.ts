/**
 * Recorded runs for the tests of re-check jobs, sent over HTTP, and the jobs over them.
 *
 * @module
 */

import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { jobObjectName } from "../../durable-objects/recheck-job/types.ts";
import { pureCrypto } from "../../shared/crypto/pure.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { contentHash } from "../../shared/recheck/hash.ts";
import type { Answer, TestTenant } from "./support.ts";
import { call } from "./support.ts";

const spec = (name: string, sideEffect: string) =>
  canonicalJson(
    JSON.stringify({
      name,
      description: name,
      input_schema: { type: "object" },
      side_effect: sideEffect,
      timeout: 1,
    }),
  );
export const SPECS: ReadonlyMap<string, string> = new Map([
  ["read", spec("read", "read_only")],
  ["wipe", spec("wipe", "destructive")],
  ["send", spec("send", "remote_mutation")],
]);
export const specHash = (tool: string): string => contentHash(pureCrypto, SPECS.get(tool) ?? "");

/** Stores the specs of the tools. */
export async function putSpecs(tenant: TestTenant): Promise<void> {
  for (const [tool, text] of SPECS) await call(tenant.key, "PUT", `/v1/tools/${specHash(tool)}`, text);
}

export interface Evaluated {
  readonly tool: string;
  readonly outcome: string;
  readonly policyId?: string;
}

/** The entries of a run that asked its policy about these calls. */
export function runEntries(run: string, evaluated: readonly Evaluated[]): Record<string, unknown>[] {
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
  return [
    {
      kind: "run.created",
      run,
      action: {
        goal: "g",
        tools: Object.fromEntries([...SPECS.keys()].map((name) => [name, specHash(name)])),
      },
    },
    ...evaluated.map(({ tool, outcome, policyId = "old/v1" }, index) => ({
      kind: "policy.evaluated",
      run,
      step: `s${index}`,
      action: {
        tool,
        args: { n: index },
        spec_hash: specHash(tool),
        policy_id: policyId,
        decision: { outcome },
        view,
      },
    })),
    { kind: "run.completed", run, action: {} },
  ].map((entry, index) => ({ id: `${run}.${index}`, ...entry }));
}

/** Records a run. */
export async function sendRun(
  tenant: TestTenant,
  principal: string,
  run: string,
  evaluated: readonly Evaluated[],
): Promise<void> {
  const answer = await call(
    tenant.key,
    "POST",
    `/v1/principals/${principal}/entries`,
    runEntries(run, evaluated),
  );
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`);
}

/** What the runs above were recorded under, where reads are allowed and the rest is denied. */
export const RECORDED = {
  rules: {
    policy_id: "old/v1",
    side_effects: { read_only: "allow", destructive: "deny", remote_mutation: "deny" },
  },
};
/** Lets everything through. */
export const LOOSE = {
  rules: {
    policy_id: "loose/v1",
    side_effects: { read_only: "allow", destructive: "allow", remote_mutation: "allow" },
  },
};
export const STRICT = {
  rules: { policy_id: "strict/v1", side_effects: {}, tools: { read: { deny: true } } },
};

export interface Job {
  readonly id: string;
  readonly status: string;
  readonly reason?: string;
  readonly progress: { logs: number; runs: { done: number; total: number | null }; evaluations: number };
  readonly summary: {
    runs: { rechecked: number; without_evaluations: number; failed: number };
    totals: { evaluated: number; same: number; different: number; not_recheckable: { total: number } };
    new_allows: { total: number; groups: { principal: string; tool: string; count: number }[] };
    by_principal: { groups: { name: string; same: number; different: number }[] };
    failed_runs: { runs: { principal: string; run: string; code: string }[] };
    same: boolean;
    rechecked: number;
    complete: boolean;
    identity: string;
    specs: { hashes: string[] };
  };
  readonly heads: { principal: string; log_id: string; size: number; hash: string; root: string }[];
  readonly without_runs: string[];
  readonly report_hash: string | null;
  readonly entry: { principal: string; id: string } | null;
}

export const jobOf = (answer: Answer): Job => {
  if (answer.status > 202) throw new Error(`${answer.status} ${answer.text}`);
  return answer.body as unknown as Job;
};

/** Starts a job and waits for its end. */
export async function recheckJob(
  key: string,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Job> {
  const started = jobOf(await call(key, "POST", "/v1/rechecks?wait=30", body, headers));
  if (started.report_hash === null) throw new Error(`not at its end: ${JSON.stringify(started)}`);
  return started;
}

export const stubOf = (tenant: TestTenant, id: string) =>
  env.RECHECK_JOB.getByName(jobObjectName(tenant.id, id));

/** Runs the job's alarm until nothing is left to do, or `until` says so. */
export async function drive(
  tenant: TestTenant,
  id: string,
  until: (job: Job) => boolean = () => false,
): Promise<Job> {
  for (let i = 0; i < 200; i++) {
    const job = jobOf(await call(tenant.key, "GET", `/v1/rechecks/${id}`));
    if (until(job) || job.report_hash !== null) return job;
    await runDurableObjectAlarm(stubOf(tenant, id));
  }
  throw new Error("the job does not come to its end");
}

/** Runs inside the job's object. */
export function insideJob<R>(
  tenant: TestTenant,
  id: string,
  work: (state: DurableObjectState) => R | Promise<R>,
): Promise<R> {
  return runInDurableObject(stubOf(tenant, id), (_instance, state) => work(state));
}
