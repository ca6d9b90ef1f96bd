/**
 * R2 as a request uses it: where it is away, the request may be made again.
 *
 * @module
 */
import type { Env } from "./env.ts";
import { Problem } from "./http/problem.ts";
import { logEvent } from "./log-event.ts";

/** What `ask` answers. Throws a 503 `mirror-unavailable` problem where R2 fails; a problem of `ask` itself passes. */
export async function askMirror<T>(env: Env, ask: (bucket: R2Bucket) => Promise<T>): Promise<T> {
  try {
    return await ask(env.MIRROR);
  } catch (error) {
    if (error instanceof Problem) throw error;
    logEvent("mirror-unavailable", { error: error instanceof Error ? error.name : typeof error });
    throw new Problem("mirror-unavailable", { retryAfter: 2 });
  }
}
