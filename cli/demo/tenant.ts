/**
 * The demo's tenant: created at the first start, its key kept in the state folder, readable by its owner alone.
 *
 * @module
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RunsealClient } from "../../sdk/client.ts";
import type { DemoOptions } from "./story.ts";

export interface DemoTenant {
  readonly apiKey: string;
  readonly registryId: string;
}

/** The file's name within the state folder. */
export const DEMO_TENANT_FILE = "demo-tenant.json";

/** The demo's tenant, created where the state folder has none. */
export async function demoTenant(
  options: Pick<DemoOptions, "url" | "operatorToken" | "stateDir">,
): Promise<DemoTenant> {
  const file = join(options.stateDir, DEMO_TENANT_FILE);
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as DemoTenant;
  const operator = new RunsealClient({ url: options.url, apiKey: options.operatorToken });
  const { api_key, registry_id } = await operator.createTenant("demo");
  const tenant: DemoTenant = { apiKey: api_key, registryId: registry_id };
  writeFileSync(file, `${JSON.stringify(tenant, null, 2)}\n`, { mode: 0o600 });
  return tenant;
}
