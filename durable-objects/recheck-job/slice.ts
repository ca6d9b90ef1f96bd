/**
 * A slice of a job: a few runs, folded from the log's entries up to the fixed head, asked about, and each stored with the
 * sum and the place in one transaction. What was stored is never done again; what was not is done from its beginning.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { RunsealError } from "../../shared/errors.ts";
import { recheckRun } from "../../shared/recheck/compare.ts";
import { RunFold } from "../../shared/recheck/fold.ts";
import type { RecheckedEvaluation } from "../../shared/recheck/report.ts";
import { RecheckSummary } from "../../shared/recheck/summary.ts";
import { failedLine, type RunLine, runLine } from "../../shared/recheck/summary-line.ts";
import type { Env } from "../../workers/env.ts";
import { pageRuns } from "../../workers/index-db/runs.ts";
import { bindLog, type OpenLog } from "../../workers/logs/open-log.ts";
import { indexSession, requireIndexed } from "../../workers/logs/read.ts";
import type { OpenedPolicy } from "../../workers/policies/engine.ts";
import { readRun } from "../../workers/runs/read-run.ts";
import { readSpecs } from "../../workers/tools/read-specs.ts";
import { codeOf, isLasting, MAX_TRIES } from "./failures.ts";
import { boundsOf } from "./resolve.ts";
import type { JobState, JobStorage } from "./storage.ts";
import type { JobLog, JobRequest, JobSelection } from "./types.ts";

/** Runs that are looked up at a time. */
const PAGE = 50;

export interface Slice {
  readonly env: Env;
  readonly storage: JobStorage;
  readonly request: JobRequest;
  readonly policy: OpenedPolicy["policy"];
  /** Stored specs by hash, as far as they are known: kept from slice to slice. */
  readonly specs: Map<string, string>;
  /** Whether the slice has had its share, after so many evaluations. */
  readonly deadline: (evaluations: number) => boolean;
}

/** Evaluations that the selection has, of a run that it has. */
export function selects({ tool, policyId }: JobSelection): (evaluation: RecheckedEvaluation) => boolean {
  return (evaluation) =>
    // A tool that is not there to be read may be the one: it counts, as not re-checkable.
    (tool === null || evaluation.tool === tool || (evaluation.tool === "" && evaluation.reason !== null)) &&
    (policyId === null || evaluation.policyId === policyId);
}

/** Re-checks runs until the slice has had its share or the job's end is decided; whether that is so. */
export async function recheckRuns(slice: Slice): Promise<boolean> {
  const { env, storage, request } = slice;
  let evaluations = 0;
  for (;;) {
    const state = storage.state();
    if (state.end !== "") return true;
    const log = storage.log(state.log);
    if (log === null) {
      storage.move({ end: "complete" });
      return true;
    }
    const open = await bindLog(env, request.tenant, log.principal);
    const runs = await nextRuns(slice, open, log, state);
    if (storage.state().end !== "") return true;
    // Once a slice, and not once a run: whoever dies in a later run of it is first in the next.
    if (runs.length > 0 && evaluations === 0) storage.move({ attempts: 0, tries: state.tries + 1 });
    for (const run of runs) {
      const exhausted = exhaustedBudget(storage.state(), request);
      if (exhausted !== null) {
        storage.move({ end: "budget-exhausted", reason: exhausted });
        return true;
      }
      const done = await oneRun(slice, open, log, run);
      if (done === null) return true;
      evaluations += done;
      if (slice.deadline(evaluations)) return false;
    }
    if (runs.length < PAGE) {
      storage.transaction(() => {
        const now = storage.state();
        if (now.end === "") storage.move({ log: now.log + 1, run: "" });
      });
    }
  }
}

async function nextRuns(
  { env, storage, request }: Slice,
  open: OpenLog,
  log: JobLog,
  state: JobState,
): Promise<readonly string[]> {
  if (request.selection.newest !== null) return storage.picked(state.log, state.run, PAGE);
  const bounds = boundsOf(request, log);
  const { found, indexed } = await pageRuns(indexSession(env), log.logId, bounds, state.run, PAGE);
  await requireIndexed(open, indexed, log.head.size);
  return found;
}

/** What the budget lacks for another run; null where it does not. */
function exhaustedBudget(state: JobState, { budget }: JobRequest): string | null {
  if (state.runsDone >= budget.runs) return `${budget.runs} runs`;
  if (state.evaluations >= budget.evaluations) return `${budget.evaluations} evaluations`;
  if (state.spentMs >= budget.seconds * 1000) return `${budget.seconds} seconds`;
  return null;
}

/** Re-checks a run and stores what it came to; its number of evaluations, null where the job's end came between. */
async function oneRun(slice: Slice, open: OpenLog, log: JobLog, run: string): Promise<number | null> {
  const { storage, request } = slice;
  const begun = Date.now();
  const state = storage.state();
  const principal = log.principal.name;
  const summary = new RecheckSummary(storage.summary());
  let line: RunLine;
  let evaluations = 0;
  const failed = (code: string): RunLine => {
    const failure = { principal, run, code };
    summary.addFailure(failure);
    return failedLine(failure);
  };
  if (state.tries > MAX_TRIES) {
    line = failed("not-finished");
  } else {
    try {
      const counts = selects(request.selection);
      const { report, specHashes } = await recheckOne(slice, open, log, run);
      evaluations = report.evaluations.length;
      summary.add({ principal, report, specHashes, selects: counts });
      line = runLine(principal, report, counts);
    } catch (error) {
      // What passes is tried again, by a later slice; what stays, and what does not pass, is on record.
      if (!isLasting(error) && state.tries < MAX_TRIES) throw error;
      line = failed(codeOf(error));
    }
  }
  const now = storage.state();
  if (now.end !== "" || now.log !== state.log || now.run !== state.run) return null;
  storage.commitRun(
    {
      run,
      runsDone: now.runsDone + 1,
      evaluations: now.evaluations + evaluations,
      spentMs: now.spentMs + Math.max(0, Date.now() - begun),
      tries: 0,
    },
    summary.state(),
    line,
  );
  return evaluations;
}

/** Specs that are kept from run to run, in UTF-16 units: a tenant's runs share them. */
const MAX_SPEC_UNITS = 4 * 1024 * 1024;

/** Makes the cache hold the specs that are stored. What is not there is asked for again by the next run. */
async function fetchSpecs(
  env: Env,
  tenant: string,
  cache: Map<string, string>,
  hashes: readonly string[],
): Promise<void> {
  const missing = hashes.filter((hash) => !cache.has(hash));
  if (missing.length === 0) return;
  let units = 0;
  for (const text of cache.values()) units += text.length;
  if (units > MAX_SPEC_UNITS) {
    cache.clear();
    return fetchSpecs(env, tenant, cache, hashes);
  }
  for (const [hash, text] of await readSpecs(env, tenant, missing)) cache.set(hash, text);
}

async function recheckOne({ env, request, policy, specs }: Slice, open: OpenLog, log: JobLog, run: string) {
  const fold = new RunFold(run, { keepViews: policy.readsView !== false });
  for await (const entry of readRun(env, open, run, log.head.size)) fold.add(entry);
  const folded = fold.finish();
  if (folded.range === null) throw new RunsealError("no-entries", "the index has no entry of the run");
  await fetchSpecs(env, request.tenant.id, specs, folded.specHashes);
  const { specSource, currentTools } = request.policy;
  const report = await recheckRun(folded, policy, {
    crypto: nativeCrypto,
    principal: log.principal.name,
    specSource,
    specs: (hash) => specs.get(hash),
    ...(currentTools === null ? {} : { currentTools }),
  });
  return { report, specHashes: folded.specHashes };
}
