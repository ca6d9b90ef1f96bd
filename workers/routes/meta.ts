/**
 * The contract and the state of the service.
 *
 * @module
 */
import { z } from "zod";
import { SERVICE_OBJECT } from "../../durable-objects/tenant-directory/tenant-directory.ts";
import { openApiDocument } from "../http/openapi.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute } from "../http/route.ts";
import { routes } from "./index.ts";

let document: string | null = null;

const openapi = openRoute(
  {
    method: "GET",
    path: "/openapi.json",
    operation: "getOpenApi",
    tag: "service",
    access: "none",
    summary: "This contract, OpenAPI 3.1",
    answers: { 200: { description: "the document", schema: z.looseObject({ openapi: z.string() }) } },
  },
  async () => {
    document ??= JSON.stringify(openApiDocument(routes));
    return new Response(document, {
      headers: { "content-type": "application/json", "cache-control": "public, max-age=60" },
    });
  },
);

const healthz = openRoute(
  {
    method: "GET",
    path: "/healthz",
    operation: "healthz",
    tag: "service",
    access: "none",
    summary: "Whether the Worker runs",
    answers: { 200: { description: "it does", schema: z.object({ status: z.literal("ok") }) } },
  },
  async () => json({ status: "ok" }),
);

const readyz = openRoute(
  {
    method: "GET",
    path: "/readyz",
    operation: "readyz",
    tag: "service",
    access: "none",
    summary: "Whether D1, R2 and a Durable Object answer",
    answers: { 200: { description: "they do", schema: z.object({ status: z.literal("ready") }) } },
  },
  async ({ env }) => {
    try {
      await Promise.all([
        env.DB.prepare("SELECT 1 FROM tenants LIMIT 1").all(),
        env.MIRROR.head("ready"),
        env.TENANT_DIRECTORY.getByName(SERVICE_OBJECT).tenant(),
      ]);
    } catch {
      const detail = "the index, the mirror or a Durable Object does not answer";
      throw new Problem("unavailable", { detail, retryAfter: 2 });
    }
    return json({ status: "ready" });
  },
);

const DOCS = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Runseal API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
code{font-family:ui-monospace,monospace}td,th{text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:top}
tr+tr td{border-top:1px solid #ddd}</style>
<h1>Runseal API</h1><p>The whole contract is <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>
<table id="routes"><tr><th>Call</th><th>Scope</th><th>What</th></tr></table>
<script type="module">
const spec = await (await fetch("/openapi.json")).json();
for (const [path, methods] of Object.entries(spec.paths)) for (const [method, op] of Object.entries(methods)) {
  const row = document.getElementById("routes").insertRow();
  const code = document.createElement("code"); code.textContent = method.toUpperCase() + " " + path;
  row.insertCell().append(code);
  row.insertCell().textContent = op["x-runseal-access"];
  row.insertCell().textContent = op.summary;
}
</script></html>`;

const docs = openRoute(
  {
    method: "GET",
    path: "/docs",
    operation: "docs",
    tag: "service",
    access: "none",
    summary: "The calls, for people",
    answers: { 200: { description: "a page", contentType: "text/html" } },
  },
  async () =>
    new Response(DOCS, {
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy":
          "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'",
        "x-content-type-options": "nosniff",
      },
    }),
);

export const metaRoutes: readonly Route[] = [openapi, docs, healthz, readyz];
