/**
 * Appending entries.
 *
 * @module
 */
import { z } from "zod";
import type { HeadView } from "../../durable-objects/principal-log/types.ts";
import { AppendAnswer, EntryIn, PrincipalName } from "../../shared/api/schemas.ts";
import { MAX_BATCH_BYTES } from "../../shared/entry/limits.ts";
import type { BodyForm } from "../../shared/entry/parse-batch.ts";
import { readBody } from "../http/body.ts";
import { headOut } from "../http/head.ts";
import { idempotencyKey, idempotentRequest } from "../http/idempotency.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import type { AppendResult } from "../logs/append.ts";
import { append } from "../logs/append.ts";
import type { Item } from "../logs/append-results.ts";
import { statusOf } from "../logs/append-results.ts";
import { refusal } from "../logs/open-log.ts";
import { proofsFor } from "../logs/proofs.ts";

const FLAG = z.enum(["true", "false"]).optional();

function bodyForm(request: Request): BodyForm {
  const type = (request.headers.get("content-type") ?? "application/json")
    .split(";")[0]
    ?.trim()
    .toLowerCase();
  if (type === "application/json") return "json";
  if (type === "application/x-ndjson" || type === "application/ndjson" || type === "application/jsonl")
    return "ndjson";
  throw new Problem("unsupported-media-type");
}

const appendEntries = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/entries",
    operation: "appendEntries",
    tag: "entries",
    scope: "ingest",
    summary: "Append one entry, an array of entries, or NDJSON",
    description:
      "A 2xx answer is sent only once the entries are durable. One bad entry costs only itself, unless atomic=true. The same id again gets the first receipt; the same id with other content is a conflict. With an Idempotency-Key the same request again within 24 hours gets the same answer, also where its entries have no ids.",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      atomic: FLAG.describe("all or nothing"),
      proof: FLAG.describe("add an inclusion proof under the answered head to each receipt"),
      wait: z.enum(["mirrored"]).optional().describe("answer after the head is in the mirror"),
    }),
    rawBody: {
      schema: z.union([EntryIn, z.array(EntryIn)]),
      contentTypes: ["application/json", "application/x-ndjson"],
      limit: MAX_BATCH_BYTES,
    },
    answers: {
      201: { description: "all stored", schema: AppendAnswer },
      200: { description: "all seen before", schema: AppendAnswer },
      207: { description: "some stored, some seen before or refused: see each result", schema: AppendAnswer },
    },
  },
  async ({ request, env, caller, params, query }) => {
    const form = bodyForm(request);
    const key = idempotencyKey(request);
    const bytes = await readBody(request, MAX_BATCH_BYTES);
    const atomic = query.atomic === "true";
    const terms = [form, query.atomic ?? null, query.proof ?? null, query.wait ?? null];
    const owner = [caller.tenant.id, params.p] as const;
    const idempotency =
      key === null ? null : idempotentRequest(env.MASTER_KEY, owner, key, "appendEntries", terms, bytes);
    const result = await append(env, caller, params.p, { form, bytes, atomic, idempotency });
    const head = query.wait === "mirrored" ? await waitMirrored(result) : result.head;
    const results = query.proof === "true" ? await addProofs(result) : result.results;
    return json(
      { results, head: headOut(head), mirrored_size: head.mirroredSize },
      statusOf(result.results),
      result.headers,
    );
  },
);

/** The head once one of its size is mirrored; where the answer is kept, as it was answered and not a later one. */
export async function waitMirrored({ log, head, kept }: AppendResult): Promise<HeadView> {
  const outcome = await log.stub.mirrored(log.identity, log.epoch, head.size);
  if (!outcome.ok) throw refusal(outcome);
  return kept ? { ...head, mirroredSize: head.size } : outcome.head;
}

async function addProofs({ log, results, head, kept }: AppendResult): Promise<Item[]> {
  const seqs = results.flatMap((item) => (item.seq === undefined ? [] : [item.seq]));
  const proofs = await proofsFor(log, seqs, kept ? head : null);
  return results.map((item) => {
    const proof = item.seq === undefined ? undefined : proofs.get(item.seq);
    return proof === undefined
      ? item
      : { ...item, proof: proof.text, checkpoint: proof.checkpoint, path: proof.path };
  });
}

export const entryRoutes: readonly Route[] = [appendEntries];
