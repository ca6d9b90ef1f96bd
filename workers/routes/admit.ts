/**
 * Fail-closed admission: a runtime that must not act unrecorded asks here first, and acts only on a 2xx.
 *
 * @module
 */
import { z } from "zod";
import { Admitted, EntryIn, PrincipalName } from "../../shared/api/schemas.ts";
import { MAX_BATCH_BYTES } from "../../shared/entry/limits.ts";
import { readBody } from "../http/body.ts";
import { headOut } from "../http/head.ts";
import { idempotencyKey, idempotentRequest } from "../http/idempotency.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import { append } from "../logs/append.ts";
import { waitMirrored } from "./entries.ts";

/** First byte of a JSON object, after white space. */
const OBJECT = /^[\x20\t\n\r]*\{/;

const admit = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/admit",
    operation: "admit",
    tag: "entries",
    scope: "ingest",
    summary: "Write an entry ahead of the act that it names, and only then admit the act",
    description:
      "The body is one entry, of kind host.admitted or any other. A 2xx with admitted=true is sent only once the entry is durable. Every other answer, and none at all, means: not admitted. The same id again is the same act: it is admitted with the first receipt; the same id with other content is not.",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      wait: z.enum(["mirrored"]).optional().describe("admit only after the head is in the mirror"),
    }),
    rawBody: { schema: EntryIn, contentTypes: ["application/json"], limit: MAX_BATCH_BYTES },
    answers: {
      201: { description: "admitted: the entry is durable", schema: Admitted },
      200: { description: "admitted: the entry was durable before", schema: Admitted },
    },
  },
  async ({ request, env, caller, params, query }) => {
    try {
      const type = (request.headers.get("content-type") ?? "application/json").split(";")[0]?.trim();
      if (type?.toLowerCase() !== "application/json") throw new Problem("unsupported-media-type");
      const key = idempotencyKey(request);
      const bytes = await readBody(request, MAX_BATCH_BYTES);
      if (!OBJECT.test(new TextDecoder().decode(bytes.subarray(0, 1024)))) {
        const detail = "one entry is admitted at a time: the body is a JSON object";
        throw new Problem("invalid-request", { pointer: "", detail });
      }
      const terms = [query.wait ?? null];
      const owner = [caller.tenant.id, params.p] as const;
      const idempotency =
        key === null ? null : idempotentRequest(env.MASTER_KEY, owner, key, "admit", terms, bytes);
      const result = await append(env, caller, params.p, { form: "json", bytes, atomic: false, idempotency });
      const head = query.wait === "mirrored" ? await waitMirrored(result) : result.head;
      const [entry] = result.results;
      // Nothing but a receipt admits.
      if (entry?.seq === undefined || entry.status === undefined || entry.error !== undefined)
        throw new Problem("internal");
      const { id, seq, hash, status } = entry;
      return json(
        { admitted: true, id, seq, hash, status, head: headOut(head), mirrored_size: head.mirroredSize },
        status === "stored" ? 201 : 200,
        result.headers,
      );
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const members = { ...error.options.members, admitted: false };
      throw new Problem(error.code, { ...error.options, members });
    }
  },
);

export const admitRoutes: readonly Route[] = [admit];
