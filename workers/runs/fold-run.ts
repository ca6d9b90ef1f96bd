/**
 * A stored run, folded for a re-check (docs/recheck.md, "The fold").
 *
 * @module
 */
import { RunFold } from "../../shared/recheck/fold.ts";
import type { FoldedRun } from "../../shared/recheck/model.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { barrier } from "../logs/read.ts";
import { readRun } from "./read-run.ts";

/**
 * Reads the run's entries in order into the fold. Throws 404 for a run without entries, and 503 problems.
 *
 * @param keepViews whether the policy reads the view: without, no text of steps and approvals is kept
 */
export async function foldRun(env: Env, log: OpenLog, run: string, keepViews: boolean): Promise<FoldedRun> {
  const size = await barrier(log);
  const fold = new RunFold(run, { keepViews });
  for await (const entry of readRun(env, log, run, size)) fold.add(entry);
  const folded = fold.finish();
  if (folded.range === null) throw new Problem("not-found");
  return folded;
}
