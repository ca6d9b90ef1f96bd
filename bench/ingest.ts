/**
 * Ingest, 100 entries a POST: the whole service, flush and mirror included, against the floor, in turns.
 *
 * @module
 */
import { Agent, request } from "node:http";
import { RunsealClient } from "../sdk/client.ts";
import { toolCallEntries } from "./entries.ts";
import type { BenchRuntime } from "./runtime.ts";
import type { Comparison } from "./table.ts";
import { compare } from "./table.ts";

const BATCH = 100;
const CONNECTIONS = 4;

interface Target {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

function post(agent: Agent, target: Target, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      target.url.href,
      {
        method: "POST",
        agent,
        headers: { ...target.headers, "content-type": "application/json", "content-length": body.length },
      },
      (incoming) => {
        incoming.resume();
        incoming.once("end", () => resolve(incoming.statusCode ?? 0));
        incoming.once("error", reject);
      },
    );
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

/** Entries a second over a number of batches. Throws where an answer is not 201. */
async function run(target: Target, bodies: readonly Buffer[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let i = next++; i < bodies.length; i = next++) {
        const status = await post(agent, target, bodies[i] ?? Buffer.alloc(0));
        if (status !== 201) throw new Error(`${target.url.href} answered ${status}`);
      }
    }),
  );
  agent.destroy();
  return (bodies.length * BATCH) / ((performance.now() - started) / 1000);
}

function bodies(prefix: string, count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(`[${toolCallEntries(`${prefix}-${i}`, BATCH).join(",")}]`),
  );
}

export async function benchIngest(
  runtime: BenchRuntime,
  rounds: number,
  batches: number,
): Promise<Comparison> {
  const operator = new RunsealClient({ url: runtime.service, apiKey: runtime.operatorToken });
  const tenant = await operator.createTenant("bench");
  const service: Target = {
    url: new URL("/v1/principals/bench/entries", runtime.service),
    headers: { authorization: `Bearer ${tenant.api_key}` },
  };
  const floor: Target = { url: new URL("/bench", runtime.floor), headers: {} };
  await run(service, bodies("warm-service", 20));
  await run(floor, bodies("warm-floor", 20));
  return compare("ingest, 100 entries a POST (entries/s)", rounds, {
    ours: (round) => run(service, bodies(`s${round}`, batches)),
    floor: (round) => run(floor, bodies(`f${round}`, batches)),
  });
}
