/**
 * Reading entries: one log, the whole tenant, one entry.
 *
 * @module
 */
import { z } from "zod";
import { EntryOut, OpaqueId, Page, PrincipalName, Seq, TenantPage } from "../../shared/api/schemas.ts";
import { RunsealError } from "../../shared/errors.ts";
import { parseTime } from "../../shared/time.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { decodeCursor, encodeCursor } from "../http/cursor.ts";
import { Generation } from "../http/generation.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { jsonText, tenantRoute } from "../http/route.ts";
import type { EntryFilter } from "../index-db/entries.ts";
import { queryLog, queryTenant } from "../index-db/entries.ts";
import { openLog } from "../logs/open-log.ts";
import { proofsFor } from "../logs/proofs.ts";
import {
  barrier,
  indexSession,
  logIdOf,
  requireIndexed,
  requireTenantIndexed,
  rowText,
  tenantBarrier,
} from "../logs/read.ts";

const SeqParam = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER);

const Filters = z.object({
  session: OpaqueId.optional(),
  run: OpaqueId.optional(),
  kind: z.string().max(1000).optional().describe("one kind, or several with commas between"),
  tool: z.string().max(1024).optional().describe("action.tool"),
  status: z.string().max(64).optional().describe("outcome.status"),
  since: z.string().optional().describe("recorded at or after, RFC 3339"),
  until: z.string().optional().describe("recorded before, RFC 3339"),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(200).optional().describe("`next_cursor` of the page before, with the same query"),
});
const LogFilters = Filters.extend({
  from: SeqParam.optional(),
  to: SeqParam.optional(),
  generation: Generation.optional(),
});

function timeOf(text: string | undefined, name: string): bigint | undefined {
  if (text === undefined) return undefined;
  try {
    return parseTime(text);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    throw new Problem("invalid-request", { pointer: `?${name}`, detail: "a time is RFC 3339" });
  }
}

function filterOf(query: z.infer<typeof LogFilters>): EntryFilter {
  const { from, to, session, run, kind, tool, status } = query;
  return {
    from,
    to,
    session,
    run,
    kind,
    tool,
    status,
    since: timeOf(query.since, "since"),
    until: timeOf(query.until, "until"),
  };
}

/** What a cursor is bound to: everything but the page's size and the cursor itself. */
function scopeOf(tenant: string, place: string, query: z.infer<typeof LogFilters>): string[] {
  const { cursor: _cursor, limit: _limit, ...filters } = query;
  return [
    tenant,
    place,
    JSON.stringify(
      Object.entries(filters)
        .filter(([, value]) => value !== undefined)
        .sort(),
    ),
  ];
}

const listOne = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/entries",
    operation: "listEntries",
    tag: "entries",
    scope: "read",
    summary: "Entries of one log, in its order",
    description:
      "Holds everything acknowledged before the request; a lagging index is 503 index-rebuilding, never a short page.",
    params: z.object({ p: PrincipalName }),
    query: LogFilters,
    answers: { 200: { description: "a page", schema: Page } },
  },
  async ({ env, caller, params, query }) => {
    const filter = filterOf(query);
    const log = await openLog(env, caller, params.p, query.generation);
    const scope = scopeOf(caller.tenant.id, `${log.identity.principal}.${log.identity.generation}`, query);
    const after = decodeCursor(scope, query.cursor);
    const size = await barrier(log);
    const page = await queryLog(indexSession(env), logIdOf(log), filter, after, query.limit);
    await requireIndexed(log, page.indexed, size);
    const last = page.rows.at(-1);
    const next = page.more && last !== undefined ? encodeCursor(scope, last.seq) : null;
    const entries = page.rows.map((row) => rowText(row)).join(",");
    return jsonText(`{"entries":[${entries}],"next_cursor":${JSON.stringify(next)},"head_seq":${size}}`);
  },
);

const listAll = tenantRoute(
  {
    method: "GET",
    path: "/v1/entries",
    operation: "listTenantEntries",
    tag: "entries",
    scope: "read",
    summary: "Entries of all the tenant's logs, in the order in which the index received them",
    query: Filters,
    answers: { 200: { description: "a page", schema: TenantPage } },
  },
  async ({ env, caller, query }) => {
    const filter = filterOf(query);
    const scope = scopeOf(caller.tenant.id, `tenant/${caller.key.id}`, query);
    const after = decodeCursor(scope, query.cursor);
    const promised = await tenantBarrier(env, caller);
    const principals = mayUseAllPrincipals(caller) ? null : caller.key.principals;
    const page = await queryTenant(
      indexSession(env),
      caller.tenant.id,
      filter,
      principals,
      after,
      query.limit,
      [...promised.keys()],
    );
    await requireTenantIndexed(env, caller, promised, page.indexedLogs);
    const last = page.rows.at(-1);
    const next = page.more && last !== undefined ? encodeCursor(scope, last.pos) : null;
    const entries = page.rows.map((row) => rowText(row, { principal: JSON.stringify(row.name) })).join(",");
    return jsonText(`{"entries":[${entries}],"next_cursor":${JSON.stringify(next)}}`);
  },
);

const one = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/entries/{seq}",
    operation: "getEntry",
    tag: "entries",
    scope: "read",
    summary: "One entry; proof=true adds its inclusion proof",
    params: z.object({ p: PrincipalName, seq: SeqParam }),
    query: z.object({ proof: z.enum(["true", "false"]).optional(), generation: Generation.optional() }),
    answers: {
      200: {
        description: "the entry",
        schema: EntryOut.extend({
          seq: Seq,
          proof: z.string().optional().describe("c2sp.org/tlog-proof@v1"),
        }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    const size = await barrier(log);
    if (params.seq > size) throw new Problem("not-found");
    const range = { from: params.seq, to: params.seq };
    const page = await queryLog(indexSession(env), logIdOf(log), range, 0, 1);
    await requireIndexed(log, page.indexed, size);
    const [row] = page.rows;
    if (row === undefined)
      throw new Problem("index-rebuilding", { retryAfter: 60, detail: "the index lacks this entry" });
    const proof = query.proof === "true" ? (await proofsFor(log, [params.seq])).get(params.seq) : undefined;
    return jsonText(rowText(row, proof === undefined ? {} : { proof: JSON.stringify(proof.text) }));
  },
);

export const readingRoutes: readonly Route[] = [listOne, listAll, one];
