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

/** What became of objects in R2 from which D1 was to get its rows back. */
export interface TakenBack {
  /** Rows that D1 has again. */
  readonly restored: number;
  /** Objects that are not what they should be. The service's log names each. */
  readonly refused: number;
}

/** Requests under way at once: six are what a Worker gets anyway. */
export const AT_ONCE = 6;

/** Does the work for each item, some at a time. Throws what the first that fails throws; those of its group are under way then. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) await Promise.all(items.slice(i, i + AT_ONCE).map(work));
}

/** An object's text, "" where it has more bytes than are taken; null where there is none. Throws 503 problems. */
export function getText(
  env: Env,
  key: string,
  maxBytes: number,
): Promise<{ readonly text: string; readonly uploaded: Date } | null> {
  return askMirror(env, async (bucket) => {
    const object = await bucket.get(key);
    if (object === null) return null;
    const { uploaded } = object;
    if (object.size <= maxBytes) return { text: await object.text(), uploaded };
    await object.body.cancel();
    return { text: "", uploaded };
  });
}
