/**
 * A run's evaluations, for a policy that runs elsewhere.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { OpaqueId, PrincipalName } from "../../shared/api/schemas.ts";
import { evaluationLines } from "../../shared/recheck/evaluations.ts";
import type { Route } from "../http/route.ts";
import { tenantRoute } from "../http/route.ts";
import { openLog } from "../logs/open-log.ts";
import { foldRun } from "../runs/fold-run.ts";
import { readSpecs } from "../tools/read-specs.ts";

/** UTF-16 units of lines that are sent together. */
const CHUNK = 64 * 1024;

const list = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/runs/{run}/evaluations",
    operation: "listEvaluations",
    tag: "recheck",
    scope: "read",
    summary: "A run's policy evaluations, rebuilt as a policy saw them: one JSON object a line",
    description:
      "Run a policy of your own over the lines that have a request, and post its answers to recheck as decisions. A line without a request says why it can't be re-checked.",
    params: z.object({ p: PrincipalName, run: OpaqueId }),
    query: z.object({
      views: z
        .enum(["true", "false"])
        .default("true")
        .describe("false leaves out the steps and approvals that each evaluation saw"),
    }),
    answers: {
      200: { description: "the evaluations, in order", contentType: "application/x-ndjson" },
    },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p);
    const folded = await foldRun(env, log, params.run, true);
    const specs = await readSpecs(env, caller.tenant.id, folded.specHashes);
    const lines = evaluationLines(folded, {
      crypto: nativeCrypto,
      principal: params.p,
      specs: (hash) => specs.get(hash),
      views: query.views === "true",
    });
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        let text = "";
        while (text.length < CHUNK) {
          const next = lines.next();
          if (next.done === true) {
            if (text !== "") controller.enqueue(encoder.encode(text));
            controller.close();
            return;
          }
          text += `${next.value}\n`;
        }
        controller.enqueue(encoder.encode(text));
      },
    });
    return new Response(body, {
      headers: {
        "content-type": "application/x-ndjson",
        "cache-control": "no-store",
        "runseal-evaluations": String(folded.evaluations.length),
      },
    });
  },
);

export const evaluationRoutes: readonly Route[] = [list];
