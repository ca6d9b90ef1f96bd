/**
 * Storing a version of a policy. The order is: the version is taken in D1, unseen; the `policy.stored` entry is made
 * durable on the tenant's `$system` log; the version is put into R2; it is shown. A crash between leaves a version that
 * nobody sees, which the next request with the same content finishes.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import type { PolicyDocument } from "../../shared/recheck/policy-document.ts";
import { documentHash, documentText } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { indexSession } from "../logs/read.ts";
import { appendSystemEntry } from "../logs/system-log.ts";
import { keepCopy } from "./copy.ts";
import { openDocument } from "./engine.ts";
import { recordId } from "./recorded.ts";
import type { PolicyVersion, StoredPolicy } from "./store.ts";
import { findByHash, highestVersion, markStored, release, reserve } from "./store.ts";
import { takeBack } from "./take-back.ts";

/** How often a number that somebody else took, or that the log knows already, is passed over. */
const MAX_ATTEMPTS = 64;

export interface PutPolicy {
  readonly name: string;
  readonly document: PolicyDocument;
  /** The version that it has to become; null for the next one. */
  readonly version: number | null;
  /** The API key that asks. */
  readonly by: string;
}

/**
 * Stores the policy, once for each content. Throws 422 `invalid-policy`, 409 `policy-exists` where `version` is neither
 * the next one nor the one that has this content, and 503 problems.
 */
export async function putPolicy(
  env: Env,
  tenant: TenantRecord,
  { name, document, version: wanted, by }: PutPolicy,
): Promise<{ readonly policy: PolicyVersion; readonly created: boolean }> {
  const opened = await openDocument(env, tenant.id, document);
  const policyId = opened.policy.id;
  opened.close();
  const source = documentText(document);
  const hash = documentHash(nativeCrypto, document);
  const db = indexSession(env);
  let least = 1;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const there = await findByHash(db, tenant.id, name, hash);
    const version = there?.version ?? Math.max(least, (await highestVersion(db, tenant.id, name)) + 1);
    if (wanted !== null && wanted !== version) throw new Problem("policy-exists", { pointer: "?version" });
    if (there?.stored === true) {
      // R2 has nothing of a version that was stored before it held any.
      await keepCopy(env, tenant.id, { ...there, source });
      return { policy: there, created: false };
    }
    const createdAt = there?.createdAt ?? new Date().toISOString();
    const policy: StoredPolicy = {
      name,
      version,
      engine: document.engine,
      policyId,
      hash,
      createdAt,
      source,
    };
    if (there === null && !(await reserve(db, tenant.id, policy))) continue;
    const differs = await appendSystemEntry(env, tenant, {
      id: recordId(policy),
      kind: "policy.stored",
      action: { name, version, type: document.engine, hash, by },
    });
    if (differs.includes("/action/hash")) {
      // D1 lost this version: the log knows another content under its number, which stays that one's.
      await release(db, tenant.id, name, version);
      await takeBack(env, tenant, [policy]);
      least = version + 1;
      continue;
    }
    // After the entry: until then the number may turn out to be another content's.
    const stored = { ...policy, createdAt: await keepCopy(env, tenant.id, policy) };
    if (await markStored(db, tenant.id, stored)) return { policy: stored, created: true };
  }
  throw new Problem("unavailable", { detail: "the policy's next version could not be found", retryAfter: 1 });
}
