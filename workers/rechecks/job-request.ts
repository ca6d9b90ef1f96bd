/**
 * From what a caller asks for to what a job is started with: its id, its principals, and its policy at the version that
 * holds now.
 *
 * @module
 */
import type { JobPolicy, JobRequest, JobSelection } from "../../durable-objects/recheck-job/types.ts";
import type { PrincipalRecord } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals, mayUsePrincipal } from "../http/auth.ts";
import { fingerprintOf } from "../http/fingerprint.ts";
import { Problem } from "../http/problem.ts";
import type { OpenedPolicy } from "../policies/engine.ts";
import { openPolicy } from "../policies/engine.ts";
import type { JobBody } from "./read-request.ts";

/** The job's id, derived from the Idempotency-Key where there is one, and what the request is known by. */
export function jobId(
  masterKey: string,
  caller: Caller,
  key: string | null,
  body: Uint8Array,
): { readonly id: string; readonly fingerprint: string } {
  // A job of before 2026-11 keeps a hash without a secret: its key answers 422 from then on, and starts nothing twice.
  const fingerprint = fingerprintOf(masterKey, [caller.tenant.id], ["createRecheck"], body);
  if (key === null) return { id: newJobId(), fingerprint };
  const text = JSON.stringify(["createRecheck", caller.tenant.id, caller.key.id, key]);
  return { id: toHex(nativeCrypto.sha256(utf8(text))).slice(0, 32), fingerprint };
}

export function newJobId(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(16)));
}

/** The names that the key may use; null for every one. */
export function keyPrincipals(caller: Caller): readonly string[] | null {
  return mayUseAllPrincipals(caller) ? null : caller.key.principals;
}

/** Throws 404 for a principal that is not there, or not the key's; and what opening the policy throws. */
export async function jobRequest(
  env: Env,
  caller: Caller,
  { asked, selection, since, until, budget }: JobBody,
  { id, fingerprint }: { readonly id: string; readonly fingerprint: string },
): Promise<JobRequest> {
  if (asked.policy.kind === "decisions") {
    const detail = "decisions answer for one run: re-check them there";
    throw new Problem("invalid-policy", { pointer: "/policy/decisions", detail });
  }
  const { principals, tool = null, policy_id: policyId = null, newest = null } = selection;
  const chosen: JobSelection = {
    principals: principals === undefined ? null : await findPrincipals(env, caller, principals),
    since,
    until,
    tool,
    policyId,
    newest,
    run: null,
  };
  const opened = await openPolicy(env, caller.tenant.id, asked.policy);
  opened.close();
  return {
    id,
    tenant: caller.tenant,
    by: caller.key.id,
    keyPrincipals: keyPrincipals(caller),
    fingerprint,
    selection: chosen,
    budget,
    policy: jobPolicy(opened, asked),
    createdAt: new Date().toISOString(),
  };
}

/** The policy as a job keeps it. */
export function jobPolicy(
  { policy, engine, stored, hash, reference }: OpenedPolicy,
  asked: Pick<JobBody["asked"], "specSource" | "currentTools">,
): JobPolicy {
  return {
    reference: reference ?? "",
    policyId: policy.id,
    engine,
    hash,
    name: stored?.name ?? null,
    version: stored?.version ?? null,
    specSource: asked.specSource,
    currentTools: asked.currentTools ?? null,
  };
}

/** In the order of their names, each once. */
async function findPrincipals(
  env: Env,
  caller: Caller,
  names: readonly string[],
): Promise<PrincipalRecord[]> {
  const directory = env.TENANT_DIRECTORY.getByName(caller.tenant.id);
  const found = new Map<string, PrincipalRecord>();
  for (const [index, name] of names.entries()) {
    const principal = mayUsePrincipal(caller, name) ? await directory.principal(name) : null;
    if (principal === null) throw new Problem("not-found", { pointer: `/selection/principals/${index}` });
    found.set(name, principal);
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
