/**
 * A re-check job as the API answers it.
 *
 * @module
 */
import type { z } from "zod";
import { entryId } from "../../durable-objects/recheck-job/finish.ts";
import { headJson, policyJson, selectionJson } from "../../durable-objects/recheck-job/report.ts";
import type { JobView } from "../../durable-objects/recheck-job/types.ts";
import { isEnd } from "../../durable-objects/recheck-job/types.ts";
import type { RecheckJobOut } from "../../shared/api/rechecks.ts";
import { RecheckSummary, type SummaryState } from "../../shared/recheck/summary.ts";
import { summaryJson } from "../../shared/recheck/summary-json.ts";
import { SYSTEM_PRINCIPAL } from "../logs/open-log.ts";

export function jobOut(view: JobView): z.infer<typeof RecheckJobOut> {
  const { id, status, reason, createdAt, finishedAt, policy, progress, reportHash } = view;
  return {
    id,
    status,
    ...(reason === "" ? {} : { reason }),
    created_at: createdAt,
    finished_at: finishedAt,
    selection: selectionJson(view.selection),
    budget: view.budget,
    policy: policyJson(policy) as z.infer<typeof RecheckJobOut>["policy"],
    specs: { source: policy.specSource },
    progress: {
      logs: progress.logs,
      runs: { done: progress.runsDone, total: progress.runsTotal },
      evaluations: progress.evaluations,
    },
    heads: view.heads.map(headJson) as z.infer<typeof RecheckJobOut>["heads"],
    without_runs: [...view.withoutRuns],
    summary: summaryJson(new RecheckSummary(JSON.parse(view.summary) as SummaryState)) as z.infer<
      typeof RecheckJobOut
    >["summary"],
    report_hash: reportHash,
    entry: isEnd(status) ? { principal: SYSTEM_PRINCIPAL, id: entryId(id) } : null,
  };
}
