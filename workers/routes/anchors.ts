/**
 * Heads that are kept elsewhere (docs/anchoring.md).
 *
 * @module
 */
import { z } from "zod";
import type { AnchoredLog } from "../../durable-objects/head-log/types.ts";
import { Hash, PrincipalName, Time } from "../../shared/api/schemas.ts";
import { decodeHashCursor, encodeHashCursor } from "../http/cursor.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { principalLog, takeAnchor, tenantLog } from "../logs/anchor.ts";
import { openLog, refusal } from "../logs/open-log.ts";
import { headsScope, openTenantLog, visiblePrincipals } from "./tenant-log.ts";

const MAX_PAGE = 1000;
/** Characters of a receipt: a time stamp token with its certificates in base64, or an inclusion proof. */
const MAX_RECEIPT = 65_536;
/** A note has at most a hundred signatures; those of logs and witnesses are some hundred characters each. */
const MAX_CHECKPOINT = 65_536;

const AnchorIn = z
  .strictObject({
    principal: PrincipalName.optional().describe("whose log it is; or `log`"),
    log: z.literal("tenant").optional().describe("the tenant's log of heads"),
    checkpoint: z.string().min(1).max(MAX_CHECKPOINT).describe("the head that is kept: a signed note"),
    where: z.string().min(1).max(1000).describe("where it is kept, in your words"),
    receipt: z
      .string()
      .min(1)
      .max(MAX_RECEIPT)
      .optional()
      .describe("what you got for it there; not looked into"),
  })
  .refine(({ principal, log }) => (principal === undefined) !== (log === undefined), {
    message: "one of principal and log",
    path: ["principal"],
  });

const AnchorOut = z.object({
  size: z.int().min(1),
  root: Hash,
  checkpoint: z.string(),
  where: z.string(),
  receipt: z.string().nullable(),
  by: z.string().describe("the API key that said so"),
  anchored_at: Time,
});

const AnchoredLogOut = z.object({
  principal: PrincipalName.nullable().describe("null for the tenant's log of heads"),
  generation: z.int().min(0),
  log_id: Hash,
  size: z.int().min(0).describe("of the head that was reported last, some seconds ago"),
  anchor: AnchorOut.nullable().describe("the last head that is known to be kept elsewhere"),
  age_seconds: z.int().min(0).nullable(),
  lag_entries: z.int().min(0).describe("entries after the anchor"),
});

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
        schema: z.object({
          result: z.enum(["advanced", "unchanged"]),
          log_id: Hash,
          size: z.int().min(1),
          root: Hash,
        }),
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
        schema: z.object({
          log: AnchoredLogOut.describe("the tenant's log of heads"),
          logs: z.array(AnchoredLogOut).describe("by log id"),
          next_cursor: z.string().nullable(),
        }),
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
