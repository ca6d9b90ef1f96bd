/**
 * Problem documents (RFC 9457): the only form in which an error leaves the service. None carries a submitted value.
 *
 * @module
 */
import type { ProblemCode } from "../../shared/api/problems.ts";
import { PROBLEMS, problemType } from "../../shared/api/problems.ts";

export interface ProblemOptions {
  /** What is wrong with this request, in a sentence; no submitted values. */
  readonly detail?: string;
  /** RFC 6901 pointer into the request's body, or the parameter's name after `?`. */
  readonly pointer?: string;
  /** Seconds. */
  readonly retryAfter?: number;
  /** Further headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Overrides the code's usual status. */
  readonly status?: number;
  /** Further members of the document. */
  readonly members?: Readonly<Record<string, unknown>>;
}

/** Thrown by handlers and middleware; turned into a problem document in one place. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly options: ProblemOptions;

  constructor(code: ProblemCode, options: ProblemOptions = {}) {
    super(PROBLEMS[code].title);
    this.code = code;
    this.options = options;
  }
}

/** The members of the document. */
export function problemBody(
  code: ProblemCode,
  options: ProblemOptions,
  requestId: string,
): Record<string, unknown> {
  const spec = PROBLEMS[code];
  return {
    type: problemType(code),
    title: spec.title,
    status: options.status ?? spec.status,
    ...(options.detail === undefined ? {} : { detail: options.detail }),
    ...(options.pointer === undefined ? {} : { pointer: options.pointer }),
    request_id: requestId,
    ...options.members,
  };
}

/** The answer. */
export function problemResponse(code: ProblemCode, options: ProblemOptions, requestId: string): Response {
  const body = problemBody(code, options, requestId);
  const headers = new Headers({
    ...options.headers,
    "content-type": "application/problem+json",
    "cache-control": "no-store",
  });
  if (options.retryAfter !== undefined) headers.set("retry-after", String(options.retryAfter));
  if (code === "unauthenticated") headers.set("www-authenticate", 'Bearer realm="runseal"');
  return new Response(JSON.stringify(body), { status: Number(body.status), headers });
}
