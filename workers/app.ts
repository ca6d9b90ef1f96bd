/**
 * Puts the routes together: matching, request ids, and the one place where an error becomes a problem document.
 *
 * @module
 */
import { Hono } from "hono";
import type { Env } from "./env.ts";
import { Problem, problemResponse } from "./http/problem.ts";
import type { Execution, Route } from "./http/route.ts";
import { logEvent } from "./log-event.ts";
import { routes } from "./routes/index.ts";

type App = Hono<{ Bindings: Env }>;

function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\+\}/g, ":$1{.+}").replaceAll(/\{(\w+)\}/g, ":$1");
}

function requestIdOf(request: Request): string {
  return request.headers.get("cf-ray") ?? crypto.randomUUID();
}

function mount(app: App, route: Route): void {
  app.on(route.method, honoPath(route.path), async (context) => {
    const requestId = requestIdOf(context.req.raw);
    const response = await answer(
      route,
      context.req.raw,
      context.env,
      context.executionCtx,
      requestId,
      context.req.param(),
    );
    response.headers.set("x-request-id", requestId);
    return response;
  });
}

async function answer(
  route: Route,
  request: Request,
  env: Env,
  execution: Execution,
  requestId: string,
  params: Record<string, string>,
): Promise<Response> {
  try {
    return await route.run(request, env, execution, requestId, params);
  } catch (error) {
    if (error instanceof Problem) return problemResponse(error.code, error.options, requestId);
    // A part that is away is transient and must not make an exporter drop its data: 503, never 500.
    const transient = isTransient(error);
    logEvent(transient ? "unavailable" : "internal-error", {
      operation: route.operation,
      request_id: requestId,
      error: error instanceof Error ? error.name : typeof error,
      code: codeOf(error),
    });
    return transient
      ? problemResponse("unavailable", { retryAfter: 1 }, requestId)
      : problemResponse("internal", {}, requestId);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/**
 * Whether the platform says that trying again may help: a Durable Object that moved, reset, is overloaded or whose storage
 * takes nothing, or D1. A storage that is full stays so until somebody makes room; nothing was stored, and nothing is lost.
 */
function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("retryable" in error && error.retryable === true) return true;
  if ("overloaded" in error && error.overloaded === true) return true;
  return /^D1_|SQLITE_(?:FULL|NOMEM|BUSY|IOERR)|Durable Object|Network connection lost|internal error/.test(
    error.message,
  );
}

/** The application. */
export function createApp(): App {
  const app: App = new Hono();
  for (const route of routes) mount(app, route);
  // Not a route for every path: each request would run through the chain of both.
  app.notFound((context) => {
    const requestId = requestIdOf(context.req.raw);
    const response = noRoute(new URL(context.req.url).pathname, requestId);
    response.headers.set("x-request-id", requestId);
    return response;
  });
  return app;
}

function noRoute(pathname: string, requestId: string): Response {
  const allowed = routes.filter((route) => matches(route.path, pathname));
  if (allowed.length === 0) return problemResponse("not-found", {}, requestId);
  const allow = [...new Set(allowed.map((route) => route.method))].join(", ");
  return problemResponse("method-not-allowed", { headers: { allow } }, requestId);
}

function matches(path: string, pathname: string): boolean {
  const pattern = path
    .split("/")
    .map((part) =>
      /^\{\w+\+\}$/.test(part) ? ".+" : /^\{\w+\}$/.test(part) ? "[^/]+" : part.replaceAll(".", "\\."),
    )
    .join("/");
  return new RegExp(`^${pattern}$`).test(pathname);
}
