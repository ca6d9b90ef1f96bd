/**
 * Recheck of one run under another policy.
 *
 * @module
 */
import { z } from "zod";
import type { HeadView } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { Hash, Head, HexId, OpaqueId, PrincipalName } from "../../shared/api/schemas.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { recheckRun } from "../../shared/recheck/compare.ts";
import { isDecisions } from "../../shared/recheck/decisions.ts";
import { RECHECK_FORMATS } from "../../shared/recheck/format-report.ts";
import type { FoldedRun } from "../../shared/recheck/model.ts";
import type { Policy } from "../../shared/recheck/policy.ts";
import { ENGINES } from "../../shared/recheck/policy-document.ts";
import { type RecheckReport, reportJson } from "../../shared/recheck/report.ts";
import { readRecheckRequest } from "../../shared/recheck/request.ts";
import { readBody } from "../http/body.ts";
import { headOut } from "../http/head.ts";
import { idempotencyKey } from "../http/idempotency.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { tenantRoute } from "../http/route.ts";
import { openLog, refusal } from "../logs/open-log.ts";
import { openPolicy, policyProblem, usedPolicy } from "../policies/engine.ts";
import { storeRunReport } from "../rechecks/store-run-report.ts";
import { foldRun } from "../runs/fold-run.ts";
import { recheckAnswer } from "../runs/recheck-answer.ts";
import { Verified, verifyRun } from "../runs/verify-run.ts";
import { readSpecs } from "../tools/read-specs.ts";
import { PolicySource } from "./policies.ts";

const MAX_RECHECK_BODY = 4 * 1024 * 1024;

/** A policy of the request's own, a stored one, or decisions that were made elsewhere. */
export const AskedPolicy = PolicySource.extend({
  name: OpaqueId.optional().describe("a stored policy"),
  version: z.int().min(1).optional().describe("with name: the latest version unless told"),
  decisions: z.array(z.record(z.string(), z.unknown())).optional(),
});
const Decision = z.looseObject({ outcome: z.string() });
export const RecheckAnswer = z.object({
  run_id: z.string(),
  run_status: z.string(),
  policy_id: z.string(),
  identity: z.enum(["unknown", "changed", "unchanged"]),
  spec_source: z.enum(["recorded", "current"]),
  notes: z.array(z.string()).optional(),
  evaluations: z.array(
    z.looseObject({
      step_index: z.int(),
      step_id: z.string(),
      seq: z.int(),
      tool: z.string(),
      result: z.enum(["same", "different", "not_a_policy_evaluation", "not_recheckable"]),
      recorded: Decision,
      rechecked: Decision.optional(),
      policy_id: z.string(),
    }),
  ),
  same: z.boolean(),
  differences: z.int(),
  rechecked: z.int(),
  not_recheckable: z.int(),
  complete: z.boolean(),
  gate: z.object({ name: z.enum(["strict", "proxy"]), passed: z.boolean() }).optional(),
  policy: z
    .object({
      engine: z.enum([...ENGINES, "decisions"]),
      hash: Hash.optional().describe("SHA-256 of the policy's canonical JSON"),
      name: OpaqueId.optional(),
      version: z.int().optional(),
    })
    .describe("the policy that was used: engine, content, and the stored version"),
  verified: Verified.optional().describe("with verified=true: the range that the run was read from"),
  head: Head.describe("the signed head that covers the entries read"),
  stored: z
    .object({
      id: HexId,
      report_hash: Hash.describe(
        "SHA-256 of the stored report, which is the answer without `stored` and `gate`",
      ),
      entry: z.object({ principal: PrincipalName, id: OpaqueId }),
    })
    .optional()
    .describe("with store=true: what GET /v1/rechecks/{id}/report finds it by"),
});

const recheck = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/runs/{run}/recheck",
    operation: "recheckRun",
    tag: "recheck",
    scope: "recheck",
    summary: "What another policy would have decided on a recorded run",
    description:
      'The body has the policy, or its name: {"policy": {"rules": {...}}}, {"policy": {"name": "...", "version": 2}}. With gate=strict or gate=proxy a failed gate is a 409 with the report in it.',
    params: z.object({ p: PrincipalName, run: OpaqueId }),
    query: z.object({
      gate: z.enum(["strict", "proxy"]).optional(),
      format: z.enum(RECHECK_FORMATS).default("json"),
      verified: z
        .enum(["true", "false"])
        .default("false")
        .describe("verify the range that the run is read from first; a broken log passes no gate"),
      store: z
        .enum(["true", "false"])
        .default("false")
        .describe("store the report, record it on the system log, and answer its id"),
    }),
    rawBody: {
      schema: z.object({
        policy: AskedPolicy,
        specs: z.enum(["recorded", "current"]).optional(),
        tools: z.array(z.record(z.string(), z.unknown())).optional().describe("with specs: current"),
      }),
      contentTypes: ["application/json"],
      limit: MAX_RECHECK_BODY,
    },
    answers: { 200: { description: "the report", schema: RecheckAnswer } },
  },
  async ({ request, env, caller, params, query, requestId }) => {
    const asked = await readRequest(request);
    const log = await openLog(env, caller, params.p);
    const verified = query.verified === "true" ? await verifyRun(env, log, params.run) : undefined;
    // A run that is not there is the fold's to answer.
    const range = verified ?? undefined;
    const opened = await openPolicy(env, caller.tenant.id, asked.policy);
    const { policy } = opened;
    let report: RecheckReport;
    let head: HeadView;
    let specHashes: readonly string[];
    try {
      const folded = await readable(foldRun(env, log, params.run, policy.readsView !== false), {
        gate: query.gate,
        range,
      });
      checkDecisions(policy, folded);
      const outcome = await log.stub.head(log.identity, log.epoch);
      if (!outcome.ok) throw refusal(outcome);
      head = outcome.head;
      specHashes = folded.specHashes;
      const specs = await readSpecs(env, caller.tenant.id, specHashes);
      report = await recheckRun(folded, policy, {
        crypto: nativeCrypto,
        principal: params.p,
        specSource: asked.specSource,
        specs: (hash) => specs.get(hash),
        ...(asked.currentTools === undefined ? {} : { currentTools: asked.currentTools }),
      });
    } finally {
      opened.close();
    }
    const added = JSON.stringify({
      policy: usedPolicy(opened),
      ...(range === undefined ? {} : { verified: range }),
      head: headOut(head),
    });
    let text = `${reportJson(report).slice(0, -1)},${added.slice(1)}`;
    if (query.store === "true") {
      const key = idempotencyKey(request);
      const kept = { key, asked, opened, log: log.identity, head, specHashes, report, text };
      const { text: first, stored } = await storeRunReport(env, caller, kept);
      text = `${first.slice(0, -1)},"stored":${JSON.stringify(stored)}}`;
    }
    const { gate, format } = query;
    return recheckAnswer({
      report,
      text,
      principal: params.p,
      gate,
      format,
      head,
      verified: range,
      requestId,
    });
  },
);

/** What can't be read any more of a range that is broken passes no gate; without one it is a 503, with the range. */
async function readable<T>(
  reading: Promise<T>,
  { gate, range }: { gate: string | undefined; range: Verified | undefined },
): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const isConflict = error instanceof Problem && error.code === "index-conflict";
    if (!isConflict || range === undefined || range.verdict === "intact") throw error;
    const members = { verified: range };
    throw gate === undefined
      ? new Problem("index-conflict", { ...error.options, members })
      : new Problem("gate-failed", { detail: "the log is broken: the run can't be read from it", members });
  }
}

async function readRequest(request: Request): Promise<ReturnType<typeof readRecheckRequest>> {
  const { text, ok } = decodeUtf8(await readBody(request, MAX_RECHECK_BODY));
  if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
  try {
    return readRecheckRequest(text);
  } catch (error) {
    throw policyProblem(error);
  }
}

/** Decisions have to be for evaluations of the run. Throws a 422 problem with the pointer of one that is not. */
function checkDecisions(policy: Policy, folded: FoldedRun): void {
  if (!isDecisions(policy)) return;
  try {
    policy.checkRun(folded);
  } catch (error) {
    throw policyProblem(error);
  }
}

export const recheckRoutes: readonly Route[] = [recheck];
