/**
 * Verifies the range of a log that a run is read from, before it is read (docs/recheck.md, "Verified").
 *
 * @module
 */
import { z } from "zod";
import { Break, VerifyReport } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { queryRunSpan } from "../index-db/audits.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { indexSession, logIdOf, requireIndexed } from "../logs/read.ts";
import { MAX_WALK, verifyStored } from "../logs/verify-stored.ts";

/** Entries that one request verifies before it reads. */
export const MAX_VERIFIED = 20 * MAX_WALK;

/** What a report says of the range. */
export const Verified = z.object({
  verdict: VerifyReport.shape.verdict,
  from: z.int(),
  to: z.int(),
  checked: z.int().min(0),
  break: Break.optional(),
});
export type Verified = z.infer<typeof Verified>;

/**
 * Walks from the run's first entry to its last. Null where the log has no such run. Throws a 400 problem for a range
 * too long for one request, and 503 problems.
 */
export async function verifyRun(env: Env, log: OpenLog, run: string): Promise<Verified | null> {
  // What it answers is for the walk to judge; here it only has the index filled.
  const outcome = await log.stub.barrier(log.identity, log.epoch);
  const { span, indexed } = await queryRunSpan(indexSession(env), logIdOf(log), run);
  if (outcome.ok) await requireIndexed(log, indexed, outcome.size);
  if (span === null) return null;
  const { first_seq: from, last_seq: to } = span;
  if (to - from >= MAX_VERIFIED)
    throw new Problem("invalid-request", {
      pointer: "?verified",
      detail: `the run lies in more than ${MAX_VERIFIED} entries of its log: verify them first, and re-check after that`,
    });
  let checked = 0;
  for (let at = from; ; ) {
    const part = await verifyStored(env, log, { from: at, to, keptHead: undefined });
    checked += part.checked;
    if (part.verdict !== "intact" || part.next === undefined)
      return {
        verdict: part.verdict,
        from,
        to: part.to,
        checked,
        ...(part.break === undefined ? {} : { break: part.break }),
      };
    at = part.next;
  }
}
