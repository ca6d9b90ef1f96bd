/**
 * A tenant's registry records as an isolate knows them: read at most once a minute, so that no append waits for the
 * registry.
 *
 * @module
 */
import type { RegistryState } from "../../durable-objects/key-registry/types.ts";
import { epochInEffect, signedRecordOf } from "../../durable-objects/key-registry/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RegistryChain } from "../../shared/registry/chain.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { logEvent } from "../log-event.ts";

const CACHE_MS = 60_000;
const MAX_CACHED = 1000;

interface Cached {
  readonly state: RegistryState;
  readonly chain: RegistryChain;
  readonly readAt: number;
}

const cache = new Map<string, Cached>();

/** What the answer must be good for. */
export interface Freshness {
  /** An epoch that it must know, where there is one: a log that is ahead of this isolate names it. */
  readonly epoch?: number;
  /** Milliseconds that it may be old. */
  readonly maxAgeMs?: number;
}

async function load(env: Env, tenant: string, freshness: Freshness): Promise<Cached> {
  const cached = cache.get(tenant);
  const age = cached === undefined ? Number.POSITIVE_INFINITY : Date.now() - cached.readAt;
  const knows = cached !== undefined && cached.chain.epoch >= (freshness.epoch ?? 0);
  if (cached !== undefined && knows && age < (freshness.maxAgeMs ?? CACHE_MS)) return cached;
  let state: RegistryState;
  try {
    state = await env.KEY_REGISTRY.getByName(tenant).state();
  } catch {
    // What was true a minute ago serves better than no answer: a rotation takes effect later than that anyway.
    if (cached !== undefined && knows) return cached;
    throw new Problem("registry-unavailable", { retryAfter: 1 });
  }
  const chain = new RegistryChain(nativeCrypto);
  try {
    for (const record of state.records) chain.add(signedRecordOf(record));
  } catch (error) {
    logEvent("registry-broken", { tenant, code: error instanceof RunsealError ? error.code : "" });
    throw new Problem("registry-unavailable", { retryAfter: 1 });
  }
  const entry: Cached = { state, chain, readAt: Date.now() };
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(tenant, entry);
  return entry;
}

/** Forgets the tenant's registry in this isolate: it was changed from here. */
export function forgetRegistry(tenant: string): void {
  cache.delete(tenant);
}

/** The published records, those included that are not in effect yet. Throws a 503 problem. */
export async function registryState(
  env: Env,
  tenant: string,
  freshness: Freshness = {},
): Promise<RegistryState> {
  return (await load(env, tenant, freshness)).state;
}

/** The same, verified. */
export async function registryChain(
  env: Env,
  tenant: string,
  freshness: Freshness = {},
): Promise<RegistryChain> {
  return (await load(env, tenant, freshness)).chain;
}

/** The epoch that appends carry now. */
export async function currentEpoch(env: Env, tenant: string): Promise<number> {
  return epochInEffect((await load(env, tenant, {})).state.records, Date.now());
}
