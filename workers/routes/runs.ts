/**
 * The runs of a principal.
 *
 * @module
 */
import { z } from "zod";
import { OpaqueId, PrincipalName, RunSummary } from "../../shared/api/schemas.ts";
import { formatTime } from "../../shared/time.ts";
import { decodeCursor, encodeCursor } from "../http/cursor.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import type { RunFacts } from "../index-db/entries.ts";
import { queryRun, queryRuns } from "../index-db/entries.ts";
import { openLog } from "../logs/open-log.ts";
import { barrier, indexSession, logIdOf, requireIndexed } from "../logs/read.ts";

const RunLine = z.object({ run: OpaqueId, first_seq: z.int(), last_seq: z.int(), entries: z.int() });

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/runs",
    operation: "listRuns",
    tag: "runs",
    scope: "read",
    summary: "The runs of a log, in the order of their first entries",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      limit: z.coerce.number().int().min(1).max(1000).default(100),
      cursor: z.string().max(200).optional(),
    }),
    answers: {
      200: {
        description: "a page",
        schema: z.object({ runs: z.array(RunLine), next_cursor: z.string().nullable(), head_seq: z.int() }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p);
    const scope = [caller.tenant.id, logIdOf(log), "runs"];
    const after = decodeCursor(scope, query.cursor);
    const size = await barrier(log);
    const { runs, indexed } = await queryRuns(indexSession(env), logIdOf(log), after, query.limit);
    await requireIndexed(log, indexed, size);
    const last = runs.at(-1);
    return json({
      runs,
      next_cursor:
        runs.length === query.limit && last !== undefined ? encodeCursor(scope, last.first_seq) : null,
      head_seq: size,
    });
  },
);

function tally(
  facts: RunFacts,
  key: (group: RunFacts["groups"][number]) => string | null,
): Record<string, number> {
  const out = new Map<string, number>();
  for (const group of facts.groups) {
    const name = key(group);
    if (name !== null) out.set(name, (out.get(name) ?? 0) + group.n);
  }
  return Object.fromEntries([...out].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function statusOf(facts: RunFacts): string {
  const last = facts.lastStatus;
  if (last === null) return "open";
  return last.kind === "run.status" ? (last.status ?? "unknown") : last.kind.slice("run.".length);
}

const one = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/runs/{run}",
    operation: "getRun",
    tag: "runs",
    scope: "read",
    summary: "A run's summary: its span, status, and what it did, counted",
    params: z.object({ p: PrincipalName, run: OpaqueId }),
    query: z.object({}),
    answers: { 200: { description: "the summary", schema: RunSummary } },
  },
  async ({ env, caller, params }) => {
    const log = await openLog(env, caller, params.p);
    const size = await barrier(log);
    const facts = await queryRun(indexSession(env), logIdOf(log), params.run);
    await requireIndexed(log, facts.indexed, size);
    if (facts.run === null) throw new Problem("not-found");
    return json({
      ...facts.run,
      first_recorded_at: formatTime(BigInt(facts.firstAt ?? "0")),
      last_recorded_at: formatTime(BigInt(facts.lastAt ?? "0")),
      status: statusOf(facts),
      kinds: tally(facts, (group) => group.kind),
      tools: tally(facts, (group) => (group.kind === "tool.call.started" ? group.tool : null)),
      decisions: tally(facts, (group) => group.decision),
    });
  },
);

export const runRoutes: readonly Route[] = [list, one];
