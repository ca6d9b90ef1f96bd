/**
 * Every route of the service, in the order in which the contract lists them.
 *
 * @module
 */
import type { Route } from "../http/route.ts";
import { entryRoutes } from "./entries.ts";
import { headRoutes } from "./heads.ts";
import { metaRoutes } from "./meta.ts";
import { principalRoutes } from "./principals.ts";
import { readingRoutes } from "./reading.ts";
import { recheckRoutes } from "./recheck.ts";
import { registryRoutes } from "./registry.ts";
import { runRoutes } from "./runs.ts";
import { serviceLogRoutes } from "./service-log.ts";
import { tenantLogRoutes } from "./tenant-log.ts";
import { tenantRoutes } from "./tenants.ts";
import { toolRoutes } from "./tools.ts";
import { verifyRoutes } from "./verify.ts";

export const routes: readonly Route[] = [
  ...tenantRoutes,
  ...principalRoutes,
  ...entryRoutes,
  ...readingRoutes,
  ...headRoutes,
  ...tenantLogRoutes,
  ...serviceLogRoutes,
  ...registryRoutes,
  ...verifyRoutes,
  ...runRoutes,
  ...recheckRoutes,
  ...toolRoutes,
  ...metaRoutes,
];
