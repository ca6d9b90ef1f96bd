/**
 * Recheck of one run under another policy.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { Head, OpaqueId, PrincipalName } from "../../shared/api/schemas.ts";
import { fromBase64 } from "../../shared/bytes.ts";
import { decodeLeaf } from "../../shared/entry/decode-leaf.ts";
import { viewOf } from "../../shared/entry/to-view.ts";
import { RunsealError } from "../../shared/errors.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { recheckRun } from "../../shared/recheck/compare.ts";
import { RunFold } from "../../shared/recheck/fold.ts";
import type { FoldedRun } from "../../shared/recheck/model.ts";
import { passesGate, reportJson } from "../../shared/recheck/report.ts";
import { readRecheckRequest } from "../../shared/recheck/request.ts";
import { reportText } from "../../shared/recheck/text.ts";
import type { Env } from "../env.ts";
import { readBody } from "../http/body.ts";
import { headOut } from "../http/head.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { jsonText, plain, tenantRoute } from "../http/route.ts";
import { queryLog } from "../index-db/entries.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { openLog, refusal } from "../logs/open-log.ts";
import { barrier, indexSession, logIdOf, requireIndexed } from "../logs/read.ts";

const MAX_RECHECK_BODY = 4 * 1024 * 1024;
const PAGE = 500;

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
  head: Head.describe("the signed head that covers the entries read"),
});

/** Reads the run's entries in order into the fold. Throws 404 and 503 problems. */
async function foldRun(env: Env, log: OpenLog, run: string, keepViews: boolean): Promise<FoldedRun> {
  const size = await barrier(log);
  const fold = new RunFold(run, { keepViews });
  let entries = 0;
  for (let after = 0; ; ) {
    const page = await queryLog(indexSession(env), logIdOf(log), { run, to: size }, after, PAGE);
    await requireIndexed(log, page.indexed, size);
    for (const row of page.rows) fold.add(viewOf(decodeLeaf(fromBase64(row.leaf)), row.hash, row.content));
    entries += page.rows.length;
    const last = page.rows.at(-1);
    if (!page.more || last === undefined) break;
    after = last.seq;
  }
  if (entries === 0) throw new Problem("not-found");
  return fold.finish();
}

async function readSpecs(
  env: Env,
  tenant: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (hashes.length === 0) return new Map();
  const { results } = await env.DB.prepare(
    "SELECT hash, spec FROM tool_specs WHERE tenant = ?1 AND hash IN (SELECT value FROM json_each(?2))",
  )
    .bind(tenant, JSON.stringify(hashes))
    .all<{ hash: string; spec: string }>();
  return new Map(results.map(({ hash, spec }) => [hash, spec]));
}

const recheck = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/runs/{run}/recheck",
    operation: "recheckRun",
    tag: "recheck",
    scope: "recheck",
    summary: "What another policy would have decided on a recorded run",
    description:
      'The body names the policy: {"policy": {"rules": {...}}}. With gate=strict or gate=proxy a failed gate is a 409 with the report in it.',
    params: z.object({ p: PrincipalName, run: OpaqueId }),
    query: z.object({
      gate: z.enum(["strict", "proxy"]).optional(),
      format: z.enum(["json", "text"]).default("json"),
    }),
    rawBody: {
      schema: z.object({
        policy: z.object({ rules: z.record(z.string(), z.unknown()) }),
        specs: z.enum(["recorded", "current"]).optional(),
        tools: z.array(z.record(z.string(), z.unknown())).optional().describe("with specs: current"),
      }),
      contentTypes: ["application/json"],
      limit: MAX_RECHECK_BODY,
    },
    answers: { 200: { description: "the report", schema: RecheckAnswer } },
  },
  async ({ request, env, caller, params, query }) => {
    const asked = await readRequest(request);
    const log = await openLog(env, caller, params.p);
    const folded = await foldRun(env, log, params.run, asked.policy.readsView !== false);
    const outcome = await log.stub.head(log.identity, log.epoch);
    if (!outcome.ok) throw refusal(outcome);
    const specs = await readSpecs(env, caller.tenant.id, folded.specHashes);
    const report = await recheckRun(folded, asked.policy, {
      crypto: nativeCrypto,
      specSource: asked.specSource,
      specs: (hash) => specs.get(hash),
      ...(asked.currentTools === undefined ? {} : { currentTools: asked.currentTools }),
    });
    const passed = query.gate === undefined ? undefined : passesGate(query.gate, [report]);
    const gate = passed === undefined ? "" : `,"gate":{"name":"${query.gate}","passed":${passed}}`;
    const text = `${reportJson(report).slice(0, -1)}${gate},"head":${JSON.stringify(headOut(outcome.head))}}`;
    if (passed === false)
      throw new Problem("gate-failed", { members: { report: JSON.parse(text) as unknown } });
    return query.format === "text" ? plain(`${reportText(report)}\n`) : jsonText(text);
  },
);

async function readRequest(request: Request): Promise<ReturnType<typeof readRecheckRequest>> {
  const { text, ok } = decodeUtf8(await readBody(request, MAX_RECHECK_BODY));
  if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
  try {
    return readRecheckRequest(nativeCrypto, text);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    if (error.code === "json-syntax")
      throw new Problem("json-syntax", { pointer: error.pointer ?? "", detail: error.message });
    throw new Problem("invalid-policy", { pointer: error.pointer ?? "/policy", detail: error.message });
  }
}

export const recheckRoutes: readonly Route[] = [recheck];
