/**
 * Tool specs: stored once, under the hash of their canonical text, so that a reader can tell that they are unchanged.
 *
 * @module
 */
import { z } from "zod";
import { Hash } from "../../shared/api/schemas.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { readBody } from "../http/body.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, jsonText, tenantRoute } from "../http/route.ts";
import { readSpecs } from "../tools/read-specs.ts";
import { readSpec, ToolSpec } from "../tools/spec.ts";
import { storeSpec } from "../tools/store.ts";

const MAX_SPEC_BYTES = 256 * 1024;

const put = tenantRoute(
  {
    method: "PUT",
    path: "/v1/tools/{hash}",
    operation: "putTool",
    tag: "tools",
    scope: "ingest",
    summary: "Store a tool spec under the SHA-256 of its canonical JSON",
    params: z.object({ hash: Hash }),
    rawBody: { schema: ToolSpec, contentTypes: ["application/json"], limit: MAX_SPEC_BYTES },
    answers: { 200: { description: "stored", schema: z.object({ hash: Hash }) } },
  },
  async ({ request, env, caller, params }) => {
    const { text, ok } = decodeUtf8(await readBody(request, MAX_SPEC_BYTES));
    if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
    const spec = readSpec(text);
    if (spec.hash !== params.hash) {
      throw new Problem("invalid-request", {
        pointer: "?hash",
        detail: "the path is not the hash of the body's canonical JSON",
      });
    }
    await storeSpec(env, caller.tenant.id, spec);
    return json({ hash: spec.hash });
  },
);

const get = tenantRoute(
  {
    method: "GET",
    path: "/v1/tools/{hash}",
    operation: "getTool",
    tag: "tools",
    scope: "read",
    summary: "A tool spec by hash",
    params: z.object({ hash: Hash }),
    query: z.object({}),
    answers: { 200: { description: "its canonical JSON", schema: ToolSpec } },
  },
  async ({ env, caller, params }) => {
    const specs = await readSpecs(env, caller.tenant.id, [params.hash]);
    const spec = specs.get(params.hash);
    if (spec === undefined) throw new Problem("not-found");
    return jsonText(spec);
  },
);

export const toolRoutes: readonly Route[] = [put, get];
