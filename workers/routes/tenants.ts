/**
 * Tenants and API keys.
 *
 * @module
 */
import { z } from "zod";
import { deriveFromMaster } from "../../durable-objects/managed-keys.ts";
import type { Limits } from "../../durable-objects/tenant-directory/limits.ts";
import type { ApiKeyRecord, TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import type { LimitsIn } from "../../shared/api/limits.ts";
import {
  ApiKeyCreated,
  ApiKeyIn,
  ApiKeyOut,
  HexId,
  TenantAnswer,
  TenantDraft,
  TenantIn,
} from "../../shared/api/schemas.ts";
import type { Scope } from "../../shared/api/scopes.ts";
import { SCOPES } from "../../shared/api/scopes.ts";
import { formatApiKey } from "../../shared/api-key.ts";
import { toHex } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import { forgetKey, mayUsePrincipal } from "../http/auth.ts";
import { fingerprintOf } from "../http/fingerprint.ts";
import { idempotencyKey } from "../http/idempotency.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute, tenantRoute } from "../http/route.ts";
import { indexTenant } from "../index-db/tenants.ts";
import { ensurePrincipal, SYSTEM_PRINCIPAL } from "../logs/open-log.ts";
import { appendSystemEntry } from "../logs/system-log.ts";
import { limitsFrom, limitsOut, limitsRecord, recordFirstLimits } from "./limits.ts";
import { registryProblem } from "./registry.ts";

function keyOut(key: ApiKeyRecord): z.infer<typeof ApiKeyOut> {
  return {
    id: key.id,
    name: key.name,
    scopes: [...key.scopes],
    principals: [...key.principals],
    limits: key.limits === null ? null : limitsOut(key.limits),
    created_at: key.createdAt,
    revoked_at: key.revokedAt,
  };
}

/**
 * Makes a key of the tenant from its parts. The act is in the system log before it takes effect, so that no key
 * exists unrecorded. Answers the key's text, which is stored nowhere.
 */
async function createKeyRecorded(
  env: Env,
  tenant: TenantRecord,
  parts: { id: Uint8Array; secret: Uint8Array },
  options: {
    name: string;
    scopes: readonly Scope[];
    principals: readonly string[];
    limits?: LimitsIn | undefined;
  },
  by: string | null,
): Promise<{ record: ApiKeyRecord; text: string }> {
  const record: ApiKeyRecord = {
    id: toHex(parts.id),
    name: options.name,
    scopes: options.scopes,
    principals: options.principals,
    limits: options.limits === undefined ? null : limitsFrom(options.limits),
    createdAt: new Date().toISOString(),
    revokedAt: null,
  };
  const limits = record.limits === null ? {} : limitsRecord(record.limits);
  await appendSystemEntry(env, tenant, {
    id: `apikey.created.${record.id}`,
    kind: "apikey.created",
    action: {
      key_id: record.id,
      scopes: [...record.scopes],
      principals: [...record.principals],
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
      ...(by === null ? {} : { by }),
    },
  });
  await env.TENANT_DIRECTORY.getByName(tenant.id).addApiKey(record, toHex(nativeCrypto.sha256(parts.secret)));
  return { record, text: formatApiKey({ tenant: tenant.id, id: record.id, secret: parts.secret }) };
}

/**
 * A tenant's id and first key. With an Idempotency-Key both are derived from it, so that the same request again gives
 * the same tenant and the same key without either being stored.
 */
async function seeds(
  env: Env,
  key: string | null,
): Promise<{ tenant: string; id: Uint8Array; secret: Uint8Array }> {
  if (key === null) {
    const random = crypto.getRandomValues(new Uint8Array(64));
    return { tenant: toHex(random.slice(0, 16)), id: random.slice(16, 32), secret: random.slice(32) };
  }
  const ids = await deriveFromMaster(env.MASTER_KEY, "tenant-ids", key);
  const secret = await deriveFromMaster(env.MASTER_KEY, "tenant-first-key", key);
  return { tenant: toHex(ids.slice(0, 16)), id: ids.slice(16, 32), secret };
}

const createTenant = openRoute(
  {
    method: "POST",
    path: "/v1/tenants",
    operation: "createTenant",
    tag: "tenants",
    access: "operator",
    summary: "Create a tenant: its key registry's genesis, and its first admin key, shown once",
    description:
      "With an Idempotency-Key the same request again, at any time, answers the same tenant and the same key; another request under it is refused (422), recovery_signature aside. With a recovery_key the first answer is genesis for that key to sign; the same request with recovery_signature creates the tenant.",
    body: TenantIn,
    answers: {
      201: { description: "the tenant", schema: TenantAnswer },
      202: { description: "genesis, for the recovery key to sign", schema: TenantDraft },
    },
  },
  async ({ request, env, body }) => {
    const idempotency = idempotencyKey(request);
    const first = await seeds(env, idempotency);
    const keys = env.KEY_REGISTRY.getByName(first.tenant);
    const recovery = recoveryOf(body, idempotency);
    if (recovery !== null && recovery.signature === undefined) {
      const draft = await keys.draft(first.tenant, env.LOG_HOST, recovery.key);
      if (draft.ok) return json({ tenant_id: first.tenant, genesis: draft.proposal }, 202);
      // A tenant that was created from this request is answered again, below.
      if (draft.code !== "registry-moved") throw registryProblem(draft);
    }
    const limits = body.limits === undefined ? null : limitsFrom(body.limits);
    // Before anything is made of it: a request that is refused below can be mended in its signature alone.
    if (idempotency !== null) await claimRequest(env, first.tenant, body, limits);
    const signed = recovery === null ? null : { key: recovery.key, signature: recovery.signature ?? "" };
    const registry = await keys.create(first.tenant, env.LOG_HOST, signed);
    if (!registry.ok) throw registryProblem(registry);
    const candidate: TenantRecord = {
      id: first.tenant,
      name: body.name,
      host: env.LOG_HOST,
      registryId: registry.registryId,
      createdAt: new Date().toISOString(),
    };
    const tenant = await env.TENANT_DIRECTORY.getByName(first.tenant).create(candidate, limits);
    // A tenant from before requests were claimed.
    if (tenant.name !== body.name) throw new Problem("idempotency-mismatch");
    await ensurePrincipal(env, tenant, SYSTEM_PRINCIPAL, null);
    await indexTenant(env.DB, tenant, registry.records.slice(0, 1));
    await recordGenesis(env, tenant);
    // Nobody has a key yet: what is limited from the start is on record before it is used.
    if (limits !== null) await recordFirstLimits(env, tenant, limits);
    const options = { name: "first admin key", scopes: SCOPES, principals: ["*"] };
    const text = (await createKeyRecorded(env, tenant, first, options, null)).text;
    return json(
      { tenant: { id: tenant.id, name: tenant.name }, registry_id: tenant.registryId, api_key: text },
      201,
    );
  },
);

/** Binds the tenant-to-be to its request. Throws a 422 problem where another one was first. */
async function claimRequest(
  env: Env,
  id: string,
  { name, recovery_key: key }: z.infer<typeof TenantIn>,
  limits: Limits | null,
): Promise<void> {
  const asked = ["createTenant", name, JSON.stringify(limits), key ?? null];
  const request = fingerprintOf(env.MASTER_KEY, [id], asked, new Uint8Array());
  if (!(await env.TENANT_DIRECTORY.getByName(id).claim(request))) throw new Problem("idempotency-mismatch");
}

/** The recovery key of a new tenant, with its signature once there is one. Throws a 400 problem. */
function recoveryOf(
  { recovery_key: key, recovery_signature: signature }: z.infer<typeof TenantIn>,
  idempotency: string | null,
): { key: string; signature: string | undefined } | null {
  if (key === undefined) {
    if (signature === undefined) return null;
    throw new Problem("invalid-request", { pointer: "/recovery_key", detail: "the signature has no key" });
  }
  if (idempotency === null) {
    const detail = "a tenant with a recovery key takes two requests: send both with one Idempotency-Key";
    throw new Problem("invalid-request", { pointer: "/recovery_key", detail });
  }
  return { key, signature };
}

/** The first entry of the tenant's system log. */
async function recordGenesis(env: Env, tenant: TenantRecord): Promise<void> {
  await appendSystemEntry(env, tenant, {
    id: "registry.0",
    kind: "key.created",
    action: { epoch: 0, record_hash: tenant.registryId },
  });
}

const listKeys = tenantRoute(
  {
    method: "GET",
    path: "/v1/api-keys",
    operation: "listApiKeys",
    tag: "tenants",
    scope: "admin",
    summary: "The tenant's API keys, without their secrets",
    answers: { 200: { description: "the keys", schema: z.object({ api_keys: z.array(ApiKeyOut) }) } },
  },
  async ({ env, caller }) => {
    const keys = await env.TENANT_DIRECTORY.getByName(caller.tenant.id).apiKeys();
    return json({ api_keys: keys.map(keyOut) });
  },
);

const createKey = tenantRoute(
  {
    method: "POST",
    path: "/v1/api-keys",
    operation: "createApiKey",
    tag: "tenants",
    scope: "admin",
    summary: "Create an API key; its text is shown once",
    description: "A key that is kept to some principals makes keys for those alone.",
    body: ApiKeyIn,
    answers: { 201: { description: "the key", schema: ApiKeyCreated } },
  },
  async ({ env, caller, body }) => {
    // A key that is kept to some principals hands out no other ones.
    const beyond = body.principals.findIndex((name) => !mayUsePrincipal(caller, name));
    if (beyond >= 0) {
      throw new Problem("forbidden", {
        pointer: `/principals/${beyond}`,
        detail: "the key may not act on that principal itself",
      });
    }
    const random = crypto.getRandomValues(new Uint8Array(48));
    const parts = { id: random.slice(0, 16), secret: random.slice(16) };
    const { record, text } = await createKeyRecorded(env, caller.tenant, parts, body, caller.key.id);
    return json({ ...keyOut(record), api_key: text }, 201);
  },
);

const revokeKey = tenantRoute(
  {
    method: "DELETE",
    path: "/v1/api-keys/{key}",
    operation: "revokeApiKey",
    tag: "tenants",
    scope: "admin",
    summary: "Revoke an API key: it takes effect everywhere within ten seconds",
    params: z.object({ key: HexId }),
    answers: { 200: { description: "the revoked key", schema: ApiKeyOut } },
  },
  async ({ env, caller, params }) => {
    const directory = env.TENANT_DIRECTORY.getByName(caller.tenant.id);
    const keys = await directory.apiKeys();
    if (!keys.some((key) => key.id === params.key)) throw new Problem("not-found");
    await appendSystemEntry(env, caller.tenant, {
      id: `apikey.revoked.${params.key}`,
      kind: "apikey.revoked",
      action: { key_id: params.key, by: caller.key.id },
    });
    const revoked = await directory.revokeApiKey(params.key, new Date().toISOString());
    if (revoked === null) throw new Problem("not-found");
    forgetKey(revoked.id);
    return json(keyOut(revoked));
  },
);

export const tenantRoutes: readonly Route[] = [createTenant, listKeys, createKey, revokeKey];
