/**
 * Fixing a job's bounds: for each log of the selection its head, and how many runs of the selection are up to it. What
 * is fixed does not move again, so that a job is repeatable and an append after it changes nothing.
 *
 * @module
 */
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import { failedLine } from "../../shared/recheck/summary-line.ts";
import type { Env } from "../../workers/env.ts";
import { Problem } from "../../workers/http/problem.ts";
import { countRuns, newestRuns, type RunBounds } from "../../workers/index-db/runs.ts";
import { bindLog, refusal, SYSTEM_PRINCIPAL } from "../../workers/logs/open-log.ts";
import { barrier, indexSession, logIdOf, requireIndexed } from "../../workers/logs/read.ts";
import type { PrincipalRecord } from "../tenant-directory/tenant-directory.ts";
import { codeOf, MAX_TRIES } from "./failures.ts";
import type { JobStorage, PickedRun } from "./storage.ts";
import type { JobLog, JobRequest } from "./types.ts";

/** Logs of one job. */
export const MAX_JOB_LOGS = 5_000;
const PAGE = 100;

/** The runs of a log that the selection has, up to its head. */
export function boundsOf({ selection }: JobRequest, log: Pick<JobLog, "head">): RunBounds {
  return { size: log.head.size, since: selection.since, until: selection.until };
}

/** The principals after one, by name; none at the end. */
export async function nextPrincipals(
  env: Env,
  { selection, tenant, keyPrincipals, createdAt }: JobRequest,
  after: string,
): Promise<{ readonly found: readonly PrincipalRecord[]; readonly last: string | null }> {
  if (selection.principals !== null) {
    return { found: selection.principals.filter(({ name }) => name > after), last: null };
  }
  const page = await env.TENANT_DIRECTORY.getByName(tenant.id).principals(after, PAGE);
  const found = page.filter(
    (principal) =>
      principal.name !== SYSTEM_PRINCIPAL &&
      principal.createdAt <= createdAt &&
      (keyPrincipals === null || keyPrincipals.includes(principal.name)),
  );
  return { found, last: page.length < PAGE ? null : (page.at(-1)?.name ?? null) };
}

/** Fixes one log; null where the selection has no run of it. Throws 503 problems. */
export async function fixLog(
  env: Env,
  request: JobRequest,
  principal: PrincipalRecord,
): Promise<{ readonly log: JobLog; readonly picked: readonly PickedRun[] } | null> {
  const open = await bindLog(env, request.tenant, principal);
  const outcome = await open.stub.head(open.identity, open.epoch);
  if (!outcome.ok) throw refusal(outcome);
  const { size, hash, root, epoch, key, checkpoint } = outcome.head;
  if (size === 0) return null;
  await barrier(open);
  const logId = logIdOf(open);
  const head = { size, hash, root, epoch, key, checkpoint };
  const bounds = boundsOf(request, { head });
  const { newest } = request.selection;
  let picked: readonly PickedRun[] = [];
  let runs: number;
  let indexed: number;
  if (newest === null) {
    ({ found: runs, indexed } = await countRuns(indexSession(env), logId, bounds));
  } else {
    ({ found: picked, indexed } = await newestRuns(indexSession(env), logId, bounds, newest));
    runs = picked.length;
  }
  await requireIndexed(open, indexed, size);
  return runs === 0 ? null : { log: { principal, logId, head, runs }, picked };
}

/** Whether the log itself is what stands in the way: an operator has to look after it. */
function standsStill(error: unknown): boolean {
  return error instanceof Problem && (error.code === "log-stopped" || error.code === "index-conflict");
}

/** Records that a log could not be read at all, and goes on after it. */
function failLog(storage: JobStorage, principal: string, code: string): void {
  const failure = { principal, run: "", code };
  const summary = new RecheckSummary(storage.summary());
  summary.addFailure(failure);
  storage.commitRun({ resolved: principal, attempts: 0 }, summary.state(), failedLine(failure));
}

/** Fixes logs until `deadline`; whether all are. Each is stored with the place that it leaves the job at. */
export async function resolveLogs(
  env: Env,
  storage: JobStorage,
  request: JobRequest,
  deadline: (logs: number) => boolean,
): Promise<boolean> {
  let logs = 0;
  for (;;) {
    const { found, last } = await nextPrincipals(env, request, storage.state().resolved);
    for (const principal of found) {
      let fixed: Awaited<ReturnType<typeof fixLog>>;
      try {
        fixed = await fixLog(env, request, principal);
      } catch (error) {
        if (!standsStill(error) || storage.state().attempts < MAX_TRIES) throw error;
        failLog(storage, principal.name, codeOf(error));
        continue;
      }
      const on = storage.transaction(() => {
        if (storage.state().end !== "") return false;
        if (fixed !== null && storage.logCount() >= MAX_JOB_LOGS) {
          storage.move({
            end: "budget-exhausted",
            reason: `the selection has more than ${MAX_JOB_LOGS} logs`,
          });
          return false;
        }
        if (fixed !== null) storage.addLog(fixed.log, fixed.picked, request.selection.newest);
        storage.move({ resolved: principal.name, attempts: 0 });
        return true;
      });
      if (!on || deadline(++logs)) return storage.state().end !== "";
    }
    if (last === null) return true;
    storage.move({ resolved: last });
  }
}
