/**
 * From a caller and a principal's name to the log's Durable Object. Every log is reached through its tenant: a name
 * that is another tenant's, absent, or outside the key's principals ends here, with the same answer.
 *
 * @module
 */
import type { PrincipalLog } from "../../durable-objects/principal-log/principal-log.ts";
import type { LogIdentity, Unavailable } from "../../durable-objects/principal-log/types.ts";
import { logObjectName } from "../../durable-objects/principal-log/types.ts";
import type {
  PrincipalRecord,
  TenantRecord,
} from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { newHexId } from "../../shared/entry/log-id.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { hasScope, mayUsePrincipal } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import { tooManyPrincipals } from "../http/rate-limit.ts";
import { currentEpoch } from "./registry.ts";

/** The name of the log that the service itself writes. */
export const SYSTEM_PRINCIPAL = "$system";

export interface OpenLog {
  readonly identity: LogIdentity;
  readonly stub: DurableObjectStub<PrincipalLog>;
  /** Registry epoch that the Worker knows of. */
  readonly epoch: number;
}

/** Principals by tenant and name: an id never changes, and who knows an old generation is told by its log. */
const known = new Map<string, PrincipalRecord>();
const MAX_KNOWN = 10_000;

/**
 * A principal's log by name, which the key may read or write. Throws a 404 problem.
 *
 * @param generation an earlier one than the principal's, where the reader asks for that
 */
export async function openLog(env: Env, caller: Caller, name: string, generation?: number): Promise<OpenLog> {
  if (!mayUsePrincipal(caller, name)) throw new Problem("not-found");
  const principal = await findPrincipal(env, caller.tenant, name, generation);
  if (principal === null) throw new Problem("not-found");
  if (generation === undefined || generation === principal.generation)
    return bind(env, caller.tenant, principal);
  if (generation > principal.generation) throw new Problem("not-found");
  return bindPastLog(env, caller.tenant, { ...principal, generation });
}

/** The same for an append: makes the principal where the key may. Nobody but the service writes to $system. */
export async function openLogForAppend(env: Env, caller: Caller, name: string): Promise<OpenLog> {
  const found = await findLogForAppend(env, caller, name);
  if (found !== null) return found;
  if (!hasScope(caller, "create")) throw new Problem("not-found");
  return bind(env, caller.tenant, (await ensurePrincipal(env, caller.tenant, name, caller.key.id)).principal);
}

/** The log as it is there for an append; null where its principal does not exist yet. */
export async function findLogForAppend(env: Env, caller: Caller, name: string): Promise<OpenLog | null> {
  if (name === SYSTEM_PRINCIPAL)
    throw new Problem("forbidden", { detail: "only the service writes to this log" });
  if (!mayUsePrincipal(caller, name)) throw new Problem("not-found");
  const found = await findPrincipal(env, caller.tenant, name);
  return found === null ? null : bind(env, caller.tenant, found);
}

/** The tenant's system log, made at the tenant's creation. */
export async function openSystemLog(env: Env, tenant: TenantRecord): Promise<OpenLog> {
  return bind(env, tenant, (await ensurePrincipal(env, tenant, SYSTEM_PRINCIPAL, null)).principal);
}

/**
 * Makes the principal, once. Throws a 429 problem where a limit of principals is reached.
 *
 * @param keyId the key that asks; null for the service itself
 */
export async function ensurePrincipal(
  env: Env,
  tenant: TenantRecord,
  name: string,
  keyId: string | null,
): Promise<{ principal: PrincipalRecord; created: boolean }> {
  const candidate = {
    name,
    id: newHexId(crypto.getRandomValues(new Uint8Array(16))),
    generation: 1,
    createdAt: new Date().toISOString(),
  };
  const result = await env.TENANT_DIRECTORY.getByName(tenant.id).ensurePrincipal(candidate, keyId);
  if ("refused" in result) throw tooManyPrincipals(result.refused);
  remember(tenant, result.principal);
  return result;
}

/** The log of a principal that is known by its ids. */
export async function bindLog(env: Env, tenant: TenantRecord, principal: PrincipalRecord): Promise<OpenLog> {
  return bind(env, tenant, principal);
}

/** The same, where it may be a generation of the past: its log answers although it is sealed. */
export async function bindPastLog(
  env: Env,
  tenant: TenantRecord,
  principal: PrincipalRecord,
): Promise<OpenLog> {
  const log = await bind(env, tenant, principal);
  return { ...log, identity: { ...log.identity, past: true } };
}

/** @param generation where it is asked for one, what is known of the principal has to reach it */
async function findPrincipal(
  env: Env,
  tenant: TenantRecord,
  name: string,
  generation = 0,
): Promise<PrincipalRecord | null> {
  const cached = known.get(`${tenant.id}/${name}`);
  if (cached !== undefined && generation <= cached.generation) return cached;
  const principal = await env.TENANT_DIRECTORY.getByName(tenant.id).principal(name);
  if (principal !== null) remember(tenant, principal);
  return principal;
}

/** Forgets a principal in this isolate: its generation has moved on. */
export function forgetPrincipal(tenant: string, name: string): void {
  known.delete(`${tenant}/${name}`);
}

function remember(tenant: TenantRecord, principal: PrincipalRecord): void {
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(`${tenant.id}/${principal.name}`, principal);
}

async function bind(env: Env, tenant: TenantRecord, principal: PrincipalRecord): Promise<OpenLog> {
  const identity: LogIdentity = {
    host: tenant.host,
    tenant: tenant.id,
    principal: principal.id,
    generation: principal.generation,
    name: principal.name,
    registryId: tenant.registryId,
  };
  const epoch = await currentEpoch(env, tenant.id);
  return { identity, epoch, stub: env.PRINCIPAL_LOG.getByName(logObjectName(identity)) };
}

/** Turns a log's refusal into the problem that the caller sees. */
export function refusal({ code, detail, retryAfter, moved }: Unavailable): Problem {
  // Its principal has another generation by now: the next request looks it up.
  if (moved !== undefined) forgetPrincipal(moved.tenant, moved.name);
  return new Problem(code, retryAfter === 0 ? { detail } : { detail, retryAfter });
}
