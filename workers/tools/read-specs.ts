/**
 * Stored specs as readers get them: each has its hash. D1 is asked first; what it lacks, or has altered, comes from R2,
 * where a spec was put before anybody was told that it is stored.
 *
 * @module
 */
import { Hash } from "../../shared/api/schemas.ts";
import type { Env } from "../env.ts";
import { Problem } from "../http/problem.ts";
import { logEvent } from "../log-event.ts";
import { forEach } from "../mirror.ts";
import { isOfHash, SPEC_COPIES, specRows, specsInMirror, takeBackSpec } from "./store.ts";

/**
 * Of one call, for a Worker has 1,000 subrequests, and a run can name as many specs as it likes: specs that are got from R2
 * (each is then put into D1), and lists of R2, so many keys each, that tell which there are where more are lacking.
 */
export const SPEC_LOOKUPS = { gets: 256, lists: 64, keys: 1000 };

/** Hashes that D1 is asked for together: a bound text of its statements has at most 2 MB. */
const MAX_BOUND = 10_000;

/** Milliseconds for which R2 is not asked again for what it did not have: many runs name specs that nobody stored. */
const ABSENT_MS = 60_000;
const MAX_ABSENT = 10_000;

/** By tenant and hash: until when this isolate takes R2 to have no such spec. One that is stored meanwhile is in D1. */
const absent = new Map<string, number>();

function isAbsent(place: string): boolean {
  return (absent.get(place) ?? 0) > Date.now();
}

function noteAbsent(place: string): void {
  if (absent.size >= MAX_ABSENT) absent.clear();
  absent.set(place, Date.now() + ABSENT_MS);
}

/**
 * Canonical texts by hash; a spec that is not stored is not among them. Throws 503 problems: `index-conflict` where what is
 * stored under a hash is nowhere the spec that has it, `mirror-unavailable` where R2 can't be asked for what D1 lacks,
 * `index-rebuilding` where D1 lacks more than one call can ask for: the next call goes on from there.
 */
export async function readSpecs(
  env: Env,
  tenant: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(hashes.filter((hash) => Hash.safeParse(hash).success))];
  const specs = new Map<string, string>();
  const altered = new Set<string>();
  for (let at = 0; at < wanted.length; at += MAX_BOUND) {
    for (const row of await specRows(env.DB, tenant, wanted.slice(at, at + MAX_BOUND))) {
      if (isOfHash(row)) specs.set(row.hash, row.spec);
      else altered.add(row.hash);
    }
  }
  const lost = wanted.filter(
    (hash) => !specs.has(hash) && !altered.has(hash) && !isAbsent(`${tenant}/${hash}`),
  );
  const { gets } = SPEC_LOOKUPS;
  const { held, missing, untold } =
    altered.size + lost.length > gets
      ? await specsInMirror(env, tenant, lost, SPEC_LOOKUPS)
      : { held: lost, missing: [], untold: 0 };
  for (const hash of missing) noteAbsent(`${tenant}/${hash}`);
  const there = [...altered, ...held];
  await forEach(there.slice(0, gets), async (hash) => {
    if (altered.has(hash)) logEvent("row-altered", { tenant, key: SPEC_COPIES + hash });
    const copy = await takeBackSpec(env, tenant, hash);
    if (copy === "altered" || (copy === null && altered.has(hash)))
      throw new Problem("index-conflict", { detail: `what is stored as tool spec ${hash} has another hash` });
    if (copy === null) noteAbsent(`${tenant}/${hash}`);
    else specs.set(hash, copy.text);
  });
  const left = Math.max(0, there.length - gets) + untold;
  if (left === 0) return specs;
  logEvent("specs-lacking", { tenant, left });
  throw new Problem("index-rebuilding", {
    detail: `${left} tool specs are still to be looked up in R2, which D1 lacks`,
    retryAfter: 1,
  });
}
