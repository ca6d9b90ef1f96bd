/**
 * How blind am I: what was taken, what D1 and R2 hold of it, and how old the oldest entry is that waits.
 *
 * @module
 */
import { z } from "zod";
import {
  MAX_OUTBOX_AGE_MS,
  MAX_OUTBOX_BYTES,
  MAX_OUTBOX_ENTRIES,
} from "../../durable-objects/principal-log/outbox.ts";
import type { LogHealth } from "../../durable-objects/principal-log/stats.ts";
import type { TotalCounters } from "../../durable-objects/tenant-directory/totals.ts";
import type { HealthStatus } from "../../shared/api/health.ts";
import { PrincipalHealth, TenantHealth } from "../../shared/api/health.ts";
import { PrincipalName } from "../../shared/api/schemas.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { openLog } from "../logs/open-log.ts";

/** From what age on an entry that waits for D1 is said to be behind. */
const BEHIND_MS = 60_000;

const BOUND = {
  entries: MAX_OUTBOX_ENTRIES,
  bytes: MAX_OUTBOX_BYTES,
  age_seconds: MAX_OUTBOX_AGE_MS / 1000,
};

/** Age in seconds, of which milliseconds are told; never below 0, whatever two clocks say. */
export function ageSeconds(sinceMs: number | null, nowMs: number): number | null {
  return sinceMs === null ? null : Math.max(0, nowMs - sinceMs) / 1000;
}

function statusOf(state: {
  stopped: boolean;
  conflicting: boolean;
  full: boolean;
  oldestMs: number | null;
  nowMs: number;
}): HealthStatus {
  if (state.stopped) return "stopped";
  if (state.conflicting) return "conflicting";
  if (state.full) return "full";
  return state.oldestMs !== null && state.nowMs - state.oldestMs >= BEHIND_MS ? "behind" : "ok";
}

function principalHealth(principal: string, log: LogHealth, nowMs: number): z.infer<typeof PrincipalHealth> {
  const has = (name: string): boolean => log.alarms.some((alarm) => alarm.name === name);
  return {
    principal,
    status: statusOf({
      stopped: has("stopped"),
      conflicting: has("index-conflict"),
      full: log.full,
      oldestMs: log.oldestMs,
      nowMs,
    }),
    accepted: log.accepted,
    persisted: log.persisted,
    archived: log.archived,
    pruned: log.pruned,
    mirrored_size: log.mirrored,
    lost: log.lost,
    outbox: {
      entries: log.accepted - log.persisted,
      bytes: log.outboxBytes,
      oldest_age_seconds: ageSeconds(log.oldestMs, nowMs),
    },
    bound: BOUND,
    alarms: log.alarms.map(({ name, detail }) => ({ name, detail })),
    as_of: new Date(nowMs).toISOString(),
  };
}

function tenantHealth(totals: TotalCounters, nowMs: number): z.infer<typeof TenantHealth> {
  const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
  return {
    status: statusOf({
      stopped: totals.stopped > 0,
      conflicting: totals.conflicting > 0,
      full: totals.full > 0,
      oldestMs: totals.oldest_ms,
      nowMs,
    }),
    logs: {
      reporting: totals.logs,
      behind: totals.behind,
      conflicting: totals.conflicting,
      stopped: totals.stopped,
    },
    accepted: totals.accepted,
    persisted: totals.persisted,
    archived: totals.archived,
    mirrored: totals.mirrored,
    lost: totals.lost,
    outbox: {
      entries: totals.accepted - totals.persisted,
      bytes: totals.outbox_bytes,
      oldest_age_seconds: ageSeconds(totals.oldest_ms, nowMs),
    },
    newest_report: time(totals.reported_ms),
    stalest_report: time(totals.stalest_ms),
  };
}

const ofPrincipal = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/health",
    operation: "getPrincipalHealth",
    tag: "health",
    scope: "read",
    summary: "How a log stands: what it took, what D1 and R2 hold, and the oldest entry that waits",
    description: "Answered from the log's own storage at this moment, by a log that is stopped as well.",
    params: z.object({ p: PrincipalName }),
    answers: { 200: { description: "the counters", schema: PrincipalHealth } },
  },
  async ({ env, caller, params }) => {
    const { stub } = await openLog(env, caller, params.p);
    return json(principalHealth(params.p, await stub.health(), Date.now()));
  },
);

const ofTenant = tenantRoute(
  {
    method: "GET",
    path: "/v1/health",
    operation: "getTenantHealth",
    tag: "health",
    scope: "read",
    summary: "The same, summed over the tenant's logs as they last reported",
    description:
      "A log reports when D1 has caught up with it, and while it has not, after each attempt. The answer says how old the reports are. For keys of all principals.",
    answers: { 200: { description: "the sums", schema: TenantHealth } },
  },
  async ({ env, caller }) => {
    if (!mayUseAllPrincipals(caller))
      throw new Problem("forbidden", { detail: "the sums are for keys of all principals" });
    return json(tenantHealth(await env.TENANT_DIRECTORY.getByName(caller.tenant.id).totals(), Date.now()));
  },
);

export const healthRoutes: readonly Route[] = [ofPrincipal, ofTenant];
