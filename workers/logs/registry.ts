/**
 * A tenant's registry records as an isolate knows them: read at most once a minute, so that no append waits for the
 * registry (design section 4).
 *
 * @module
 */
import type { RegistryState } from "../../durable-objects/key-registry/key-registry.ts";
import { signedRecordOf } from "../../durable-objects/key-registry/key-registry.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { RegistryChain } from "../../shared/registry/chain.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";

const CACHE_MS = 60_000;
const MAX_CACHED = 1000;

interface Cached {
  readonly state: RegistryState;
  readonly chain: RegistryChain;
  readonly until: number;
}

const cache = new Map<string, Cached>();

async function load(env: Env, tenant: string): Promise<Cached> {
  const cached = cache.get(tenant);
  if (cached !== undefined && cached.until > Date.now()) return cached;
  let state: RegistryState;
  try {
    state = await env.KEY_REGISTRY.getByName(tenant).state();
  } catch {
    // What was true a minute ago serves better than no answer: a rotation takes effect later than that anyway.
    if (cached !== undefined) return cached;
    throw new Problem("registry-unavailable", { retryAfter: 1 });
  }
  const chain = new RegistryChain(nativeCrypto);
  for (const record of state.records) chain.add(signedRecordOf(record));
  const entry: Cached = { state, chain, until: Date.now() + CACHE_MS };
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(tenant, entry);
  return entry;
}

/** The published records and their head. Throws a 503 problem. */
export async function registryState(env: Env, tenant: string): Promise<RegistryState> {
  return (await load(env, tenant)).state;
}

/** The same, verified. */
export async function registryChain(env: Env, tenant: string): Promise<RegistryChain> {
  return (await load(env, tenant)).chain;
}
