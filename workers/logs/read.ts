/**
 * Reads what a log acknowledged, and never less: before a query the log makes D1 hold everything, and after it D1's
 * own row of the log must say so. A D1 that is behind is a 503, never an empty page.
 *
 * @module
 */
import type { LogIdentity } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromBase64, fromHex, toHex } from "../../shared/bytes.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { computeLogId } from "../../shared/entry/log-id.ts";
import { entryText } from "../../shared/entry/output.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import type { EntryRow } from "../index-db/entries.ts";
import type { OpenLog } from "./open-log.ts";
import { bindPastLog, refusal } from "./open-log.ts";
import { rebuildStep } from "./rebuild.ts";

const REBUILDING = {
  retryAfter: 1,
  detail: "the index does not hold everything that the log acknowledged yet",
};

/** The log's id, hex, as D1 knows it. */
export function logIdOf(log: {
  readonly identity: Pick<LogIdentity, "registryId" | "principal" | "generation">;
}): string {
  const { registryId, principal, generation } = log.identity;
  return toHex(computeLogId(nativeCrypto, fromHex(registryId, 32), principal, generation));
}

/** A session on D1 that reads from the primary: what was just flushed is there. */
export function indexSession(env: Env): D1DatabaseSession {
  return env.DB.withSession("first-primary");
}

/** Makes D1 hold the log's acknowledged entries; answers their number. Throws 503 `index-rebuilding`. */
export async function barrier(log: OpenLog): Promise<number> {
  const outcome = await log.stub.barrier(log.identity, log.epoch);
  if (outcome.ok) return outcome.size;
  if (outcome.code === "index-unavailable") throw new Problem("index-rebuilding", REBUILDING);
  throw refusal(outcome);
}

/** Checks that D1 held, when it answered, what the barrier promised. Throws 503 and has D1 filled again. */
export async function requireIndexed(log: OpenLog, indexed: number, promised: number): Promise<void> {
  if (indexed >= promised) return;
  await log.stub.reindex(log.identity, log.epoch);
  throw new Problem("index-rebuilding", REBUILDING);
}

/** What D1 must be found to hold of some logs, by log id: a page that was read while it did not is short. */
export type TenantPromise = ReadonlyMap<string, number>;

/**
 * Goes on with a rebuild of the tenant's index where one runs. Throws 503 `index-rebuilding` until it is through: policies
 * and tool specs may be missing up to then.
 *
 * @returns false where one ran, and is through now: what was read of D1 before may be short
 */
export async function requireRebuilt(env: Env, tenantId: string): Promise<boolean> {
  const directory = env.TENANT_DIRECTORY.getByName(tenantId);
  if (!(await directory.indexView()).rebuilding) return true;
  const tenant = await directory.tenant();
  if (tenant !== null && !(await rebuildStep(env, tenant)).done)
    throw new Problem("index-rebuilding", REBUILDING);
  return false;
}

/** Has D1 filled again, unless that is under way: it was found to lack what it once had. */
export async function beginRebuild(env: Env, tenantId: string): Promise<void> {
  const directory = env.TENANT_DIRECTORY.getByName(tenantId);
  if (!(await directory.indexView()).rebuilding) await directory.startRebuild();
}

/**
 * Makes D1 hold the acknowledged entries of every log of the tenant. Throws 503 `index-rebuilding`, and goes on with a
 * rebuild of the tenant's index where one runs.
 *
 * @returns what `requireTenantIndexed` is to find
 */
export async function tenantBarrier(env: Env, caller: Caller): Promise<TenantPromise> {
  const { tenant } = caller;
  const view = await env.TENANT_DIRECTORY.getByName(tenant.id).indexView();
  if (view.rebuilding && !(await rebuildStep(env, tenant)).done)
    throw new Problem("index-rebuilding", REBUILDING);
  const promised = new Map<string, number>();
  // Six subrequests at a time are what a Worker gets anyway.
  for (let i = 0; i < view.dirty.length; i += 6) {
    await Promise.all(
      view.dirty.slice(i, i + 6).map(async ({ name, principal, generation }) => {
        const log = await bindPastLog(env, tenant, { name, id: principal, generation, createdAt: "" });
        promised.set(logIdOf(log), await barrier(log));
      }),
    );
  }
  const { witness } = view;
  if (witness !== null) {
    const { registryId } = tenant;
    const logId = logIdOf({ identity: { registryId, ...witness } });
    promised.set(logId, Math.max(promised.get(logId) ?? 0, witness.seq));
  }
  return promised;
}

/** Checks that D1 held, when it answered, what the barrier promised. Throws 503 and has D1 filled again. */
export async function requireTenantIndexed(
  env: Env,
  caller: Caller,
  promised: TenantPromise,
  indexed: ReadonlyMap<string, number>,
): Promise<void> {
  if ([...promised].every(([logId, seq]) => (indexed.get(logId) ?? 0) >= seq)) return;
  await env.TENANT_DIRECTORY.getByName(caller.tenant.id).startRebuild();
  await rebuildStep(env, caller.tenant);
  throw new Problem("index-rebuilding", REBUILDING);
}

/** The API's JSON text of a row. */
export function rowText(row: EntryRow, extra: Readonly<Record<string, string>> = {}): string {
  const leaf = decodeLeaf(fromBase64(row.leaf));
  return entryText({ seq: row.seq, hash: row.hash, leaf: row.leaf, content: row.content }, leaf, extra);
}
