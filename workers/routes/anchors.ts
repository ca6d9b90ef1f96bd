/**
 * Heads that are kept elsewhere (docs/anchoring.md).
 *
 * @module
 */
import { z } from "zod";
import type { AnchoredLog } from "../../durable-objects/head-log/types.ts";
import { type AnchoredLogOut, AnchorIn, AnchorsPage, AnchorTaken } from "../../shared/api/anchors.ts";
import { decodeHashCursor, encodeHashCursor } from "../http/cursor.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { principalLog, takeAnchor, tenantLog } from "../logs/anchor.ts";
import { openLog, refusal } from "../logs/open-log.ts";
import { headsScope, openTenantLog, visiblePrincipals } from "./tenant-log.ts";

const MAX_PAGE = 1000;
function anchoredOut({ name, generation, logId, size, anchor }: AnchoredLog): z.infer<typeof AnchoredLogOut> {
  const log = { principal: name, generation, log_id: logId, size };
  if (anchor === null) return { ...log, anchor: null, age_seconds: null, lag_entries: size };
  const { root, checkpoint, where, receipt, by, anchoredAtMs } = anchor;
  const anchored_at = new Date(anchoredAtMs).toISOString();
  return {
    ...log,
    anchor: { size: anchor.size, root, checkpoint, where, receipt, by, anchored_at },
    age_seconds: Math.max(0, Math.floor((Date.now() - anchoredAtMs) / 1000)),
    lag_entries: Math.max(0, size - anchor.size),
  };
}

const post = tenantRoute(
  {
    method: "POST",
    path: "/v1/anchors",
    operation: "postAnchor",
    tag: "evidence",
    scope: "anchor",
    summary: "Say that a head is kept elsewhere: advanced, unchanged, or rejected; never lowered",
    description:
      "The checkpoint is compared with the log and with the last anchor. `unchanged`: that one or a later one was known. " +
      "Rejected is a 409 with the reason. A head with a good signature that contradicts the log raises an alarm.",
    body: AnchorIn,
    answers: {
      200: {
        description: "it is the log's, and kept",
        schema: AnchorTaken,
      },
    },
  },
  async ({ env, caller, body }) => {
    const heads = openTenantLog(env, caller);
    const log =
      body.principal === undefined
        ? tenantLog(caller, heads.stub, heads.identity)
        : principalLog(await openLog(env, caller, body.principal));
    const { checkpoint, where, receipt = null } = body;
    const taken = await takeAnchor(env, caller, heads, log, { checkpoint, where, receipt });
    if (taken.result === "rejected") {
      const { result, reason } = taken;
      throw new Problem("anchor-rejected", {
        pointer: "/checkpoint",
        detail: REASONS[reason],
        members: { result, reason },
      });
    }
    return json({ result: taken.result, log_id: taken.logId, size: taken.size, root: taken.root });
  },
);

const REASONS = {
  malformed: "it is not a C2SP checkpoint in a signed note",
  empty: "a head of no entries anchors nothing",
  "other-log": "its origin is not that of the log",
  "bad-signature": "no key that ever held the role signed it, or a signature does not verify",
  ahead: "it has more entries than the log",
  inconsistent: "it is not of the history that the log has, or had when it was anchored last",
} as const;

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/anchors",
    operation: "listAnchors",
    tag: "evidence",
    scope: "read",
    summary: "The last anchor of each log, its age, and how many entries came after it",
    query: z.object({
      cursor: z.string().max(200).optional(),
      limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
    }),
    answers: {
      200: {
        description: "the anchors",
        schema: AnchorsPage,
      },
    },
  },
  async ({ env, caller, query }) => {
    const { stub, identity } = openTenantLog(env, caller);
    const scope = headsScope("anchors", caller);
    const after = decodeHashCursor(scope, query.cursor);
    const outcome = await stub.anchored(identity, after, query.limit, visiblePrincipals(caller));
    if (!outcome.ok) throw refusal(outcome);
    const last = outcome.logs.length < query.limit ? undefined : outcome.logs.at(-1);
    return json({
      log: anchoredOut(outcome.own),
      logs: outcome.logs.map(anchoredOut),
      next_cursor: last === undefined ? null : encodeHashCursor(scope, last.logId),
    });
  },
);

export const anchorRoutes: readonly Route[] = [post, list];
