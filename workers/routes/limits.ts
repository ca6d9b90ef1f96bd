/**
 * Limits of tenants and keys: set by the operator and by the tenant's admins, seen by whoever they hold for.
 *
 * @module
 */
import { z } from "zod";
import type { Limits, Usage } from "../../durable-objects/tenant-directory/limits.ts";
import { sameLimits, UNLIMITED } from "../../durable-objects/tenant-directory/limits.ts";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { CallerLimitsOut, LimitsAndUsage, LimitsIn, type LimitsOut } from "../../shared/api/limits.ts";
import { HexId } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute, tenantRoute } from "../http/route.ts";
import { appendSystemEntry } from "../logs/system-log.ts";

/** As the directory keeps them. */
export function limitsFrom(input: LimitsIn): Limits {
  return {
    entriesPerMinute: input.entries_per_minute ?? null,
    bytesPerDay: input.bytes_per_day ?? null,
    principals: input.principals ?? null,
  };
}

export function limitsOut(limits: Limits): z.infer<typeof LimitsOut> {
  return {
    entries_per_minute: limits.entriesPerMinute,
    bytes_per_day: limits.bytesPerDay,
    principals: limits.principals,
  };
}

function withUsage({
  limits,
  usage,
}: {
  limits: Limits | null;
  usage: Usage;
}): z.infer<typeof LimitsAndUsage> {
  return {
    limits: limits === null ? null : limitsOut(limits),
    usage: {
      entries_this_minute: usage.entriesThisMinute,
      bytes_today: usage.bytesToday,
      principals: usage.principals,
    },
  };
}

/** What limits limit, as an entry has it: what is not limited is absent. */
export function limitsRecord(limits: Limits): Record<string, number> {
  return Object.fromEntries(
    Object.entries(limitsOut(limits)).filter((member): member is [string, number] => member[1] !== null),
  );
}

/** Writes a tenant's limits on its system log. Throws a 503 problem where that can't be made durable. */
async function recordLimits(env: Env, tenant: TenantRecord, id: string, limits: Limits): Promise<void> {
  await appendSystemEntry(env, tenant, {
    id: `limits.changed.${id}`,
    kind: "limits.changed",
    action: limitsRecord(limits),
  });
}

/**
 * The same of those that a tenant was made with, once. A creation that is repeated later, when others hold, is none of
 * theirs.
 */
export async function recordFirstLimits(env: Env, tenant: TenantRecord, limits: Limits): Promise<void> {
  const { limits: now } = await env.TENANT_DIRECTORY.getByName(tenant.id).limitsAndUsage(null);
  if (now !== null && sameLimits(now, limits)) await recordLimits(env, tenant, "0", limits);
}

/** A tenant that exists, and its directory. Throws a 404 problem. */
async function tenantOf(env: Env, id: string) {
  const directory = env.TENANT_DIRECTORY.getByName(id);
  const tenant = await directory.tenant();
  if (tenant === null) throw new Problem("not-found");
  return { tenant, directory };
}

/** Changes by others that one change lets pass before it. */
const MAX_ATTEMPTS = 5;
const path = "/v1/tenants/{id}/limits";
const params = z.object({ id: HexId });

const put = openRoute(
  {
    method: "PUT",
    path,
    operation: "putTenantLimits",
    tag: "tenants",
    access: "operator",
    summary: "Set a tenant's limits in place of those before; what is absent is not limited",
    description:
      "They hold everywhere within ten seconds. A change is on the tenant's $system before it takes effect.",
    params,
    body: LimitsIn,
    answers: { 200: { description: "as they are now", schema: LimitsAndUsage } },
  },
  async ({ env, params: { id }, body }) => {
    const { tenant, directory } = await tenantOf(env, id);
    const limits = limitsFrom(body);
    for (let attempt = 0; ; attempt++) {
      const before = (await directory.limitsAndUsage(null)).limits ?? UNLIMITED;
      if (sameLimits(before, limits)) break;
      if (attempt === MAX_ATTEMPTS) throw new Problem("unavailable", { retryAfter: 1 });
      await recordLimits(env, tenant, crypto.randomUUID(), limits);
      // Where another change came in between, this one is recorded again: the last entry says what holds.
      if (await directory.setLimits(limits, before)) break;
    }
    return json(withUsage(await directory.limitsAndUsage(null)));
  },
);

const get = openRoute(
  {
    method: "GET",
    path,
    operation: "getTenantLimits",
    tag: "tenants",
    access: "operator",
    summary: "A tenant's limits, and what is used of them",
    params,
    answers: { 200: { description: "the limits", schema: LimitsAndUsage } },
  },
  async ({ env, params: { id } }) =>
    json(withUsage(await (await tenantOf(env, id)).directory.limitsAndUsage(null))),
);

const own = tenantRoute(
  {
    method: "GET",
    path: "/v1/limits",
    operation: "getLimits",
    tag: "tenants",
    scope: "read",
    summary: "The limits of the tenant and of the key that asks, and what is used of them",
    answers: { 200: { description: "the limits", schema: CallerLimitsOut } },
  },
  async ({ env, caller }) => {
    const directory = env.TENANT_DIRECTORY.getByName(caller.tenant.id);
    const [tenant, key] = await Promise.all([
      directory.limitsAndUsage(null),
      directory.limitsAndUsage(caller.key.id),
    ]);
    return json({ tenant: withUsage(tenant), key: withUsage(key) });
  },
);

export const limitRoutes: readonly Route[] = [put, get, own];
