/**
 * Limits of tenants and keys: set by the operator and by the tenant's admins, seen by whoever they hold for.
 *
 * @module
 */
import { z } from "zod";
import type { Limits, Usage } from "../../durable-objects/tenant-directory/limits.ts";
import { CallerLimitsOut, LimitsAndUsage, LimitsIn, type LimitsOut } from "../../shared/api/limits.ts";
import { HexId } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute, tenantRoute } from "../http/route.ts";

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

/** The directory of a tenant that exists. Throws a 404 problem. */
async function directoryOf(env: Env, id: string) {
  const directory = env.TENANT_DIRECTORY.getByName(id);
  if ((await directory.tenant()) === null) throw new Problem("not-found");
  return directory;
}

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
    description: "They hold everywhere within ten seconds.",
    params,
    body: LimitsIn,
    answers: { 200: { description: "as they are now", schema: LimitsAndUsage } },
  },
  async ({ env, params: { id }, body }) => {
    const directory = await directoryOf(env, id);
    await directory.setLimits(limitsFrom(body));
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
  async ({ env, params: { id } }) => json(withUsage(await (await directoryOf(env, id)).limitsAndUsage(null))),
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
