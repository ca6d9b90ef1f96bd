/**
 * The operator's recovery of a stopped log: its generation is sealed, and the principal goes on with the next one, whose
 * first entry names both heads of the old one. Every step may be done again, and changes nothing then: who is cut off in
 * the middle calls again.
 *
 * @module
 */
import { headRef } from "../../durable-objects/principal-log/recovery.ts";
import type { SealRecord, StopRecord } from "../../durable-objects/principal-log/stop-store.ts";
import type {
  PrincipalRecord,
  TenantRecord,
} from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "./open-log.ts";
import { bindLog, bindPastLog, forgetPrincipal, refusal } from "./open-log.ts";
import { logIdOf } from "./read.ts";
import { appendSystemEntry, recordServiceEntry } from "./system-log.ts";

export interface Recovered {
  readonly principal: PrincipalRecord;
  readonly sealed: OpenLog;
  readonly seal: SealRecord;
  readonly next: OpenLog;
  /** The entry that begins the next generation. */
  readonly first: { readonly seq: number; readonly hash: string };
}

/** A tenant's principal by name, and one of its generations. Throws a 404 problem. */
export async function openGeneration(
  env: Env,
  tenantId: string,
  name: string,
  generation: number | undefined,
): Promise<{ tenant: TenantRecord; principal: PrincipalRecord; log: OpenLog }> {
  const directory = env.TENANT_DIRECTORY.getByName(tenantId);
  const tenant = await directory.tenant();
  const principal = tenant === null ? null : await directory.principal(name);
  if (tenant === null || principal === null) throw new Problem("not-found");
  const which = generation ?? principal.generation;
  if (which > principal.generation) throw new Problem("not-found");
  return { tenant, principal, log: await bindPastLog(env, tenant, { ...principal, generation: which }) };
}

/**
 * Recovers a stopped log.
 *
 * @param generation the one that is stopped
 * @throws a 409 problem `log-not-stopped`, and 503 problems: then the call is to be made again
 */
export async function recoverLog(
  env: Env,
  tenantId: string,
  name: string,
  generation: number,
  reason: string,
): Promise<Recovered> {
  const { tenant, principal, log } = await openGeneration(env, tenantId, name, generation);
  const sealed = await log.stub.seal(log.identity, log.epoch, reason);
  if (!sealed.ok) {
    if (sealed.code !== "log-not-stopped") throw refusal(sealed);
    throw new Problem("log-not-stopped", { detail: "the log runs: nothing of it was changed" });
  }
  const { seal } = sealed;
  // Before anybody else can reach it: so it is the first entry.
  const next = await bindLog(env, tenant, { ...principal, generation: generation + 1 });
  const first = await recordServiceEntry(next, {
    id: `log.recovered.${logIdOf(log)}`,
    kind: "log.recovered",
    action: {
      ...namesOf(next),
      previous_log_id: logIdOf(log),
      ...headsOf(seal),
      by: "operator",
      reason: seal.reason,
    },
  });
  if (first.status !== "stored" && first.status !== "seen") throw new Problem("internal");
  const moved = await env.TENANT_DIRECTORY.getByName(tenant.id).moveGeneration(name, generation);
  forgetPrincipal(tenant.id, name);
  if (moved === null) throw new Problem("not-found");
  await appendSystemEntry(env, tenant, {
    id: `log.sealed.${logIdOf(log)}`,
    kind: "log.sealed",
    action: {
      ...namesOf(log),
      ...(seal.stored === null ? {} : { head: headRef(seal.stored) }),
      by: "operator",
      reason: seal.reason,
    },
  });
  return { principal: moved, sealed: log, seal, next, first: { seq: first.seq, hash: first.hash } };
}

function namesOf(log: OpenLog): { log_id: string; principal_id: string; generation: number } {
  const { principal, generation } = log.identity;
  return { log_id: logIdOf(log), principal_id: principal, generation };
}

function headsOf({ stored, mirrored }: StopRecord): Record<string, unknown> {
  return {
    ...(stored === null ? {} : { stored_head: headRef(stored) }),
    ...(mirrored === null ? {} : { mirrored_head: headRef(mirrored) }),
  };
}
