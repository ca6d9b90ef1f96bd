/**
 * What went wrong in a job, and whether it may pass.
 *
 * @module
 */
import { PROBLEMS } from "../../shared/api/problems.ts";
import { RunsealError } from "../../shared/errors.ts";
import { Problem } from "../../workers/http/problem.ts";

/** Times that a run is begun, or a log that stands still is asked, before that is recorded as a failure. */
export const MAX_TRIES = 5;

/** Whether trying again would come to the same: the run itself, or the policy, is what it can't be done with. */
export function isLasting(error: unknown): boolean {
  return error instanceof RunsealError || (error instanceof Problem && error.code === "index-conflict");
}

/** Whether the job itself is refused. Its policy is none to refuse: it opened once, and what keeps it from that now may pass. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Problem && error.code !== "invalid-policy" && PROBLEMS[error.code].status < 500;
}

/** A code for what went wrong. */
export function codeOf(error: unknown): string {
  if (error instanceof Problem || error instanceof RunsealError) return error.code;
  return "unavailable";
}
