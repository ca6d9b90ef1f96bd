/**
 * From a caller and an id to a re-check job. Another tenant's job, one over principals that the key may not use, and none
 * at all look the same.
 *
 * @module
 */
import type { RecheckJob } from "../../durable-objects/recheck-job/recheck-job.ts";
import type { JobView } from "../../durable-objects/recheck-job/types.ts";
import { jobObjectName } from "../../durable-objects/recheck-job/types.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals, mayUsePrincipal } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";

/** Whether the key may use everything that a job over these principals reads; null stands for every principal. */
export function maySee(caller: Caller, principals: readonly string[] | null): boolean {
  if (principals === null) return mayUseAllPrincipals(caller);
  return principals.every((name) => mayUsePrincipal(caller, name));
}

/** The job as it stands. Throws a 404 problem. */
export async function findJob(
  env: Env,
  caller: Caller,
  id: string,
): Promise<{ readonly stub: DurableObjectStub<RecheckJob>; readonly view: JobView }> {
  const stub = env.RECHECK_JOB.getByName(jobObjectName(caller.tenant.id, id));
  const view = await stub.view();
  if (view === null || !maySee(caller, view.keyPrincipals)) throw new Problem("not-found");
  return { stub, view };
}
