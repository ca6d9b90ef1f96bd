/**
 * Re-check jobs: a selection of the tenant's runs under another policy (docs/recheck.md, "Jobs").
 *
 * @module
 */
import { z } from "zod";
import type { RecheckJob } from "../../durable-objects/recheck-job/recheck-job.ts";
import type { JobView } from "../../durable-objects/recheck-job/types.ts";
import { isEnd, jobObjectName } from "../../durable-objects/recheck-job/types.ts";
import type { PolicyUsed } from "../../shared/api/rechecks.ts";
import { BudgetIn, RecheckJobOut, RecheckListed, SelectionIn } from "../../shared/api/rechecks.ts";
import { HexId } from "../../shared/api/schemas.ts";
import { readBody } from "../http/body.ts";
import { decodeCursor, encodeCursor } from "../http/cursor.ts";
import { idempotencyKey } from "../http/idempotency.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { countUnfinished, pageRechecks } from "../index-db/rechecks.ts";
import { indexSession } from "../logs/read.ts";
import { findJob, maySee } from "../rechecks/find-job.ts";
import { jobOut } from "../rechecks/job-out.ts";
import { jobId, jobRequest } from "../rechecks/job-request.ts";
import { readJobBody } from "../rechecks/read-request.ts";
import { AskedPolicy } from "./recheck.ts";

/** Bytes of a body: a policy that is longer is stored first, and named. */
const MAX_BODY = 512 * 1024;
/** Jobs of a tenant that are at work at a time: what they need is everybody's. */
const MAX_UNFINISHED = 20;
/** Seconds that an answer may wait for a job's end. */
const MAX_WAIT = 30;

const JobParams = z.object({ id: HexId });
const Wait = z.coerce.number().int().min(0).max(MAX_WAIT).default(0).describe("seconds to wait for its end");

const create = tenantRoute(
  {
    method: "POST",
    path: "/v1/rechecks",
    operation: "createRecheck",
    tag: "recheck",
    scope: "recheck",
    summary: "Re-check a selection of runs under another policy, as a job",
    description:
      'The body is that of a run\'s re-check, with {"selection": {...}}, and {"budget": {...}} where a job may use less than usual. ' +
      "What is selected is fixed at the start: each log up to its head of then. Idempotency-Key is honoured.",
    query: z.object({ wait: Wait }),
    rawBody: {
      schema: z.object({
        policy: AskedPolicy,
        specs: z.enum(["recorded", "current"]).optional(),
        tools: z.array(z.record(z.string(), z.unknown())).optional().describe("with specs: current"),
        selection: SelectionIn,
        budget: BudgetIn.optional(),
      }),
      contentTypes: ["application/json"],
      limit: MAX_BODY,
    },
    answers: {
      202: { description: "the job is at work", schema: RecheckJobOut },
      200: { description: "the job is at its end", schema: RecheckJobOut },
    },
  },
  async ({ request, env, caller, query }) => {
    const key = idempotencyKey(request);
    const bytes = await readBody(request, MAX_BODY);
    const { id, fingerprint } = jobId(env.MASTER_KEY, caller, key, bytes);
    const stub = env.RECHECK_JOB.getByName(jobObjectName(caller.tenant.id, id));
    let outcome = key === null ? null : await stub.again(fingerprint);
    if (outcome === null) {
      const body = readJobBody(bytes);
      if ((await countUnfinished(indexSession(env), caller.tenant.id)) >= MAX_UNFINISHED) {
        throw new Problem("too-many-rechecks", { retryAfter: 5 });
      }
      outcome = await stub.start(await jobRequest(env, caller, body, { id, fingerprint }));
    }
    if (!outcome.ok) throw new Problem(outcome.code);
    return answer(stub, outcome.view, query.wait);
  },
);

/** The job once the time is over, or it is at its end. */
async function answer(stub: DurableObjectStub<RecheckJob>, view: JobView, wait: number): Promise<Response> {
  let last = view;
  if (wait > 0 && !isEnd(view.status)) last = (await stub.wait(wait * 1000)) ?? view;
  return json(jobOut(last), isEnd(last.status) ? 200 : 202, { location: `/v1/rechecks/${last.id}` });
}

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/rechecks",
    operation: "listRechecks",
    tag: "recheck",
    scope: "recheck",
    summary: "The tenant's re-checks that the key may see, the newest first",
    query: z.object({
      limit: z.coerce.number().int().min(1).max(200).default(50),
      cursor: z.string().max(200).optional(),
    }),
    answers: {
      200: {
        description: "a page; it may hold fewer than asked for",
        schema: z.object({ rechecks: z.array(RecheckListed), next_cursor: z.string().nullable() }),
      },
    },
  },
  async ({ env, caller, query }) => {
    const scope = [caller.tenant.id, caller.key.id, "rechecks"];
    const before = decodeCursor(scope, query.cursor);
    const page = await pageRechecks(indexSession(env), caller.tenant.id, before, query.limit);
    const last = page.length < query.limit ? undefined : page.at(-1);
    const rechecks = page
      .filter(({ principals }) => maySee(caller, principals))
      .map(({ id, status, createdAt, finishedAt, policy, reportHash }) => ({
        id,
        status: isEnd(status) ? status : ("running" as const),
        created_at: createdAt,
        finished_at: finishedAt,
        policy: JSON.parse(policy) as z.infer<typeof PolicyUsed>,
        report_hash: reportHash,
      }));
    return json({ rechecks, next_cursor: last === undefined ? null : encodeCursor(scope, last.n) });
  },
);

const one = tenantRoute(
  {
    method: "GET",
    path: "/v1/rechecks/{id}",
    operation: "getRecheck",
    tag: "recheck",
    scope: "recheck",
    summary: "A re-check as it stands: its progress, the summary so far, and what it uses",
    params: JobParams,
    query: z.object({ wait: Wait }),
    answers: { 200: { description: "the job", schema: RecheckJobOut } },
  },
  async ({ env, caller, params, query }) => {
    const { stub, view } = await findJob(env, caller, params.id);
    let last = view;
    if (query.wait > 0 && !isEnd(view.status)) last = (await stub.wait(query.wait * 1000)) ?? view;
    return json(jobOut(last));
  },
);

const cancel = tenantRoute(
  {
    method: "POST",
    path: "/v1/rechecks/{id}/cancel",
    operation: "cancelRecheck",
    tag: "recheck",
    scope: "recheck",
    summary: "End a job where it is; one that is at its end stays as it is",
    description: "What it came to until then is stored and recorded as a report with the status cancelled.",
    params: JobParams,
    query: z.object({ wait: Wait }),
    answers: {
      202: { description: "the job is being ended", schema: RecheckJobOut },
      200: { description: "the job is at its end", schema: RecheckJobOut },
    },
  },
  async ({ env, caller, params, query }) => {
    const { stub } = await findJob(env, caller, params.id);
    const view = await stub.cancel();
    if (view === null) throw new Problem("not-found");
    return answer(stub, view, query.wait);
  },
);

export const recheckJobRoutes: readonly Route[] = [create, list, one, cancel];
