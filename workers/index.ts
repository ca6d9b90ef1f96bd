/**
 * The Worker's entry point: the HTTP surface and the Durable Object classes.
 *
 * @module
 */
import { createApp } from "./app.ts";
import type { Env } from "./env.ts";

export { HeadLog } from "../durable-objects/head-log/head-log.ts";
export { KeyRegistry } from "../durable-objects/key-registry/key-registry.ts";
export { PrincipalLog } from "../durable-objects/principal-log/principal-log.ts";
export { RecheckJob } from "../durable-objects/recheck-job/recheck-job.ts";
export { TenantDirectory } from "../durable-objects/tenant-directory/tenant-directory.ts";
export { Witness } from "../durable-objects/witness/witness.ts";

const app = createApp();

export default {
  fetch: (request, env, execution) => app.fetch(request, env, execution),
} satisfies ExportedHandler<Env>;
