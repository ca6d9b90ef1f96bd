/**
 * The client library: the HTTP surface with types, retries that can't store twice, and streams for what is long. It
 * runs wherever `fetch` does.
 *
 *     const client = new RunsealClient({ url: "http://127.0.0.1:8787", apiKey });
 *     const { results, head } = await client.append("agent-7", [{ kind: "run.created", run: "r1", action: { goal: "…" } }]);
 *
 * @module
 */
import type { z } from "zod";
import type {
  Admitted,
  AppendAnswer,
  EntryIn,
  Head,
  RegistryAnswer,
  TenantAnswer,
  VerifyReport,
} from "../shared/api/schemas.ts";
import { uuidv7 } from "../shared/ids.ts";
import { JsonReader } from "../shared/json/reader.ts";
import type { WindowLimits } from "./limits.ts";
import { fitting, isTooLarge, NO_LIMITS, sizeOf, windowLimits } from "./limits.ts";

export interface ClientOptions {
  /** Where the service is, without a path. */
  readonly url: string;
  /** An API key, or the operator's token for tenants. */
  readonly apiKey: string;
  /** Attempts of a request that failed for a passing reason. */
  readonly attempts?: number;
  readonly fetch?: typeof fetch;
}

export type Entry = z.input<typeof EntryIn>;
export type Append = z.infer<typeof AppendAnswer>;
export type HeadAnswer = z.infer<typeof Head>;

/** An answer that is an error: the problem document (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly status: number;
  /** The problem's `type`, stable; `urn:runseal:problem:unavailable` where no answer came. */
  readonly type: string;
  readonly problem: Readonly<Record<string, unknown>>;
  /** Seconds after which the service asks to be tried again; null where it does not say. */
  readonly retryAfter: number | null;
  /** What the sender's limits take in one window, as far as the answer says. */
  readonly limits: WindowLimits;

  constructor(
    status: number,
    problem: Readonly<Record<string, unknown>>,
    retryAfter: number | null = null,
    limits: WindowLimits = NO_LIMITS,
  ) {
    const detail = typeof problem.detail === "string" ? `: ${problem.detail}` : "";
    const pointer =
      typeof problem.pointer === "string" && problem.pointer !== "" ? ` (at ${problem.pointer})` : "";
    super(`${String(problem.title ?? `HTTP ${status}`)}${detail}${pointer}`);
    this.status = status;
    this.retryAfter = retryAfter;
    this.limits = limits;
    this.type = String(problem.type ?? "about:blank");
    this.problem = problem;
  }
}

const RETRIED = new Set([429, 502, 503, 504]);

/** An entry's text with an id, minted here where it has none: a retry must carry the same one. */
export function withId(text: string): string {
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return text;
  reader.enterObject();
  let first = true;
  for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
    if (key === "id") return text;
    reader.skipValue();
    first = false;
  }
  const id = uuidv7(Date.now(), crypto.getRandomValues(new Uint8Array(16)));
  return `{"id":"${id}"${first ? "" : ","}${text.slice(text.indexOf("{") + 1)}`;
}

export class RunsealClient {
  readonly #url: string;
  readonly #apiKey: string;
  readonly #attempts: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#url = options.url.replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
    this.#attempts = options.attempts ?? 5;
    this.#fetch = options.fetch ?? fetch;
  }

  /**
   * Any call of the surface. Retries what failed for a passing reason: every call of this client may be repeated.
   *
   * @throws `ProblemError`
   */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      let response: Response;
      try {
        response = await this.#fetch(this.#url + path, {
          method,
          headers: {
            ...options.headers,
            authorization: `Bearer ${this.#apiKey}`,
            ...(options.body === undefined
              ? {}
              : { "content-type": options.contentType ?? "application/json" }),
          },
          ...(options.body === undefined ? {} : { body: options.body }),
        });
      } catch (error) {
        if (attempt < this.#attempts) {
          await pause(attempt, null);
          continue;
        }
        const reason =
          error instanceof Error && error.cause instanceof Error ? error.cause.message : "no answer";
        throw new ProblemError(0, {
          type: "urn:runseal:problem:unavailable",
          title: `No answer from ${this.#url}`,
          detail: reason,
        });
      }
      if (response.ok) return response;
      const limits = windowLimits(response.headers);
      const retryAfter = secondsOf(response.headers.get("retry-after"));
      const isHopeless = response.status === 429 && options.fits?.(limits) === false;
      if (RETRIED.has(response.status) && attempt < this.#attempts && !isHopeless) {
        await response.body?.cancel();
        await pause(attempt, retryAfter);
        continue;
      }
      throw new ProblemError(response.status, await problemOf(response), retryAfter, limits);
    }
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.request(
      method,
      path,
      body === undefined ? {} : { body: JSON.stringify(body) },
    );
    return (await response.json()) as T;
  }

  /** Creates a tenant, one however often the request is retried; the client holds the operator's token. */
  async createTenant(name: string): Promise<z.infer<typeof TenantAnswer>> {
    const response = await this.request("POST", "/v1/tenants", {
      body: JSON.stringify({ name }),
      headers: { "idempotency-key": crypto.randomUUID() },
    });
    return (await response.json()) as z.infer<typeof TenantAnswer>;
  }

  /** Appends entries. Each gets an id here where it has none, so that a retry stores nothing twice. */
  append(principal: string, entries: readonly Entry[], options: AppendOptions = {}): Promise<Append> {
    return this.appendTexts(
      principal,
      entries.map((entry) => JSON.stringify(entry)),
      options,
    );
  }

  /**
   * Appends entries given as JSON texts: every number is committed with the digits that it has there.
   *
   * @throws `ProblemError`; without another attempt where a limit takes fewer than these in one window: its `limits`
   *   say how many, and the entries may be sent again in parts, if they have ids; one that alone is larger never passes
   */
  async appendTexts(
    principal: string,
    texts: readonly string[],
    options: AppendOptions = {},
  ): Promise<Append> {
    const query = new URLSearchParams();
    if (options.atomic) query.set("atomic", "true");
    if (options.waitMirrored) query.set("wait", "mirrored");
    const suffix = query.size === 0 ? "" : `?${query}`;
    const lines = texts.map(withId);
    const response = await this.request("POST", `${logPath(principal)}/entries${suffix}`, {
      body: lines.join("\n"),
      contentType: "application/x-ndjson",
      fits: (limits) => {
        const sizes = lines.map(sizeOf);
        return fitting(sizes, limits) === lines.length && !isTooLarge(sizes[0] ?? 0, limits);
      },
    });
    return (await response.json()) as Append;
  }

  /**
   * Writes an entry ahead of the act that it names. Resolves only where it is durable; whatever else happens, the act is
   * not admitted.
   *
   * @throws `ProblemError`; also where the answer says anything but that the act is admitted
   */
  async admit(principal: string, entry: Entry): Promise<z.infer<typeof Admitted>> {
    const response = await this.request("POST", `${logPath(principal)}/admit`, {
      body: withId(JSON.stringify(entry)),
    });
    const answer = (await response.json()) as Partial<z.infer<typeof Admitted>>;
    if (answer.admitted !== true) throw new ProblemError(response.status, { title: "not admitted" });
    return answer as z.infer<typeof Admitted>;
  }

  head(principal: string): Promise<HeadAnswer> {
    return this.json("GET", `${logPath(principal)}/head`);
  }

  registry(): Promise<z.infer<typeof RegistryAnswer>> {
    return this.json("GET", "/v1/registry");
  }

  /** One part of a walk; go on with `from: next` where the report has one. */
  verify(
    principal: string,
    range: { from?: number; to?: number; head?: string } = {},
  ): Promise<VerifyReport> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(range))
      if (value !== undefined) query.set(name, String(value));
    return this.json("GET", `${logPath(principal)}/verify?${query}`);
  }

  /** Erases values; the same again answers how far that is (docs/privacy.md). */
  erase(principal: string, erasure: Erasure): Promise<ErasureState> {
    return this.json("POST", `${logPath(principal)}/erasures`, erasure);
  }

  /**
   * The bundle as a stream of NDJSON, with all values, none (`content: false`), or those that `disclose` names, as
   * `section.name` with commas between.
   */
  async export(
    principal: string,
    range: { from?: number; to?: number; content?: boolean; disclose?: string; recipient?: string } = {},
  ): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(range))
      if (value !== undefined) query.set(name, String(value));
    return this.request("GET", `${logPath(principal)}/export?${query}`);
  }
}

export interface RequestOptions {
  readonly body?: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the limits of a 429 take the request at all: one that never passes is not tried again. */
  readonly fits?: (limits: WindowLimits) => boolean;
}

export interface Erasure {
  readonly seq?: number;
  readonly from?: number;
  readonly to?: number;
  readonly ids?: readonly string[];
  /** As `section.name`; all without it. */
  readonly fields?: readonly string[];
  readonly reason: string;
}

export interface ErasureState {
  readonly id: string;
  readonly entries: number;
  readonly done: readonly string[];
  /** Done later, as soon as it can be. */
  readonly pending: readonly string[];
  /** RFC 3339. */
  readonly recoverable_until: string | null;
}

export interface AppendOptions {
  /** All or nothing. */
  readonly atomic?: boolean;
  /** Answer after the head is in the mirror. */
  readonly waitMirrored?: boolean;
}

/** The path of a principal's log. */
export function logPath(principal: string): string {
  return `/v1/principals/${encodeURIComponent(principal)}`;
}

async function problemOf(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Not ours: a proxy's page, perhaps.
  }
  return { title: `HTTP ${response.status}` };
}

/** Retry-After in seconds, from a number or a date (RFC 9110 section 10.2.3); null where there is none. */
function secondsOf(header: string | null): number | null {
  if (header === null) return null;
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}

/** Backs off: twice as long each time, or what the server asks for where that is longer; a part by chance, so that clients spread. */
function pause(attempt: number, retryAfter: number | null): Promise<void> {
  const base = Math.max((retryAfter ?? 0) * 1000, 100 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.min(30_000, base * (1 + Math.random() / 4))));
}
