/**
 * A service in memory that does to a queue's requests what networks and services do.
 *
 * @module
 */

export type Fault =
  | "none"
  | "no answer, nothing stored"
  | "no answer, stored"
  | "503"
  | "503, again at once"
  | "429"
  | "torn answer"
  | "413 over 2";

export interface StoredEntry {
  readonly id: string;
  readonly kind: string;
  readonly n?: number;
  readonly action: Readonly<Record<string, unknown>>;
}

/** A limit as docs/limits.md has it; `told` is whether answers name it. */
export interface Limit {
  readonly entries: number;
  /** A million unless told. */
  readonly bytes?: number;
  readonly told: boolean;
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers });

export class FakeService {
  readonly logs = new Map<string, StoredEntry[]>();
  /** Sizes of the requests that came, in order. */
  readonly requests: number[] = [];
  /** Bytes of their bodies. */
  readonly bodies: number[] = [];
  /** How an answer asks for the request again at once. */
  atOnce = "0";
  /** What happens to the next request; `none` when it gives none. */
  faults: () => Fault = () => "none";

  #limit: Limit | null = null;
  /** Entries and bytes that pass in this window. */
  #left = { entries: Infinity, bytes: Infinity };

  /** Limits each window; one ends where the sender pauses for as long as a 429 asks. */
  limit(limit: Limit | null): (ms: number) => Promise<void> {
    this.#limit = limit;
    const renew = () => {
      this.#left = { entries: this.#limit?.entries ?? Infinity, bytes: this.#limit?.bytes ?? Infinity };
    };
    renew();
    return (ms) => {
      if (ms >= 3000) renew();
      return new Promise((resolve) => setImmediate(resolve));
    };
  }

  get #policy(): Record<string, string> {
    if (this.#limit?.told !== true) return {};
    return {
      "ratelimit-policy": `"day";q=${this.#limit.bytes ?? 1_000_000};w=86400;qu="content-bytes", "minute";q=${this.#limit.entries};w=60;qu="entries"`,
    };
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const principal = decodeURIComponent(/principals\/([^/]+)\/entries/.exec(String(input))?.[1] ?? "");
    const lines = String(init?.body).split("\n");
    const bytes = Buffer.byteLength(String(init?.body));
    this.requests.push(lines.length);
    this.bodies.push(bytes);
    const fault = this.faults();
    if (fault === "no answer, nothing stored") throw new TypeError("fetch failed");
    if (fault === "503") return json(503, { title: "away" }, { "retry-after": "2" });
    if (fault === "503, again at once") return json(503, { title: "away" }, { "retry-after": this.atOnce });
    if (fault === "429") return json(429, { title: "slow down" }, { "retry-after": "3" });
    if (fault === "413 over 2" && lines.length > 2) return json(413, { title: "too large" });
    if (lines.length > this.#left.entries || bytes > this.#left.bytes)
      return json(429, { title: "slow down" }, { "retry-after": "3", ...this.#policy });
    const before = this.log(principal).length;
    const results = lines.map((line, index) => this.#store(principal, line, index));
    this.#left.entries -= this.log(principal).length - before;
    this.#left.bytes -= bytes;
    if (fault === "no answer, stored") throw new TypeError("fetch failed");
    if (fault === "torn answer") return new Response('{"results": [{"ind', { status: 201 });
    if (results.every(({ error }) => error !== undefined)) return json(422, { title: "refused", results });
    return json(results.some(({ error }) => error !== undefined) ? 207 : 201, { results }, this.#policy);
  };

  #store(principal: string, line: string, index: number): { index: number; error?: object } {
    const entry = JSON.parse(line) as StoredEntry;
    if (entry.kind === "bad") return { index, error: { type: "unknown-kind" } };
    const log = this.log(principal);
    if (!log.some(({ id }) => id === entry.id)) log.push(entry);
    return { index };
  }

  log(principal: string): StoredEntry[] {
    let log = this.logs.get(principal);
    if (log === undefined) {
      log = [];
      this.logs.set(principal, log);
    }
    return log;
  }
}

/** Lost entries that the log declares. */
export function declaredIn(log: readonly StoredEntry[]): number {
  return log
    .filter(({ kind }) => kind === "host.loss")
    .reduce((sum, { action }) => sum + (action.calls as { count: number }).count, 0);
}
