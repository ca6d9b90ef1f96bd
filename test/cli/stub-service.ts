/**
 * A command against a service that only answers: what it asks, and what it makes of an answer.
 *
 * @module
 */
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach } from "vitest";
import type { Command } from "../../cli/command.ts";

/** A request as the service got it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly body: string;
  /** Its Idempotency-Key. */
  readonly key: string | undefined;
}

export interface StubService {
  /** The requests of the test so far. */
  readonly seen: readonly Seen[];
  /** The same, a line each: method, path and body. */
  readonly asked: readonly string[];
  /** Runs the command against it. */
  run(
    positionals: string[],
    values?: Record<string, string | boolean>,
    json?: boolean,
  ): Promise<{ code: number; out: string; notes: string }>;
}

/** A service for each test of the file. */
export function stubService(
  command: Command,
  answer: (request: Seen) => {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: unknown;
  },
): StubService {
  let server: Server;
  let url = "";
  let seen: Seen[] = [];
  beforeEach(async () => {
    seen = [];
    server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (part: string) => {
        body += part;
      });
      request.on("end", () => {
        const key = request.headers["idempotency-key"] as string | undefined;
        const one = { method: request.method ?? "", url: request.url ?? "", body, key };
        seen.push(one);
        const { status = 200, headers = {}, body: answered } = answer(one);
        response.writeHead(status, { "content-type": "application/json", ...headers });
        response.end(JSON.stringify(answered));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));
  return {
    get seen() {
      return seen;
    },
    get asked() {
      return seen.map(({ method, url: path, body }) => `${method} ${path} ${body}`);
    },
    run: async (positionals, values = {}, json = false) => {
      const out: string[] = [];
      const notes: string[] = [];
      const code = await command.run({
        positionals,
        values: { url, key: "k", ...values },
        json,
        out: (line) => out.push(line),
        note: (line) => notes.push(line),
      });
      return { code, out: out.join("\n"), notes: notes.join("\n") };
    },
  };
}
