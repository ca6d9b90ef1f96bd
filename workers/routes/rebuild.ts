/**
 * Fills D1 again from the logs and R2: the operator's, step by step. `runseal rebuild-index` drives it.
 *
 * @module
 */
import { z } from "zod";
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { HexId, PrincipalName } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute } from "../http/route.ts";
import { refusal } from "../logs/open-log.ts";
import { NOTHING_LEFT, type RebuildStep, rebuildStep, startRebuild } from "../logs/rebuild.ts";
import { openGeneration } from "../logs/recover.ts";
import { askMirror } from "../mirror.ts";

/** The tenant at work, and whether its rebuild was begun: what a step goes on from. */
const CURSOR = /^([0-9a-f]{32})\.(next|begun)$/;

const Step = z.object({
  done: z.boolean(),
  cursor: z.string().nullable().describe("for the next step; null when all is done"),
  tenant: HexId.nullable().describe("the tenant at work"),
  logs: z.int().describe("logs that this step is through with"),
  entries: z.int().describe("entries that D1 holds of the logs that it asked"),
  restored: z.int().describe("versions of policies and tool specs that D1 has again, from R2"),
  refused: z
    .int()
    .describe(
      "with a tenant's last step: objects in R2 that were left out in the whole of its rebuild; the service's log names each",
    ),
});

/** The tenant that follows in R2, where every tenant has its registry; null for the end. Throws a 503 problem. */
async function nextTenant(env: Env, after: string | null): Promise<string | null> {
  // "0" follows "/": all keys of the tenant before are passed over.
  const startAfter = after === null ? {} : { startAfter: `t/${after}0` };
  const { delimitedPrefixes, objects } = await askMirror(env, (bucket) =>
    bucket.list({ prefix: "t/", delimiter: "/", limit: 1, ...startAfter }),
  );
  return /^t\/([0-9a-f]{32})\//.exec(delimitedPrefixes[0] ?? objects[0]?.key ?? "")?.[1] ?? null;
}

/** The tenant that the cursor or the request names, or the first one. */
async function place(
  env: Env,
  only: string | undefined,
  cursor: string | undefined,
): Promise<{ id: string; begun: boolean } | null> {
  if (cursor === undefined) {
    const id = only ?? (await nextTenant(env, null));
    return id === null ? null : { id, begun: false };
  }
  const [, id = "", state] = CURSOR.exec(cursor) ?? [];
  if (state === undefined || (only !== undefined && only !== id))
    throw new Problem("invalid-cursor", { pointer: "/cursor" });
  return { id, begun: state === "begun" };
}

const rebuild = openRoute(
  {
    method: "POST",
    path: "/v1/admin/rebuild-index",
    operation: "rebuildIndex",
    tag: "operation",
    access: "operator",
    summary: "One step of filling D1 again from the logs and R2, of all tenants or of one",
    description:
      "Go on with the cursor until done. A step that was cut off may be made again. Until a tenant is through, reads of all its entries, and of its policies, are 503 index-rebuilding.",
    query: z.object({}),
    body: z.strictObject({
      tenant: HexId.optional().describe("this tenant only"),
      cursor: z.string().max(100).optional(),
    }),
    answers: { 200: { description: "how far it is", schema: Step } },
  },
  async ({ env, body }) => {
    const at = await place(env, body.tenant, body.cursor);
    if (at === null) return json({ ...NOTHING_LEFT, cursor: null, tenant: null });
    const tenant = await env.TENANT_DIRECTORY.getByName(at.id).tenant();
    if (tenant === null && body.tenant !== undefined) throw new Problem("not-found");
    // A tenant whose creation was never finished has a registry in R2, and nothing in D1.
    const step = tenant === null ? NOTHING_LEFT : await stepOf(env, tenant, at.begun);
    if (!step.done) return json({ ...step, cursor: `${at.id}.begun`, tenant: at.id });
    const next = body.tenant === undefined ? await nextTenant(env, at.id) : null;
    const cursor = next === null ? null : `${next}.next`;
    return json({ ...step, done: next === null, cursor, tenant: at.id });
  },
);

async function stepOf(env: Env, tenant: TenantRecord, begun: boolean): Promise<RebuildStep> {
  if (!begun) await startRebuild(env, tenant);
  return rebuildStep(env, tenant);
}

const replace = openRoute(
  {
    method: "POST",
    path: "/v1/tenants/{tenant}/principals/{p}/reindex",
    operation: "reindexLog",
    tag: "operation",
    access: "operator",
    summary: "Take all that D1 holds of a log out of it, and fill it anew from the log",
    description:
      "For a log that D1 contradicts (index-conflict): verify it first, and keep the report. Then go on with rebuild-index for the tenant.",
    params: z.object({ tenant: HexId, p: PrincipalName }),
    query: z.object({}),
    answers: {
      200: { description: "D1 holds nothing of the log", schema: z.object({ entries: z.int() }) },
    },
  },
  async ({ env, params }) => {
    const { log } = await openGeneration(env, params.tenant, params.p, undefined);
    const outcome = await log.stub.emptyIndex(log.identity, log.epoch);
    if (!outcome.ok) throw refusal(outcome);
    return json({ entries: outcome.size });
  },
);

export const rebuildRoutes: readonly Route[] = [rebuild, replace];
