/**
 * Every route of the service, in the order in which the contract lists them.
 *
 * @module
 */
import type { Route } from "../http/route.ts";
import { admitRoutes } from "./admit.ts";
import { anchorRoutes } from "./anchors.ts";
import { auditRoutes } from "./audits.ts";
import { entryRoutes } from "./entries.ts";
import { erasureRoutes } from "./erasures.ts";
import { evaluationRoutes } from "./evaluations.ts";
import { extensionRoutes } from "./extensions.ts";
import { headRoutes } from "./heads.ts";
import { healthRoutes } from "./health.ts";
import { limitRoutes } from "./limits.ts";
import { metaRoutes } from "./meta.ts";
import { metricsRoutes } from "./metrics.ts";
import { policyRoutes } from "./policies.ts";
import { principalRoutes } from "./principals.ts";
import { publicHeadRoutes } from "./public-heads.ts";
import { readingRoutes } from "./reading.ts";
import { rebuildRoutes } from "./rebuild.ts";
import { recheckRoutes } from "./recheck.ts";
import { recheckReportRoutes } from "./recheck-reports.ts";
import { recheckJobRoutes } from "./rechecks.ts";
import { recoverRoutes } from "./recover.ts";
import { registryRoutes } from "./registry.ts";
import { runRoutes } from "./runs.ts";
import { serviceLogRoutes } from "./service-log.ts";
import { tenantLogRoutes } from "./tenant-log.ts";
import { tenantRoutes } from "./tenants.ts";
import { toolRoutes } from "./tools.ts";
import { verifyRoutes } from "./verify.ts";
import { witnessRoutes } from "./witness.ts";

export const routes: readonly Route[] = [
  ...tenantRoutes,
  ...limitRoutes,
  ...principalRoutes,
  ...entryRoutes,
  ...admitRoutes,
  ...readingRoutes,
  ...headRoutes,
  ...tenantLogRoutes,
  ...anchorRoutes,
  ...publicHeadRoutes,
  ...serviceLogRoutes,
  ...witnessRoutes,
  ...registryRoutes,
  ...verifyRoutes,
  ...erasureRoutes,
  ...runRoutes,
  ...recheckRoutes,
  ...recheckJobRoutes,
  ...recheckReportRoutes,
  ...auditRoutes,
  ...evaluationRoutes,
  ...policyRoutes,
  ...extensionRoutes,
  ...toolRoutes,
  ...healthRoutes,
  ...metricsRoutes,
  ...recoverRoutes,
  ...rebuildRoutes,
  ...metaRoutes,
];
