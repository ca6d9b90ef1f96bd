/**
 * Erasing content.
 *
 * @module
 */
import { z } from "zod";
import type { ErasureReport, ErasureTarget } from "../../durable-objects/content/erasure-types.ts";
import { ERASURE_STEPS } from "../../durable-objects/content/erasure-types.ts";
import { Hash, HexId, OpaqueId, PrincipalName, Seq, Time } from "../../shared/api/schemas.ts";
import { FieldSelection, SELECTED_FIELD } from "../../shared/entry/field-selection.ts";
import { MAX_FIELDS } from "../../shared/entry/limits.ts";
import { Generation } from "../http/generation.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { eraseContent } from "../logs/erase.ts";
import { openLog, SYSTEM_PRINCIPAL } from "../logs/open-log.ts";

/** Entries of one request: what one event of a Durable Object can rewrite, whatever their size. */
const MAX_ERASED = 1000;

const ErasureIn = z.strictObject({
  from: Seq.optional(),
  to: Seq.optional(),
  seq: Seq.optional().describe("one entry"),
  ids: z.array(OpaqueId).min(1).max(MAX_ERASED).optional(),
  fields: z
    .array(z.string().regex(SELECTED_FIELD, "a field is named section.name, as in action.args"))
    .min(1)
    .max(MAX_FIELDS)
    .optional()
    .describe("as section.name; without it, all fields"),
  reason: z.string().min(1).max(1000).describe("kept on the system log: no personal data"),
});

const Place = z.object({ seq: Seq, hash: Hash });
const ErasureAnswer = z.object({
  id: HexId,
  entries: z.int().min(0).describe("entries that lost content by this erasure"),
  done: z.array(z.enum(ERASURE_STEPS)),
  pending: z
    .array(z.enum(ERASURE_STEPS))
    .describe("log: its storage and the keys of its boxes; index: D1; record: erasure.done"),
  recoverable_until: Time.nullable().describe(
    "until when point-in-time recovery could bring the content back; null while it is not gone everywhere",
  ),
  requested: Place.describe("the erasure.requested entry on $system"),
  recorded: Place.nullable().describe("the erasure.done entry on $system"),
});

function targetOf({ from, to, seq, ids }: z.infer<typeof ErasureIn>): ErasureTarget {
  const refuse = (pointer: string, detail: string): Problem =>
    new Problem("invalid-request", { pointer, detail: `body: ${detail}` });
  const ways = [seq, ids, from ?? to].filter((way) => way !== undefined).length;
  if (ways !== 1) throw refuse("", "entries are named by seq, by ids, or by from and to");
  if (ids !== undefined) return { ids: [...new Set(ids)] };
  if (seq !== undefined) return { from: seq, to: seq };
  if (from === undefined) throw refuse("/from", "a range has a from and a to");
  if (to === undefined || to < from)
    throw refuse("/to", "a range has a from, and a to that is not before it");
  if (to - from >= MAX_ERASED) throw refuse("/to", `a request erases at most ${MAX_ERASED} entries`);
  return { from, to };
}

function answerOf({ pending, recoverableUntil, ...report }: ErasureReport): z.infer<typeof ErasureAnswer> {
  return {
    id: report.id,
    entries: report.entries,
    done: ERASURE_STEPS.filter((step) => !pending.includes(step)),
    pending: [...pending],
    recoverable_until: recoverableUntil,
    requested: report.requested,
    recorded: report.recorded,
  };
}

const erase = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/erasures",
    operation: "eraseContent",
    tag: "erasure",
    scope: "admin",
    summary: "Erase values and salts of entries, or of single fields; the log still verifies",
    description:
      "On $system before and after. The same request again is the same erasure: it answers how far that is, and erases once more what a restored index brought back. docs/privacy.md says what remains.",
    params: z.object({ p: PrincipalName }),
    query: z.object({ generation: Generation.optional() }),
    body: ErasureIn,
    answers: {
      200: { description: "erased everywhere, and recorded", schema: ErasureAnswer },
      202: { description: "taken: what is pending is done as soon as it can be", schema: ErasureAnswer },
    },
  },
  async ({ env, caller, params, query, body }) => {
    const target = targetOf(body);
    const selection = body.fields === undefined ? FieldSelection.all : FieldSelection.of(body.fields);
    if (params.p === SYSTEM_PRINCIPAL) {
      throw new Problem("forbidden", { detail: "nothing is erased from the service's own log" });
    }
    const log = await openLog(env, caller, params.p, query.generation);
    const report = await eraseContent(env, caller, log, { target, selection, reason: body.reason });
    return json(answerOf(report), report.pending.length === 0 ? 200 : 202);
  },
);

export const erasureRoutes: readonly Route[] = [erase];
