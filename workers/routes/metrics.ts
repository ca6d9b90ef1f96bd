/**
 * The service's state for the operator, as Prometheus text (exposition format 0.0.4): sums over all tenants, names of
 * none.
 *
 * @module
 */
import {
  MAX_OUTBOX_AGE_MS,
  MAX_OUTBOX_BYTES,
  MAX_OUTBOX_ENTRIES,
} from "../../durable-objects/principal-log/outbox.ts";
import { SERVICE_OBJECT } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import type { TotalCounters } from "../../durable-objects/tenant-directory/totals.ts";
import type { Route } from "../http/route.ts";
import { openRoute } from "../http/route.ts";
import { ageSeconds } from "./health.ts";

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Metric = readonly [name: string, type: "counter" | "gauge", help: string, value: number];

function metricsOf(totals: TotalCounters, nowMs: number): Metric[] {
  const age = (ms: number | null): number => ageSeconds(ms, nowMs) ?? 0;
  return [
    ["runseal_entries_accepted_total", "counter", "Entries in all logs", totals.accepted],
    ["runseal_entries_persisted_total", "counter", "Entries that D1 holds", totals.persisted],
    ["runseal_entries_archived_total", "counter", "Entries covered by full tiles in R2", totals.archived],
    ["runseal_entries_mirrored_total", "counter", "Entries under heads that R2 mirrors", totals.mirrored],
    ["runseal_entries_lost_total", "counter", "Acknowledged entries that nothing holds: 0", totals.lost],
    ["runseal_outbox_entries", "gauge", "Entries that D1 lacks", totals.accepted - totals.persisted],
    ["runseal_outbox_bytes", "gauge", "Bytes of them", totals.outbox_bytes],
    ["runseal_outbox_oldest_age_seconds", "gauge", "Age of the oldest of them", age(totals.oldest_ms)],
    ["runseal_outbox_bound_entries", "gauge", "Bound of one log's outbox", MAX_OUTBOX_ENTRIES],
    ["runseal_outbox_bound_bytes", "gauge", "Bound of one log's outbox", MAX_OUTBOX_BYTES],
    ["runseal_outbox_bound_age_seconds", "gauge", "Bound of one log's outbox", MAX_OUTBOX_AGE_MS / 1000],
    ["runseal_tenants", "gauge", "Tenants that have reported", totals.members],
    ["runseal_logs", "gauge", "Logs that have reported", totals.logs],
    ["runseal_logs_behind", "gauge", "Logs with entries that D1 lacks", totals.behind],
    ["runseal_logs_full", "gauge", "Logs that take no entries: the outbox is at its bound", totals.full],
    ["runseal_logs_stopped", "gauge", "Logs that their mirror contradicts", totals.stopped],
    ["runseal_logs_index_conflict", "gauge", "Logs that D1 contradicts", totals.conflicting],
    ["runseal_report_age_seconds", "gauge", "Age of the newest report of a tenant", age(totals.reported_ms)],
    [
      "runseal_stalest_report_age_seconds",
      "gauge",
      "Age of the oldest report among tenants with entries that D1 lacks",
      age(totals.stalest_ms),
    ],
  ];
}

/** The text. */
export function prometheusText(totals: TotalCounters, nowMs: number): string {
  return metricsOf(totals, nowMs)
    .map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`)
    .join("");
}

const metrics = openRoute(
  {
    method: "GET",
    path: "/metrics",
    operation: "getMetrics",
    tag: "health",
    access: "operator",
    summary: "The service's counters as Prometheus text",
    answers: { 200: { description: "the metrics", contentType: "text/plain" } },
  },
  async ({ env }) => {
    const totals = await env.TENANT_DIRECTORY.getByName(SERVICE_OBJECT).totals();
    return new Response(prometheusText(totals, Date.now()), {
      headers: { "content-type": CONTENT_TYPE, "cache-control": "no-store" },
    });
  },
);

export const metricsRoutes: readonly Route[] = [metrics];
