/**
 * What re-check jobs leave: the stored report, and the runs one by one (docs/recheck.md, "Jobs").
 *
 * @module
 */
import { z } from "zod";
import { readReport } from "../../durable-objects/recheck-job/finish.ts";
import { isEnd } from "../../durable-objects/recheck-job/types.ts";
import { JobReportOut } from "../../shared/api/rechecks.ts";
import { HexId } from "../../shared/api/schemas.ts";
import { FORMAT_TYPES, RECHECK_FORMATS } from "../../shared/recheck/format-report.ts";
import { formatStored, judgeStored, readStoredReport } from "../../shared/recheck/stored-report.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { jsonText, tenantRoute } from "../http/route.ts";
import { findJob } from "../rechecks/find-job.ts";
import { RecheckAnswer } from "./recheck.ts";

const JobParams = z.object({ id: HexId });

const report = tenantRoute(
  {
    method: "GET",
    path: "/v1/rechecks/{id}/report",
    operation: "getRecheckReport",
    tag: "recheck",
    scope: "recheck",
    summary: "The stored report of a re-check that is at its end",
    description:
      "Its bytes have the SHA-256 that the system log records. With gate=strict or gate=proxy a failed gate is a 409 with " +
      "the report in it, in the form that was asked for: a job that did not come to its end passes none.",
    params: JobParams,
    query: z.object({
      gate: z.enum(["strict", "proxy"]).optional(),
      format: z.enum(RECHECK_FORMATS).default("json"),
    }),
    answers: {
      200: { description: "the report: a job's, or a run's", schema: z.union([JobReportOut, RecheckAnswer]) },
    },
  },
  async ({ env, caller, params, query }) => {
    const { view } = await findJob(env, caller, params.id);
    if (!isEnd(view.status) || view.reportHash === null) {
      throw new Problem("recheck-unfinished", { retryAfter: 1 });
    }
    const text = await readReport(env, caller.tenant.id, view.reportHash);
    if (text === null) {
      throw new Problem("unavailable", { detail: "the stored report could not be read", retryAfter: 2 });
    }
    const { gate = null, format } = query;
    if (format === "json" && gate === null) return jsonText(text);
    const stored = readStoredReport(text);
    const passed = judgeStored(stored, gate)?.passed ?? true;
    if (format === "json") {
      if (passed) return jsonText(text);
      throw new Problem("gate-failed", { members: { report: JSON.parse(text) as unknown } });
    }
    const headers = { "content-type": FORMAT_TYPES[format], "cache-control": "no-store" };
    return new Response(formatStored(format, stored, gate), { status: passed ? 200 : 409, headers });
  },
);

const runs = tenantRoute(
  {
    method: "GET",
    path: "/v1/rechecks/{id}/runs",
    operation: "listRecheckRuns",
    tag: "recheck",
    scope: "recheck",
    summary: "The runs of a re-check, one by one, as NDJSON",
    description:
      "Those that are done so far and say more than that everything is the same; with all=true every one. A line lists at " +
      "most 500 evaluations, the worst first.",
    params: JobParams,
    query: z.object({ all: z.enum(["true", "false"]).default("false") }),
    answers: { 200: { description: "a line a run", contentType: "application/x-ndjson" } },
  },
  async ({ env, caller, params, query }) => {
    const { stub } = await findJob(env, caller, params.id);
    let after: number | null = 0;
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const page = after === null ? null : await stub.lines(after, query.all === "true");
        after = page?.next ?? null;
        if (page !== null && page.lines.length > 0) {
          controller.enqueue(encoder.encode(`${page.lines.join("\n")}\n`));
        }
        if (after === null) controller.close();
      },
    });
    return new Response(body, {
      headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
    });
  },
);

export const recheckReportRoutes: readonly Route[] = [report, runs];
