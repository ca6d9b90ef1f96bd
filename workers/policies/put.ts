/**
 * Storing a version of a policy. The order is: the version is taken in D1, unseen; the `policy.stored` entry is made
 * durable on the tenant's `$system` log; the version is put into R2; it is shown. A crash between leaves a version that
 * nobody sees, which the next request with the same content finishes.
 *
 * What the log records is what counts: before a number is given out, it is asked whether it has the content already, and
 * which number is its last. D1 may have lost either.
 *
 * @module
 */
import type { TenantRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import type { PolicyDocument } from "../../shared/recheck/policy-document.ts";
import { documentHash, documentText } from "../../shared/recheck/policy-document.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { indexSession, requireRebuilt } from "../logs/read.ts";
import { appendSystemEntry } from "../logs/system-log.ts";
import { keepCopy } from "./copy.ts";
import { openDocument } from "./engine.ts";
import { isInIndex, recordId, recordOfContent } from "./recorded.ts";
import { samePolicy } from "./shown.ts";
import type { PolicyVersion, StoredPolicy } from "./store.ts";
import { findByHash, highestVersion, markStored, release, reserve } from "./store.ts";
import { showRecorded } from "./take-back.ts";

/** How often it is looked again, where somebody else took the number, or D1 changed meanwhile. */
const MAX_ATTEMPTS = 64;

const CONTRADICTED = "D1 has another content of this version's entry than the system log";

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
  const content = {
    name,
    engine: document.engine,
    policyId,
    hash: documentHash(nativeCrypto, document),
    source: documentText(document),
  };
  const db = indexSession(env);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const there = await findByHash(db, tenant.id, name, content.hash, wanted);
    if (there?.shown === true && (wanted === null || wanted === there.version)) {
      if (samePolicy(there, { ...there, ...content }) && (await isInIndex(db, tenant.id, there))) {
        // R2 has nothing of a version that was stored before it held any.
        await keepCopy(env, tenant.id, there);
        return { policy: there, created: false };
      }
    }
    const record = await recordOfContent(env, tenant, content);
    // After the look-up: whoever begins to fill D1 again has said so before D1 holds part of it.
    if (!(await requireRebuilt(env, tenant.id))) continue;
    const [first] = record.versions;
    const recorded = wanted !== null && record.versions.includes(wanted) ? wanted : first;
    const version =
      recorded ?? there?.version ?? Math.max(record.highest, await highestVersion(db, tenant.id, name)) + 1;
    if (wanted !== null && wanted !== version) throw new Problem("policy-exists", { pointer: "?version" });
    const createdAt = there?.version === version ? there.createdAt : new Date().toISOString();
    const policy: StoredPolicy = { ...content, version, createdAt };
    const isNew = recorded === undefined;
    if (isNew && there === null && !(await reserve(db, tenant.id, policy))) continue;
    // Also where D1 says that it is recorded: the log has the last word, and has the entry once.
    const differs = await appendSystemEntry(env, tenant, {
      id: recordId(policy),
      kind: "policy.stored",
      action: { name, version, type: document.engine, hash: content.hash, by },
    });
    if (differs.includes("/action/hash")) {
      if (!isNew) throw new Problem("index-conflict", { detail: CONTRADICTED, retryAfter: 60 });
      // Somebody recorded another content under this number since the look-up: it stays that one's.
      await release(db, tenant.id, policy);
      continue;
    }
    // After the entry: until then the number may turn out to be another content's.
    const stored = { ...policy, createdAt: await keepCopy(env, tenant.id, policy) };
    if (!isNew) return { policy: stored, created: await showRecorded(db, tenant.id, stored) };
    if (await markStored(db, tenant.id, stored)) return { policy: stored, created: true };
  }
  throw new Problem("unavailable", { detail: "the policy's next version could not be found", retryAfter: 1 });
}
