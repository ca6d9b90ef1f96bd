/**
 * What a sender learns of its limits (docs/limits.md) from an answer's `RateLimit-Policy`: a request of more than they
 * take in one window never passes, however often it is sent again.
 *
 * @module
 */
import { utf8 } from "../shared/bytes.ts";

/** The most that one minute, or one day, takes; `Infinity` where that is not limited or not known. */
export interface WindowLimits {
  readonly entries: number;
  /** Of the request's body. */
  readonly bytes: number;
}

export const NO_LIMITS: WindowLimits = { entries: Infinity, bytes: Infinity };

/** Quota and unit of one policy; what else it says is not of use here. */
const QUOTA = /;q=(\d+)/;
const UNIT = /;qu="([^"]*)"/;

/** The narrowest limits that the answer names. Policies in other units, a proxy's of requests, say nothing here. */
export function windowLimits(headers: Headers): WindowLimits {
  let { entries, bytes } = NO_LIMITS;
  for (const policy of headers.get("ratelimit-policy")?.split(",") ?? []) {
    const quota = QUOTA.exec(policy)?.[1];
    const unit = UNIT.exec(policy)?.[1];
    if (quota === undefined) continue;
    if (unit === "entries") entries = Math.min(entries, Number(quota));
    if (unit === "content-bytes") bytes = Math.min(bytes, Number(quota));
  }
  return { entries, bytes };
}

/** How many entries, from the first on, fit in one request, by their sizes; at least one, for less can't be sent. */
export function fitting(sizes: Iterable<number>, limits: WindowLimits): number {
  let [count, bytes] = [0, 0];
  for (const size of sizes) {
    bytes += size;
    if (count >= limits.entries || bytes > limits.bytes) break;
    count += 1;
    // The line's end.
    bytes += 1;
  }
  return Math.max(1, count);
}

/**
 * Whether an entry of this size is more than a window takes, so that it never passes. A quota of zero is a stop, which
 * may be lifted, and says nothing of sizes.
 */
export function isTooLarge(size: number, { bytes }: WindowLimits): boolean {
  return bytes > 0 && size > bytes;
}

/** Bytes of an entry text in a request's body, which is UTF-8. */
export function sizeOf(text: string): number {
  return utf8(text).length;
}
