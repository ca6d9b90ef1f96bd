/**
 * How a log, a tenant and the service stand, as the API answers it (docs/operate.md, "Health and metrics").
 *
 * @module
 */
import { z } from "zod";
import { PrincipalName, Time } from "./schemas.ts";

export const HEALTH_STATUSES = ["ok", "behind", "full", "conflicting", "stopped"] as const;
export type HealthStatus = (typeof HEALTH_STATUSES)[number];

const entries = z.int().min(0);
const Status = z
  .enum(HEALTH_STATUSES)
  .describe(
    "the worst that is the case. ok; behind: an entry has waited for D1 for more than a minute; full: the outbox is at its bound, and appends get 503; conflicting: D1 holds something else; stopped: the log takes no entries",
  );

export const OutboxOut = z.object({
  entries: entries.describe("entries that D1 lacks"),
  bytes: z.int().min(0),
  oldest_age_seconds: z.number().min(0).nullable().describe("age of the oldest of them; null: there is none"),
});

export const OutboxBound = z.object({
  entries,
  bytes: z.int(),
  age_seconds: z.int(),
});

export const PrincipalHealth = z.object({
  principal: PrincipalName,
  status: Status,
  accepted: entries.describe("entries in the log"),
  persisted: entries.describe("entries that D1 holds"),
  archived: entries.describe("entries covered by full tiles and bundles in R2"),
  pruned: entries.describe("old entries that left the log's object, and are in R2 and D1"),
  mirrored_size: entries.describe("size of the head that R2 mirrors"),
  lost: entries
    .nullable()
    .describe("entries that the head counts and nothing holds; 0, or null where a stopped log can't tell"),
  outbox: OutboxOut,
  bound: OutboxBound.describe("beyond any of these appends get 503 outbox-full, and nothing is dropped"),
  alarms: z.array(z.object({ name: z.enum(["stopped", "index-conflict"]), detail: z.string() })),
  as_of: Time,
});

export const TenantHealth = z.object({
  status: Status,
  logs: z.object({
    reporting: z.int().describe("logs that have reported"),
    behind: z.int().describe("logs with entries that D1 lacks"),
    conflicting: z.int(),
    stopped: z.int(),
  }),
  accepted: entries,
  persisted: entries,
  archived: entries,
  mirrored: entries.describe("entries under mirrored heads"),
  lost: entries,
  outbox: OutboxOut,
  newest_report: Time.nullable().describe("when a log reported last"),
  stalest_report: Time.nullable().describe(
    "the oldest report among the logs that are behind: the sums are no older than this, but for entries of the last second",
  ),
});
