/**
 * A route is declared once: what it takes, what it answers, who may call it. The Worker serves it, /openapi.json
 * describes it, and the tests check real answers against it, all from the same declaration.
 *
 * @module
 */
import type { z } from "zod";
import type { Scope } from "../../shared/api/scopes.ts";
import type { Env } from "../env.ts";
import type { Caller } from "./auth.ts";
import { authenticate, requireOperator, requireScope } from "./auth.ts";
import { readBody } from "./body.ts";
import { parseJsonBody } from "./json-body.ts";
import { Problem } from "./problem.ts";

/** Bytes of a JSON body that is no batch of entries. */
const MAX_JSON_BODY = 1024 * 1024;

/** What a handler needs of the platform's execution context. */
export type Execution = Pick<ExecutionContext, "waitUntil">;

export interface Answer {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** `application/json` unless said otherwise. */
  readonly contentType?: string;
}

export interface RouteContext<P, Q, B> {
  readonly request: Request;
  readonly env: Env;
  readonly execution: Execution;
  readonly requestId: string;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

interface RouteShape {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With `{name}` for a parameter; `{name+}` takes the rest of the path. */
  readonly path: string;
  readonly operation: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Schema of a body that the handler reads itself: documented, not validated here. */
  readonly rawBody?: {
    readonly schema: z.ZodType;
    readonly contentTypes: readonly string[];
    readonly limit: number;
  };
}

type ObjectSchema = z.ZodObject;

/** A route that anyone, the operator, or a key with a scope may call. */
export interface Route extends RouteShape {
  readonly access: "none" | "operator" | Scope;
  readonly params?: ObjectSchema;
  readonly query?: ObjectSchema;
  readonly body?: z.ZodType;
  readonly run: (
    request: Request,
    env: Env,
    execution: Execution,
    requestId: string,
    rawParams: Readonly<Record<string, string>>,
  ) => Promise<Response>;
}

interface Parts<P extends ObjectSchema, Q extends ObjectSchema, B extends z.ZodType> extends RouteShape {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
}

type Context<P extends ObjectSchema, Q extends ObjectSchema, B extends z.ZodType> = RouteContext<
  z.infer<P>,
  z.infer<Q>,
  z.infer<B>
>;

/** A 400 problem from what Zod found first. */
export function refuse(error: z.ZodError, where: "path" | "query" | "body"): Problem {
  const [issue] = error.issues;
  const path = [...(issue?.path ?? [])];
  if (issue?.code === "unrecognized_keys" && issue.keys[0] !== undefined) path.push(issue.keys[0]);
  const names = path.map((part) => String(part).replaceAll("~", "~0").replaceAll("/", "~1"));
  const pointer = where === "body" ? names.map((name) => `/${name}`).join("") : `?${names.join(".")}`;
  return new Problem("invalid-request", {
    pointer,
    detail: `${where}: ${issue?.message ?? "not as the contract demands"}`,
  });
}

/** A query as a route takes it: nothing that it does not declare. Made once: to derive a schema costs more than to use it. */
function strictQuery(query: ObjectSchema | undefined): z.ZodType | null {
  return query?.strict() ?? null;
}

/** A URL's query. Most appends have none: to parse the whole of it each time is a tenth of what one entry costs here. */
function searchParams(url: string): Iterable<readonly [string, string]> {
  if (!url.includes("?")) return [];
  const [address = ""] = url.split("#", 1);
  const at = address.indexOf("?");
  // With its question mark: of a text that begins with one, URLSearchParams drops it, were it the second one.
  return at < 0 ? [] : new URLSearchParams(address.slice(at));
}

async function parseParts<P extends ObjectSchema, Q extends ObjectSchema, B extends z.ZodType>(
  parts: Parts<P, Q, B>,
  strict: z.ZodType | null,
  request: Request,
  rawParams: Readonly<Record<string, string>>,
): Promise<{ params: z.infer<P>; query: z.infer<Q>; body: z.infer<B> }> {
  const params = parts.params?.safeParse(rawParams);
  // A name that can't exist is answered like one that doesn't.
  if (params?.success === false) throw new Problem("not-found");
  const rawQuery: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of searchParams(request.url)) {
    if (name in rawQuery)
      throw new Problem("invalid-request", { pointer: `?${name}`, detail: "query: given twice" });
    rawQuery[name] = value;
  }
  let query: z.infer<Q> | undefined;
  if (strict !== null) {
    const parsed = strict.safeParse({ ...rawQuery });
    if (!parsed.success) throw refuse(parsed.error, "query");
    query = parsed.data as z.infer<Q>;
  }
  let body: z.infer<B> | undefined;
  if (parts.body !== undefined) {
    const value = parseJsonBody(await readBody(request, MAX_JSON_BODY));
    const parsed = parts.body.safeParse(value);
    if (!parsed.success) throw refuse(parsed.error, "body");
    body = parsed.data;
  }
  return { params: params?.data as z.infer<P>, query: query as z.infer<Q>, body: body as z.infer<B> };
}

/** A route for keys with a scope: the handler gets the caller. */
export function tenantRoute<
  P extends ObjectSchema = ObjectSchema,
  Q extends ObjectSchema = ObjectSchema,
  B extends z.ZodType = z.ZodType,
>(
  parts: Parts<P, Q, B> & { readonly scope: Scope },
  handle: (context: Context<P, Q, B> & { readonly caller: Caller }) => Promise<Response>,
): Route {
  const strict = strictQuery(parts.query);
  return {
    ...parts,
    access: parts.scope,
    run: async (request, env, execution, requestId, rawParams) => {
      // Who is asking comes first: a request that may not ask learns nothing of what is wrong with it.
      const caller = await authenticate(request, env);
      requireScope(caller, parts.scope);
      const parsed = await parseParts(parts, strict, request, rawParams);
      return handle({ request, env, execution, requestId, caller, ...parsed });
    },
  };
}

/** A route for the operator, or for anyone. */
export function openRoute<
  P extends ObjectSchema = ObjectSchema,
  Q extends ObjectSchema = ObjectSchema,
  B extends z.ZodType = z.ZodType,
>(
  parts: Parts<P, Q, B> & { readonly access: "none" | "operator" },
  handle: (context: Context<P, Q, B>) => Promise<Response>,
): Route {
  const strict = strictQuery(parts.query);
  return {
    ...parts,
    run: async (request, env, execution, requestId, rawParams) => {
      if (parts.access === "operator") requireOperator(request, env);
      const parsed = await parseParts(parts, strict, request, rawParams);
      return handle({ request, env, execution, requestId, ...parsed });
    },
  };
}

/** A JSON answer. Nothing of a tenant is ever cached on the way. */
export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return jsonText(JSON.stringify(value), status, headers);
}

/** A JSON answer from text, where values must leave with the digits that they came with. */
export function jsonText(
  text: string,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(text, {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
  });
}

/** A plain text answer. */
export function plain(text: string, status = 200): Response {
  return new Response(text, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  });
}
