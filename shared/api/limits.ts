/**
 * Limits of a tenant or a key, as the API takes and answers them (docs/limits.md).
 *
 * @module
 */
import { z } from "zod";

const limit = z.int().min(0).nullable();

/** What is absent or null is not limited. */
export const LimitsIn = z.strictObject({
  entries_per_minute: limit.optional().describe("entries stored in one minute of the clock"),
  bytes_per_day: limit
    .optional()
    .describe("bytes of the requests of which something was stored, in one day of UTC"),
  principals: limit
    .optional()
    .describe("of a tenant: principals but $system; of a key: principals that it made"),
});
export type LimitsIn = z.infer<typeof LimitsIn>;

export const LimitsOut = z.object({ entries_per_minute: limit, bytes_per_day: limit, principals: limit });

const used = z.int().min(0);
export const LimitsAndUsage = z.object({
  limits: LimitsOut.nullable().describe("null: not limited"),
  usage: z.object({
    entries_this_minute: used.describe("with what Workers have leased and not used yet"),
    bytes_today: used,
    principals: used,
  }),
});

export const CallerLimitsOut = z.object({ tenant: LimitsAndUsage, key: LimitsAndUsage });
