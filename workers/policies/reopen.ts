/**
 * Opens a policy that was opened before: the same one, or none. A stored version is known by the hash that was settled on
 * then; whether D1 or R2 has the content of that hash makes no difference.
 *
 * @module
 */
import { JsonReader } from "../../shared/json/reader.ts";
import { readPolicy } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { logEvent } from "../log-event.ts";
import { beginRebuild } from "../logs/read.ts";
import { policyKey, readCopy } from "./copy.ts";
import { type OpenedPolicy, openPolicy, openVersion } from "./engine.ts";
import { readVersion, type StoredPolicy, type VersionName } from "./store.ts";

/** A policy that was opened before, as whoever goes on with it keeps it. */
export interface SettledPolicy {
  readonly reference: string;
  readonly policyId: string;
  readonly hash: string | null;
}

/**
 * Opens the same policy again, and no other: a version whose content is not the settled one any more in D1, or that D1
 * lost, comes from R2. Throws what `openPolicy` does, but no 404: a version that neither has is a 503.
 */
export async function reopenPolicy(
  env: Env,
  tenant: string,
  { reference, policyId, hash }: SettledPolicy,
): Promise<OpenedPolicy> {
  const asked = readPolicy(new JsonReader(reference));
  const version = asked.kind === "stored" ? asked.version : null;
  const opened =
    asked.kind === "stored" && version !== null
      ? await openVersion(env, tenant, await settledVersion(env, tenant, { name: asked.name, version }, hash))
      : await openPolicy(env, tenant, asked);
  if (opened.hash === hash && opened.policy.id === policyId) return opened;
  opened.close();
  throw new Problem("index-conflict", { detail: "what is stored is not the policy that was settled on" });
}

/** The version with the content of this hash, from D1 or R2. Nothing is removed: one that D1 lacks was lost there. */
async function settledVersion(
  env: Env,
  tenant: string,
  version: VersionName,
  hash: string | null,
): Promise<StoredPolicy> {
  const row = await rowOf(env, tenant, version);
  if (row !== null && row !== "altered" && row.hash === hash) return row;
  if (row !== null) logEvent("row-altered", { tenant, key: policyKey(version) });
  const copy = await readCopy(env, tenant, version);
  const found = copy !== null && copy !== "altered" && copy.hash === hash ? copy : null;
  if (row === null && found !== null) await beginRebuild(env, tenant);
  if (found !== null) return found;
  throw row === null
    ? new Problem("index-rebuilding", { retryAfter: 1, detail: "the policy's version is not there yet" })
    : new Problem("index-conflict", { detail: "what is stored is not the policy that was settled on" });
}

async function rowOf(
  env: Env,
  tenant: string,
  { name, version }: VersionName,
): Promise<StoredPolicy | "altered" | null> {
  try {
    return await readVersion(env.DB, tenant, name, version);
  } catch (error) {
    if (error instanceof Problem && error.code === "index-conflict") return "altered";
    throw error;
  }
}
