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
/** Batches before the first round: both sides run as compiled code from then on. */
const WARM_BATCHES = 100;
/** Connections of the runtimes that send each entry as it comes. */
const SINGLE_CONNECTIONS = 64;
const WARM_SINGLES = 2000;

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

interface Load {
  readonly connections: number;
  /** Entries a body. */
  readonly entries: number;
  /** Takes the milliseconds of each request, where they are asked for. */
  readonly latencies?: number[];
}

const BATCHES: Load = { connections: CONNECTIONS, entries: BATCH };

/** Entries a second over a number of requests. Throws where an answer is not 201. */
async function run(target: Target, bodies: readonly Buffer[], load = BATCHES): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections });
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: load.connections }, async () => {
      for (let i = next++; i < bodies.length; i = next++) {
        const sent = performance.now();
        const status = await post(agent, target, bodies[i] ?? Buffer.alloc(0));
        load.latencies?.push(performance.now() - sent);
        if (status !== 201) throw new Error(`${target.url.href} answered ${status}`);
      }
    }),
  );
  agent.destroy();
  return (bodies.length * load.entries) / ((performance.now() - started) / 1000);
}

function bodies(prefix: string, count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(`[${toolCallEntries(`${prefix}-${i}`, BATCH).join(",")}]`),
  );
}

/** Waits until D1 holds all that was acknowledged: a reader makes the log flush. */
async function indexed(service: Target): Promise<void> {
  const read = await fetch(new URL("?limit=1", service.url), { headers: service.headers });
  await read.arrayBuffer();
  if (!read.ok) throw new Error(`indexed with ${read.status}`);
}

/** Waits until R2 holds it as well: one more entry waits for that. */
async function mirrored(service: Target, id: string): Promise<void> {
  const [entry] = toolCallEntries(id, 1);
  const appended = await fetch(new URL("?wait=mirrored", service.url), {
    method: "POST",
    headers: { ...service.headers, "content-type": "application/json" },
    body: entry ?? "",
  });
  await appended.arrayBuffer();
  if (!appended.ok) throw new Error(`mirrored with ${appended.status}`);
}

/** Milliseconds after which a log has also sealed the content of one round, which nobody waits for. */
const SEALED_MS = 3500;

/** Waits until nothing of a round is left to do: the next would pay for it. */
async function drain(service: Target, id: string): Promise<void> {
  await indexed(service);
  await mirrored(service, id);
  await new Promise((resolve) => setTimeout(resolve, SEALED_MS));
}

export async function benchIngest(
  runtime: BenchRuntime,
  rounds: number,
  batches: number,
): Promise<Comparison[]> {
  const operator = new RunsealClient({ url: runtime.service, apiKey: runtime.operatorToken });
  const tenant = await operator.createTenant("bench");
  const service: Target = {
    url: new URL("/v1/principals/bench/entries", runtime.service),
    headers: { authorization: `Bearer ${tenant.api_key}` },
  };
  const floor: Target = { url: new URL("/bench", runtime.floor), headers: {} };
  await run(service, bodies("warm-service", WARM_BATCHES));
  await drain(service, "warm-drain");
  await run(floor, bodies("warm-floor", WARM_BATCHES));
  const rate = (started: number): number => (batches * BATCH) / ((performance.now() - started) / 1000);
  return [
    await compare("ingest, 100 entries a POST, acknowledged (entries/s)", rounds, {
      ours: async (round) => {
        const acknowledged = await run(service, bodies(`a${round}`, batches));
        await drain(service, `a${round}-drain`);
        return acknowledged;
      },
      floor: (round) => run(floor, bodies(`fa${round}`, batches)),
    }),
    await compare("ingest, 100 entries a POST, with the flush: until D1 holds them (entries/s)", rounds, {
      ours: async (round) => {
        const sent = bodies(`d${round}`, batches);
        const started = performance.now();
        await run(service, sent);
        await indexed(service);
        const flushed = rate(started);
        await drain(service, `d${round}-drain`);
        return flushed;
      },
      floor: (round) => run(floor, bodies(`fd${round}`, batches)),
    }),
    await compare("ingest, 100 entries a POST, until D1 and R2 hold them (entries/s)", rounds, {
      ours: async (round) => {
        const sent = bodies(`m${round}`, batches);
        const started = performance.now();
        await run(service, sent);
        await indexed(service);
        await mirrored(service, `m${round}-mirrored`);
        const held = rate(started);
        await drain(service, `m${round}-drain`);
        return held;
      },
      floor: (round) => run(floor, bodies(`fm${round}`, batches)),
    }),
  ];
}

/** The milliseconds within which a share of the requests were answered. */
function within(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(1);
}

/** Requests of one entry each, 64 at a time, beside a floor that commits in groups as well; and their latencies. */
export async function benchSingle(
  runtime: BenchRuntime,
  rounds: number,
  count: number,
): Promise<{ comparison: Comparison; latencies: string }> {
  const operator = new RunsealClient({ url: runtime.service, apiKey: runtime.operatorToken });
  const tenant = await operator.createTenant("bench-single");
  const service: Target = {
    url: new URL("/v1/principals/single/entries", runtime.service),
    headers: { authorization: `Bearer ${tenant.api_key}` },
  };
  const floor: Target = { url: new URL("/single?grouped", runtime.floor), headers: {} };
  const singles = (prefix: string, n: number) => toolCallEntries(prefix, n).map((text) => Buffer.from(text));
  const load = { connections: SINGLE_CONNECTIONS, entries: 1 };
  await run(service, singles("warm", WARM_SINGLES), load);
  await drain(service, "warm-drain");
  await run(floor, singles("warm", WARM_SINGLES), load);
  const ours: number[] = [];
  const theirs: number[] = [];
  const comparison = await compare(
    "ingest, one entry a request, 64 at a time, acknowledged (entries/s)",
    rounds,
    {
      ours: async (round) => {
        const acknowledged = await run(service, singles(`s${round}`, count), { ...load, latencies: ours });
        await drain(service, `s${round}-drain`);
        return acknowledged;
      },
      floor: (round) => run(floor, singles(`f${round}`, count), { ...load, latencies: theirs }),
    },
  );
  for (const list of [ours, theirs]) list.sort((a, b) => a - b);
  const line = (name: string, list: readonly number[]) =>
    `| ${name} | ${within(list, 0.5)} | ${within(list, 0.99)} | ${within(list, 1)} |`;
  return {
    comparison,
    latencies: [
      "| one entry a request, 64 at a time | p50 (ms) | p99 (ms) | longest (ms) |",
      "| --- | --- | --- | --- |",
      line("acknowledged by the service", ours),
      line("answered by the floor", theirs),
    ].join("\n"),
  };
}
