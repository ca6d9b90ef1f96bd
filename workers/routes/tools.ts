/**
 * Tool specs: stored once, under the hash of their canonical text, so that a reader can tell that they are unchanged.
 *
 * @module
 */
import { z } from "zod";
import { nativeCrypto } from "../../native/crypto.ts";
import { Hash } from "../../shared/api/schemas.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { canonicalJson } from "../../shared/json/canonical.ts";
import { JsonError } from "../../shared/json/errors.ts";
import { decodeUtf8 } from "../../shared/json/utf8.ts";
import { readBody } from "../http/body.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, jsonText, tenantRoute } from "../http/route.ts";

const MAX_SPEC_BYTES = 256 * 1024;

/** What a spec must have; more is kept as it is. */
const ToolSpec = z.looseObject({
  name: z.string().min(1).max(256),
  description: z.string().optional(),
  input_schema: z.unknown().optional(),
  side_effect: z
    .string()
    .max(64)
    .optional()
    .describe("read_only, local_mutation, remote_mutation or destructive; empty where it is not known"),
  timeout: z.number().optional(),
  terminal: z.boolean().optional(),
});

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
    let canonical: string;
    try {
      if (!ok) throw new Problem("json-syntax", { pointer: "", detail: "the body is not UTF-8" });
      canonical = canonicalJson(text);
    } catch (error) {
      if (error instanceof JsonError)
        throw new Problem(error.code, { pointer: error.pointer, detail: error.message });
      throw error;
    }
    const parsed = ToolSpec.safeParse(JSON.parse(canonical));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new Problem("invalid-field", {
        pointer: `/${(issue?.path ?? []).join("/")}`,
        detail: "not a tool spec",
      });
    }
    const hash = toHex(nativeCrypto.sha256(utf8(canonical)));
    if (hash !== params.hash) {
      throw new Problem("invalid-request", {
        pointer: "?hash",
        detail: "the path is not the hash of the body's canonical JSON",
      });
    }
    await env.DB.prepare("INSERT INTO tool_specs VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
      .bind(caller.tenant.id, hash, canonical, new Date().toISOString())
      .run();
    return json({ hash });
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
    const spec = await readSpec(env.DB, caller.tenant.id, params.hash);
    if (spec === null) throw new Problem("not-found");
    return jsonText(spec);
  },
);

/** A spec's canonical text; null where there is none. A text that does not give its hash is as good as none. */
export async function readSpec(db: D1Database, tenant: string, hash: string): Promise<string | null> {
  const row = await db
    .prepare("SELECT spec FROM tool_specs WHERE tenant = ?1 AND hash = ?2")
    .bind(tenant, hash)
    .first<{ spec: string }>();
  return row?.spec ?? null;
}

export const toolRoutes: readonly Route[] = [put, get];
