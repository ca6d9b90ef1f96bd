/**
 * How old a head is, as logs of heads and witnesses show it, and who is trusted for that.
 *
 * @module
 */
import type { VerifyReport } from "../api/schemas.ts";
import { formatTime, MAX_TIME } from "../time.ts";
import type { AnchorFindings } from "./bundle-anchors.ts";

const NANOSECONDS = 1_000_000_000n;

/** A time as text, also one that no calendar has. */
export function timeText(nanoseconds: bigint): string {
  return nanoseconds <= MAX_TIME ? formatTime(nanoseconds) : `${nanoseconds} ns`;
}

/** The report's `freshness`; nothing where the bundle shows nothing of it. */
export function freshnessOf({
  listed,
  tenantLogSize,
  witnessed,
}: AnchorFindings): Pick<VerifyReport, "freshness"> {
  if (tenantLogSize === null) return {};
  return {
    freshness: {
      listed:
        listed === null
          ? null
          : {
              size: listed.size,
              time: timeText(listed.time),
              index: listed.index,
              tenant_log_size: tenantLogSize,
            },
      witnessed: witnessed.map(({ witness, time, covers }) => ({
        witness,
        time: timeText(time * NANOSECONDS),
        size: covers?.size ?? null,
      })),
    },
  };
}

/** The report's `trusted`, as far as heads' age is concerned. */
export function trustedFor({ listed, witnessed, unwitnessed }: AnchorFindings): string[] {
  const out: string[] = [];
  if (listed !== null) {
    out.push(
      `the tenant's log and its key: that it listed ${listed.size} entries at ${timeText(listed.time)}`,
    );
  }
  for (const { witness, time, covers } of witnessed) {
    const what = covers === null ? "the tenant's log" : `${covers.size} entries`;
    out.push(`the witness ${witness}: that ${what} were there at ${timeText(time * NANOSECONDS)}`);
  }
  if (unwitnessed > 0)
    out.push("the service's log and its key, in the bundle: no witness that was given vouches for it");
  return out;
}
