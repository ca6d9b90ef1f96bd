/**
 * The stored specs of the tools that a run used.
 *
 * @module
 */
import type { Env } from "../env.ts";

/** Canonical texts by hash; a spec that is not stored is not among them. Whoever uses one hashes it again. */
export async function readSpecs(
  env: Env,
  tenant: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (hashes.length === 0) return new Map();
  const { results } = await env.DB.prepare(
    "SELECT hash, spec FROM tool_specs WHERE tenant = ?1 AND hash IN (SELECT value FROM json_each(?2))",
  )
    .bind(tenant, JSON.stringify(hashes))
    .all<{ hash: string; spec: string }>();
  return new Map(results.map(({ hash, spec }) => [hash, spec]));
}
