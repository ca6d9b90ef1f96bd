/**
 * Heads that answer without a key, where a tenant turned that on: `https://<origin>/checkpoint` and hash tiles, as C2SP
 * tlog-tiles has them. Entry bundles and content never do. Whatever is not public is not found, all alike.
 *
 * @module
 */
import { z } from "zod";
import { logObjectName } from "../../durable-objects/principal-log/types.ts";
import { HexId } from "../../shared/api/schemas.ts";
import type { TileRef } from "../../shared/merkle/tiles.ts";
import { parseTilePath } from "../../shared/merkle/tiles.ts";
import type { Env } from "../env.ts";
import { tileResponse } from "../http/hashes.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute, plain, tenantRoute } from "../http/route.ts";
import { refusal } from "../logs/open-log.ts";
import { currentEpoch } from "../logs/registry.ts";
import { appendSystemEntry } from "../logs/system-log.ts";
import { openTenantLog } from "./tenant-log.ts";

const PublicHeads = z.strictObject({ enabled: z.boolean() });

const get = tenantRoute(
  {
    method: "GET",
    path: "/v1/public-heads",
    operation: "getPublicHeads",
    tag: "tenants",
    scope: "read",
    summary: "Whether the tenant's heads answer without a key",
    query: z.object({}),
    answers: { 200: { description: "the setting", schema: PublicHeads } },
  },
  async ({ env, caller }) => {
    const { stub, identity } = openTenantLog(env, caller);
    return json({ enabled: await stub.publicHeads(identity) });
  },
);

const put = tenantRoute(
  {
    method: "PUT",
    path: "/v1/public-heads",
    operation: "putPublicHeads",
    tag: "tenants",
    scope: "admin",
    summary: "Let the tenant's heads answer without a key, or no longer",
    description:
      "Heads and hash tiles of the tenant's logs, at https://<origin>/checkpoint and /tile/... Entry bundles and content " +
      "never do. The change is on $system before it takes effect.",
    body: PublicHeads,
    answers: { 200: { description: "the setting", schema: PublicHeads } },
  },
  async ({ env, caller, body }) => {
    const { stub, identity } = openTenantLog(env, caller);
    if ((await stub.publicHeads(identity)) !== body.enabled) {
      await appendSystemEntry(env, caller.tenant, {
        id: `log.changed.public-heads.${crypto.randomUUID()}`,
        kind: "log.changed",
        action: { public_heads: body.enabled, by: caller.key.id },
      });
    }
    // The log of heads is the authority; the row in D1 only lets its object be asked. Both again: one may have failed.
    if (body.enabled) await stub.setPublicHeads(identity, true);
    const query = body.enabled
      ? "INSERT INTO public_heads VALUES (?1) ON CONFLICT DO NOTHING"
      : "DELETE FROM public_heads WHERE tenant = ?1";
    await env.DB.prepare(query).bind(caller.tenant.id).run();
    if (!body.enabled) await stub.setPublicHeads(identity, false);
    return json({ enabled: body.enabled });
  },
);

/** Throws a 404 problem unless the tenant is there and has public heads. */
async function requirePublic(env: Env, tenant: string): Promise<void> {
  const row = await env.DB.prepare("SELECT 1 AS found FROM public_heads WHERE tenant = ?1")
    .bind(tenant)
    .first();
  if (row === null) throw new Problem("not-found");
}

/** A principal's log with public heads. Throws a 404 problem. */
async function principalLog(env: Env, { tenant, principal }: { tenant: string; principal: string }) {
  const [id = "", generation = ""] = principal.split(".");
  await requirePublic(env, tenant);
  const identity = await env.HEAD_LOG.getByName(tenant).publicLog(tenant, id, Number(generation));
  if (identity === null) throw new Problem("not-found");
  const stub = env.PRINCIPAL_LOG.getByName(logObjectName(identity));
  return { stub, identity, epoch: await currentEpoch(env, tenant) };
}

/** The tenant's log with public heads. Throws a 404 problem. */
async function tenantLog(env: Env, tenant: string) {
  await requirePublic(env, tenant);
  const stub = env.HEAD_LOG.getByName(tenant);
  const identity = await stub.publicIdentity(tenant);
  if (identity === null) throw new Problem("not-found");
  return { stub, identity };
}

/** A hash tile. Throws a 404 problem for anything else, entry bundles above all. */
function hashTile(path: string): TileRef {
  const place = parseTilePath(`tile/${path}`);
  if (place === undefined || place.kind !== "hashes") throw new Problem("not-found");
  return place;
}

const Tenant = z.object({ tenant: HexId });
const Principal = z.object({
  tenant: HexId,
  principal: z.string().regex(/^[0-9a-f]{32}\.[1-9][0-9]{0,8}$/),
});
const TilePath = z.string().max(200);
const SUMMARY = "without a key, where the tenant turned public_heads on";
const CHECKPOINT = { 200: { description: "a signed note", contentType: "text/plain" } };
const TILE = { 200: { description: "the tile's bytes", contentType: "application/octet-stream" } };

const logCheckpoint = openRoute(
  {
    method: "GET",
    path: "/t/{tenant}/p/{principal}/checkpoint",
    operation: "getPublicCheckpoint",
    tag: "public heads",
    access: "none",
    summary: `A log's signed head, ${SUMMARY}`,
    params: Principal,
    query: z.object({}),
    answers: CHECKPOINT,
  },
  async ({ env, params }) => {
    const { stub, identity, epoch } = await principalLog(env, params);
    const outcome = await stub.head(identity, epoch);
    if (!outcome.ok) throw refusal(outcome);
    return plain(outcome.head.checkpoint);
  },
);

const logTile = openRoute(
  {
    method: "GET",
    path: "/t/{tenant}/p/{principal}/tile/{path+}",
    operation: "getPublicTile",
    tag: "public heads",
    access: "none",
    summary: `A hash tile of a log, ${SUMMARY}`,
    params: Principal.extend({ path: TilePath }),
    query: z.object({}),
    answers: TILE,
  },
  async ({ env, params }) => {
    const place = hashTile(params.path);
    const { stub, identity, epoch } = await principalLog(env, params);
    const outcome = await stub.tile(identity, epoch, place);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.bytes === null) throw new Problem("not-found");
    return tileResponse(outcome.bytes);
  },
);

const tenantCheckpoint = openRoute(
  {
    method: "GET",
    path: "/t/{tenant}/checkpoint",
    operation: "getPublicTenantCheckpoint",
    tag: "public heads",
    access: "none",
    summary: `The signed head of a tenant's log of heads, ${SUMMARY}`,
    params: Tenant,
    query: z.object({}),
    answers: CHECKPOINT,
  },
  async ({ env, params }) => {
    const { stub, identity } = await tenantLog(env, params.tenant);
    const outcome = await stub.view(identity);
    if (!outcome.ok) throw refusal(outcome);
    return plain(outcome.view.checkpoint);
  },
);

const tenantTile = openRoute(
  {
    method: "GET",
    path: "/t/{tenant}/tile/{path+}",
    operation: "getPublicTenantTile",
    tag: "public heads",
    access: "none",
    summary: `A hash tile of a tenant's log of heads, ${SUMMARY}`,
    params: Tenant.extend({ path: TilePath }),
    query: z.object({}),
    answers: TILE,
  },
  async ({ env, params }) => {
    const place = hashTile(params.path);
    const { stub, identity } = await tenantLog(env, params.tenant);
    const outcome = await stub.tile(identity, place);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.bytes === null) throw new Problem("not-found");
    return tileResponse(outcome.bytes);
  },
);

export const publicHeadRoutes: readonly Route[] = [
  get,
  put,
  logCheckpoint,
  logTile,
  tenantCheckpoint,
  tenantTile,
];
