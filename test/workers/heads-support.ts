/**
 * Brings the logs of heads up to date without waiting for their alarms.
 *
 * @module
 */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import { logObjectName } from "../../durable-objects/principal-log/types.ts";
import type { TestTenant } from "./support.ts";

/** Runs the alarm of a log of heads; whether one was set. */
export function runHeadLog(owner: string): Promise<boolean> {
  return runDurableObjectAlarm(env.HEAD_LOG.getByName(owner));
}

/** Has every log of the tenant report its head. */
export async function reported(tenant: TestTenant): Promise<void> {
  const principals = await env.TENANT_DIRECTORY.getByName(tenant.id).principals("", 1000);
  for (const { id, generation } of principals) {
    const name = logObjectName({ tenant: tenant.id, principal: id, generation });
    await runDurableObjectAlarm(env.PRINCIPAL_LOG.getByName(name));
  }
}

/** Has the tenant's log list what its logs have. */
export async function listed(tenant: TestTenant): Promise<void> {
  await reported(tenant);
  await runHeadLog(tenant.id);
}

/** And the service's log, what the tenant's has. */
export async function serviceListed(tenant: TestTenant): Promise<void> {
  await listed(tenant);
  await runHeadLog(SERVICE);
}
