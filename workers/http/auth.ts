/**
 * Who is asking: the operator by token, or a tenant by API key. Denies by default; unknown, wrong and revoked
 * credentials get the same answer.
 *
 * @module
 */
import type { CallerLimits } from "../../durable-objects/tenant-directory/limits.ts";
import type { ApiKeyRecord, TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { isScope, type Scope } from "../../shared/api/scopes.ts";
import { API_KEY_CHARS, parseApiKey } from "../../shared/api-key.ts";
import { equalSecret, toHex, utf8 } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import { Problem } from "./problem.ts";

/** A tenant's key at work. */
export interface Caller {
  readonly tenant: TenantRecord;
  readonly key: ApiKeyRecord;
  /** Null where neither the tenant nor the key has any. */
  readonly limits?: CallerLimits | null;
}

/** How long an isolate believes that a key is still valid: a revocation takes effect everywhere within it. */
export const KEY_CACHE_MS = 10_000;
const MAX_CACHED_KEYS = 1000;

interface Cached {
  readonly caller: Caller;
  readonly until: number;
}

/** By SHA-256 of the whole key: a key that is cached was right. */
const cache = new Map<string, Cached>();

/** Forgets a key in this isolate, at once. */
export function forgetKey(keyId: string): void {
  for (const [hash, { caller }] of cache) if (caller.key.id === keyId) cache.delete(hash);
}

function bearer(request: Request): string | null {
  const match = /^Bearer +([^\s]+)$/i.exec(request.headers.get("authorization") ?? "");
  return match?.[1] ?? null;
}

/** Demands the operator's token. Throws a 401 problem. */
export function requireOperator(request: Request, env: Env): void {
  const token = bearer(request);
  const expected = env.RUNSEAL_OPERATOR_TOKEN;
  // Both are hashed, so that neither the comparison's time nor its result tells the token's length.
  const matches = equalSecret(
    nativeCrypto.sha256(utf8(token ?? "")),
    nativeCrypto.sha256(utf8(expected ?? "")),
  );
  if (token === null || !expected || !matches) throw new Problem("unauthenticated");
}

/** The caller behind the request's API key. Throws a 401 problem, or 503 where the directory is away. */
export async function authenticate(request: Request, env: Env): Promise<Caller> {
  const text = bearer(request);
  if (text === null || text.length > API_KEY_CHARS) throw new Problem("unauthenticated");
  const cacheKey = toHex(nativeCrypto.sha256(utf8(text)));
  const now = Date.now();
  const cached = cache.get(cacheKey);
  if (cached !== undefined && cached.until > now) return cached.caller;
  const parts = parseApiKey(text);
  if (parts === null) throw new Problem("unauthenticated");
  let found: Caller | null;
  try {
    const directory = env.TENANT_DIRECTORY.getByName(parts.tenant);
    found = await directory.authenticate(parts.id, toHex(nativeCrypto.sha256(parts.secret)));
  } catch {
    throw new Problem("unavailable", { detail: "the key could not be checked", retryAfter: 1 });
  }
  if (found === null) throw new Problem("unauthenticated");
  if (cache.size >= MAX_CACHED_KEYS) cache.clear();
  cache.set(cacheKey, { caller: found, until: now + KEY_CACHE_MS });
  return found;
}

/** Demands a scope. Throws a 403 problem that names it. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!hasScope(caller, scope))
    throw new Problem("forbidden", { detail: `the key lacks the scope ${scope}` });
}

export function hasScope(caller: Caller, scope: Scope): boolean {
  return caller.key.scopes.some((held) => isScope(held) && held === scope);
}

/** Whether the key may act on the principal of this name. */
export function mayUsePrincipal(caller: Caller, name: string): boolean {
  return caller.key.principals.includes("*") || caller.key.principals.includes(name);
}

/** Whether the key may act on every principal of the tenant. */
export function mayUseAllPrincipals(caller: Caller): boolean {
  return caller.key.principals.includes("*");
}
