/**
 * Fills D1 again for a whole tenant, log by log in bounded steps: each log is asked to look where D1 stands and to put
 * there what it lacks. Then come policies and tool specs, which R2 has: the `$system` log says which policies are true. The
 * tenant's directory remembers how far that is; anybody may go on with it.
 *
 * @module
 */
import type { NamedLog } from "../../durable-objects/tenant-directory/index-state.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { newestArrival } from "../index-db/arrivals.ts";
import { indexTenant } from "../index-db/tenants.ts";
import { AT_ONCE } from "../mirror.ts";
import type { OpenLog } from "./open-log.ts";
import { bindPastLog, refusal } from "./open-log.ts";
import { registryState } from "./registry.ts";
import { restoreCopies } from "./restore-copies.ts";

/** Bounds of one step. An object, so that a test can lower them. */
export const REBUILD_STEP = {
  logs: 24,
  /** Chunks of one log: a thousand entries each at most, and some seconds of a Durable Object's time together. */
  chunks: 20,
};

export interface RebuildStep {
  /** Whether the rebuild is through. */
  readonly done: boolean;
  /** Logs that this step is through with. */
  readonly logs: number;
  /** Entries that D1 holds of the logs that it asked. */
  readonly entries: number;
  /** Versions of policies and tool specs that D1 has again. */
  readonly restored: number;
  /**
   * Objects in R2 that were refused, told with the last step: those of the whole rebuild, whoever made its steps. The
   * service's log names each.
   */
  readonly refused: number;
}

/** What a step with nothing to do comes to. */
export const NOTHING_LEFT: RebuildStep = { done: true, logs: 0, entries: 0, restored: 0, refused: 0 };

/** Begins a rebuild of the tenant's part of D1: its own rows now, those of its logs in steps. */
export async function startRebuild(env: Env, tenant: TenantRecord): Promise<void> {
  await env.TENANT_DIRECTORY.getByName(tenant.id).startRebuild();
  const { records } = await registryState(env, tenant.id, { maxAgeMs: 0 });
  await indexTenant(env.DB, tenant, records);
}

/** The next step of a tenant's rebuild, if one runs. Throws a 503 problem where a log, D1 or R2 is away. */
export async function rebuildStep(env: Env, tenant: TenantRecord): Promise<RebuildStep> {
  const directory = env.TENANT_DIRECTORY.getByName(tenant.id);
  const page = await directory.rebuildPage(REBUILD_STEP.logs);
  // Somebody else, a reader, made the last one.
  if (page === null) return { ...NOTHING_LEFT, refused: (await directory.indexView()).refused };
  let [logs, entries] = [0, 0];
  for (let i = 0; i < page.logs.length; i += AT_ONCE) {
    const group = page.logs.slice(i, i + AT_ONCE);
    const steps = await Promise.all(group.map((log) => refill(env, tenant, log)));
    entries += steps.reduce((sum, { indexed }) => sum + indexed, 0);
    const whole = steps.findIndex(({ complete }) => !complete);
    const through = whole < 0 ? group : group.slice(0, whole);
    logs += through.length;
    const last = through.at(-1);
    if (last !== undefined)
      await directory.rebuilt(page.round, { name: last.name, generation: last.generation });
    // The long one goes on where it is in the next step.
    if (whole >= 0) return { ...NOTHING_LEFT, done: false, logs, entries };
  }
  if (page.more) return { ...NOTHING_LEFT, done: false, logs, entries };
  const { copiesAfter: from } = page;
  const { after, restored, refused } = await restoreCopies(env, tenant, from);
  if (after !== null) {
    await directory.rebuilt(page.round, { from, copiesAfter: after, refused });
    return { done: false, logs, entries, restored, refused: 0 };
  }
  const newest = await newestArrival(env.DB, tenant.id);
  const end = await directory.endRebuild(page.round, newest, { from, copiesAfter: from, refused });
  return { done: end.ended, logs, entries, restored, refused: end.refused };
}

/** Puts a part of one log into D1. */
async function refill(
  env: Env,
  tenant: TenantRecord,
  log: NamedLog,
): Promise<{ complete: boolean; indexed: number }> {
  const { name, principal: id, generation } = log;
  const open: OpenLog = await bindPastLog(env, tenant, { name, id, generation, createdAt: "" });
  const outcome = await open.stub.refillIndex(open.identity, open.epoch, REBUILD_STEP.chunks);
  if (outcome.ok) return { complete: outcome.indexed >= outcome.size, indexed: outcome.indexed };
  // What a log that stands still has to say can't be had by waiting; its runbook is another one (docs/operate.md).
  if (outcome.code === "log-stopped" || outcome.code === "index-conflict")
    return { complete: true, indexed: 0 };
  if (outcome.code === "index-unavailable") {
    throw new Problem("index-rebuilding", { retryAfter: 1, detail: outcome.detail });
  }
  throw refusal(outcome);
}
