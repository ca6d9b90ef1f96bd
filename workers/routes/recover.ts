/**
 * A stopped log, as its operator sees and recovers it. docs/operate.md is the runbook.
 *
 * @module
 */
import { z } from "zod";
import type { LogStanding } from "../../durable-objects/principal-log/types.ts";
import { Hash, Head, HexId, PrincipalName } from "../../shared/api/schemas.ts";
import { formatOrigin } from "../../shared/entry/log-id.ts";
import { formatTime } from "../../shared/time.ts";
import { Generation } from "../http/generation.ts";
import { headOut } from "../http/head.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute } from "../http/route.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { refusal } from "../logs/open-log.ts";
import { logIdOf } from "../logs/read.ts";
import { openGeneration, recoverLog } from "../logs/recover.ts";

const Params = z.object({ tenant: HexId, p: PrincipalName });

const Evidence = z.object({
  size: z.int(),
  root: Hash,
  hash: Hash.optional().describe("hash of the last entry, where it is known"),
  checkpoint: z.string().describe("the signed note"),
});
const Stop = z.object({
  kind: z
    .enum(["ahead", "fork", "object"])
    .describe("the mirror is ahead of the log, has another head, or another object in a tile's place"),
  detail: z.string(),
  at: z.string().nullable(),
  stored_head: Evidence.nullable().describe("the head that the log's storage gives"),
  mirrored_head: Evidence.nullable().describe("the head that R2 held when the log stopped"),
});
const Seal = z.object({ reason: z.string(), at: z.string() });
const LogName = z.object({
  log_id: Hash,
  origin: z.string(),
  generation: z.int(),
});
const Standing = LogName.extend({
  principal: z.object({ id: HexId, name: z.string(), generation: z.int() }),
  state: z.enum(["running", "stopped", "sealed"]),
  head: Head.nullable().describe("of a log that runs"),
  stop: Stop.nullable(),
  seal: Seal.nullable(),
});
const Recovered = z.object({
  sealed: LogName.extend({ stop: Stop, seal: Seal }),
  current: LogName.extend({ first: z.object({ seq: z.int(), hash: Hash }) }),
});

function nameOf(log: OpenLog): z.infer<typeof LogName> {
  return {
    log_id: logIdOf(log),
    origin: formatOrigin(log.identity),
    generation: log.identity.generation,
  };
}

function timeOf(ms: number): string {
  return formatTime(BigInt(ms) * 1_000_000n);
}

type Stopped = Exclude<LogStanding, { readonly state: "running" }>;

function stopOut({ kind, detail, atMs, stored, mirrored }: Stopped["stop"]): z.infer<typeof Stop> {
  return {
    kind,
    detail,
    at: atMs === 0 ? null : timeOf(atMs),
    stored_head: stored,
    mirrored_head: mirrored,
  };
}

const inspect = openRoute(
  {
    method: "GET",
    path: "/v1/tenants/{tenant}/principals/{p}/log",
    operation: "inspectLog",
    tag: "operation",
    access: "operator",
    summary: "How a log stands: it runs, is stopped, or is sealed; with both heads of a stopped one",
    params: Params,
    query: z.object({ generation: Generation.optional() }),
    answers: { 200: { description: "how it stands", schema: Standing } },
  },
  async ({ env, params, query }) => {
    const { principal, log } = await openGeneration(env, params.tenant, params.p, query.generation);
    const standing = await log.stub.standing(log.identity, log.epoch);
    if (!standing.ok) throw refusal(standing);
    const { id, name, generation } = principal;
    const running = standing.state === "running";
    return json({
      ...nameOf(log),
      principal: { id, name, generation },
      state: standing.state,
      head: running ? headOut(standing.head) : null,
      stop: running ? null : stopOut(standing.stop),
      seal:
        standing.state === "sealed"
          ? { reason: standing.seal.reason, at: timeOf(standing.seal.sealedAtMs) }
          : null,
    });
  },
);

const recover = openRoute(
  {
    method: "POST",
    path: "/v1/tenants/{tenant}/principals/{p}/recover",
    operation: "recoverLog",
    tag: "operation",
    access: "operator",
    summary: "Seal a stopped log's generation and open the next one",
    description:
      "The next generation's first entry is log.recovered: it names both heads of the old one. The same request again changes nothing, and goes on where one was cut off.",
    params: Params,
    query: z.object({}),
    body: z.strictObject({
      generation: z.int().min(1).max(999_999_998).describe("the generation that is stopped"),
      reason: z.string().min(1).max(1000).describe("why, for the record"),
    }),
    answers: { 200: { description: "the sealed log and the one that goes on", schema: Recovered } },
  },
  async ({ env, params, body }) => {
    const { sealed, seal, next, first } = await recoverLog(
      env,
      params.tenant,
      params.p,
      body.generation,
      body.reason,
    );
    return json({
      sealed: {
        ...nameOf(sealed),
        stop: stopOut(seal),
        seal: { reason: seal.reason, at: timeOf(seal.sealedAtMs) },
      },
      current: { ...nameOf(next), first },
    });
  },
);

export const recoverRoutes: readonly Route[] = [inspect, recover];
