/**
 * The tenant's log of heads: what is known of every log of the tenant, and the log that lists it (docs/heads.md).
 *
 * @module
 */
import { z } from "zod";
import type { HeadLog } from "../../durable-objects/head-log/head-log.ts";
import type { HeadLogIdentity, HeadLogView, KnownHead } from "../../durable-objects/head-log/types.ts";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import { Hash, PrincipalName, Time } from "../../shared/api/schemas.ts";
import { toBase64 } from "../../shared/bytes.ts";
import { parseTilePath } from "../../shared/merkle/tiles.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { mayUseAllPrincipals } from "../http/auth.ts";
import { decodeHashCursor, encodeHashCursor } from "../http/cursor.ts";
import { hashesOf, ProofPath, Size, tileResponse } from "../http/hashes.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, plain, tenantRoute } from "../http/route.ts";
import { refusal } from "../logs/open-log.ts";

const NoQuery = z.object({});
const MAX_PAGE = 1000;
/** Leaves of one answer. */
const MAX_LEAVES = 256;

const LogOut = z.object({
  origin: z.string().describe("origin and key name of the tenant's log"),
  registry_id: Hash,
  size: z.int().min(0),
  root: Hash,
  checkpoint: z.string().describe("C2SP tlog-checkpoint in a signed note"),
  key: Hash.describe("the log key that signed"),
  batch: z.int().min(0).describe("lists of heads so far"),
  signed_at: Time.nullable().describe("when the last head was signed; null before the first"),
  age_seconds: z.int().min(0).nullable().describe("seconds since then"),
  republished_at: Time.nullable().describe("when every known head was listed last"),
  pending: z.int().min(0).describe("heads that were reported and are not listed yet"),
  mirrored_size: z.int().min(0),
  alarms: z.array(
    z.object({
      name: z.enum(["stopped", "head-refused", "witness-disagrees", "anchor-contradicts"]),
      log_id: Hash.nullable(),
      detail: z.string(),
      raised_at: Time,
    }),
  ),
});

const KnownHeadOut = z.object({
  principal: PrincipalName,
  generation: z.int().min(1),
  log_id: Hash,
  size: z.int().min(1),
  root: Hash,
  epoch: z.int().min(0),
  reported_at: Time,
  listed: z.boolean().describe("whether this head is in the tenant's log yet"),
});

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function logOut(view: HeadLogView): z.infer<typeof LogOut> {
  const age =
    view.signedAtMs === null ? null : Math.max(0, Math.floor((Date.now() - view.signedAtMs) / 1000));
  return {
    origin: view.origin,
    registry_id: view.registryId,
    size: view.size,
    root: view.root,
    checkpoint: view.checkpoint,
    key: view.key,
    batch: view.batch,
    signed_at: view.signedAtMs === null ? null : timeOf(view.signedAtMs),
    age_seconds: age,
    republished_at: view.fullAtMs === null ? null : timeOf(view.fullAtMs),
    pending: view.pending,
    mirrored_size: view.mirroredSize,
    alarms: view.alarms.map(({ name, logId, detail, atMs }) => {
      return { name, log_id: logId, detail, raised_at: timeOf(atMs) };
    }),
  };
}

function headOut(head: KnownHead): z.infer<typeof KnownHeadOut> {
  return {
    principal: head.name,
    generation: head.generation,
    log_id: head.logId,
    size: head.size,
    root: head.root,
    epoch: head.epoch,
    reported_at: timeOf(head.reportedAtMs),
    listed: head.listed,
  };
}

/** What cursors over a tenant's logs are bound to: the tenant, the list, and what the key may see. */
export function headsScope(list: string, caller: Caller): string[] {
  return [caller.tenant.id, list, JSON.stringify(visiblePrincipals(caller))];
}

/** The principals whose logs the key may see; null for all. */
export function visiblePrincipals(caller: Caller): readonly string[] | null {
  return mayUseAllPrincipals(caller) ? null : caller.key.principals;
}

/** The tenant's log of heads. */
export function openTenantLog(
  env: Env,
  caller: Caller,
): { stub: DurableObjectStub<HeadLog>; identity: HeadLogIdentity } {
  const { host, id } = caller.tenant;
  return { stub: env.HEAD_LOG.getByName(id), identity: { host, owner: id } };
}

/** Leaves list every log of the tenant: they are for keys that may use every principal. */
function requireAllPrincipals(caller: Caller): void {
  if (!mayUseAllPrincipals(caller)) {
    throw new Problem("forbidden", { detail: "leaves of the tenant's log are for keys of all principals" });
  }
}

const heads = tenantRoute(
  {
    method: "GET",
    path: "/v1/heads",
    operation: "listHeads",
    tag: "evidence",
    scope: "read",
    summary: "The last head of each log of the tenant, and the age of the log that lists them",
    description:
      "By log id. A log that no longer reports keeps its last head here, and it is listed again at least every ten " +
      "minutes: that a log is gone shows.",
    query: z.object({
      cursor: z.string().max(200).optional(),
      limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
    }),
    answers: {
      200: {
        description: "heads",
        schema: z.object({ log: LogOut, heads: z.array(KnownHeadOut), next_cursor: z.string().nullable() }),
      },
    },
  },
  async ({ env, caller, query }) => {
    const { stub, identity } = openTenantLog(env, caller);
    const scope = headsScope("heads", caller);
    const after = decodeHashCursor(scope, query.cursor);
    const outcome = await stub.heads(identity, after, query.limit, visiblePrincipals(caller));
    if (!outcome.ok) throw refusal(outcome);
    const { view } = outcome;
    const all = mayUseAllPrincipals(caller);
    const alarms = view.alarms.filter(({ logId }) => all || logId === null);
    const last = outcome.heads.length < query.limit ? undefined : outcome.heads.at(-1);
    return json({
      log: logOut({ ...view, alarms }),
      heads: outcome.heads.map(headOut),
      next_cursor: last === undefined ? null : encodeHashCursor(scope, last.logId),
    });
  },
);

const checkpoint = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/checkpoint",
    operation: "getLogCheckpoint",
    tag: "evidence",
    scope: "read",
    summary: "The signed head of the tenant's log, as a C2SP checkpoint",
    query: NoQuery,
    answers: { 200: { description: "a signed note", contentType: "text/plain" } },
  },
  async ({ env, caller }) => {
    const { stub, identity } = openTenantLog(env, caller);
    const outcome = await stub.view(identity);
    if (!outcome.ok) throw refusal(outcome);
    return plain(outcome.view.checkpoint);
  },
);

const tile = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/tile/{path+}",
    operation: "getLogTile",
    tag: "evidence",
    scope: "read",
    summary:
      "A hash tile or entry bundle of the tenant's log, in the C2SP tlog-tiles layout, full or partial",
    params: z.object({ path: z.string().max(200) }),
    query: NoQuery,
    answers: { 200: { description: "the tile's bytes", contentType: "application/octet-stream" } },
  },
  async ({ env, caller, params }) => {
    const place = parseTilePath(`tile/${params.path}`);
    if (place === undefined) throw new Problem("not-found");
    if (place.kind !== "hashes") requireAllPrincipals(caller);
    const { stub, identity } = openTenantLog(env, caller);
    const outcome = await stub.tile(identity, place);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.bytes === null) throw new Problem("not-found");
    return tileResponse(outcome.bytes);
  },
);

const leaves = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/entries",
    operation: "listLogLeaves",
    tag: "evidence",
    scope: "read",
    summary: "Leaves of the tenant's log: lists of heads, and the registry's records",
    description:
      "From index `from`, before index `to`; the first leaf has index 0. At most 256 leaves and about 1 MiB; `next` says " +
      "where to go on.",
    query: z.object({ from: Size.default(0), to: Size.optional() }),
    answers: {
      200: {
        description: "leaves",
        schema: z.object({
          from: z.int().min(0),
          leaves: z.array(z.string()).describe("base64; docs/format.md section 14"),
          next: z
            .int()
            .nullable()
            .describe("index of the next leaf; null where `to` or the log's end is reached"),
          log: LogOut,
        }),
      },
    },
  },
  async ({ env, caller, query }) => {
    requireAllPrincipals(caller);
    const { stub, identity } = openTenantLog(env, caller);
    const asked = Math.min(query.to ?? Number.MAX_SAFE_INTEGER, query.from + MAX_LEAVES);
    const outcome = await stub.leaves(identity, query.from, asked);
    if (!outcome.ok) throw refusal(outcome);
    const next = query.from + outcome.leaves.length;
    const end = Math.min(query.to ?? outcome.view.size, outcome.view.size);
    return json({
      from: query.from,
      leaves: outcome.leaves.map(toBase64),
      next: next < end ? next : null,
      log: logOut(outcome.view),
    });
  },
);

const inclusion = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/proof/inclusion",
    operation: "getLogInclusionProof",
    tag: "evidence",
    scope: "read",
    summary:
      "Proof that the leaf at an index is in the tenant's log of the given size (the head's by default)",
    query: z.object({ index: Size, size: Size.optional() }),
    answers: {
      200: {
        description: "the proof",
        schema: z.object({ index: z.int(), size: z.int(), path: ProofPath, log: LogOut }),
      },
    },
  },
  async ({ env, caller, query }) => {
    const { stub, identity } = openTenantLog(env, caller);
    const outcome = await stub.inclusion(identity, query.index, query.size ?? null);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.path === null) throw new Problem("not-found");
    const { size, path, view } = outcome;
    return json({ index: query.index, size, path: hashesOf(path), log: logOut(view) });
  },
);

const consistency = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/proof/consistency",
    operation: "getLogConsistencyProof",
    tag: "evidence",
    scope: "read",
    summary:
      "Proof that the tenant's log of size `from` is a prefix of it at size `to` (the head's by default)",
    query: z.object({ from: Size, to: Size.optional() }),
    answers: {
      200: {
        description: "the proof",
        schema: z.object({ from: z.int(), to: z.int(), path: ProofPath, log: LogOut }),
      },
    },
  },
  async ({ env, caller, query }) => {
    const { stub, identity } = openTenantLog(env, caller);
    const outcome = await stub.consistency(identity, query.from, query.to ?? null);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.path === null) {
      throw new Problem("invalid-request", { pointer: "?from", detail: "from <= to <= the head's size" });
    }
    const { size, path, view } = outcome;
    return json({ from: query.from, to: size, path: hashesOf(path), log: logOut(view) });
  },
);

const serviceProof = tenantRoute(
  {
    method: "GET",
    path: "/v1/log/service-proof",
    operation: "getServiceProof",
    tag: "evidence",
    scope: "read",
    summary: "Proof that the service's log lists the tenant's log, under a head with its cosignatures",
    description:
      "The head is the last that a witness cosigned, or else the last one. The leaf lists this tenant alone; of others the " +
      "answer holds nothing but hashes. 404 before the tenant is listed.",
    query: NoQuery,
    answers: {
      200: {
        description: "the proof",
        schema: z.object({
          vkey: z.string().describe("the key of the service's log; GET /log/key has it too"),
          checkpoint: z.string(),
          size: z.int().min(1),
          index: z.int().min(0),
          leaf: z.string().describe("base64; docs/format.md section 14"),
          path: ProofPath,
          listed: z.object({ size: z.int().min(1), root: Hash }).describe("the head of the tenant's log"),
        }),
      },
    },
  },
  async ({ env, caller }) => {
    const { host, registryId } = caller.tenant;
    const outcome = await env.HEAD_LOG.getByName(SERVICE).tenantListing({ host, owner: SERVICE }, registryId);
    if (!outcome.ok) throw refusal(outcome);
    const { vkey, checkpoint, size, listing } = outcome;
    if (listing === null) throw new Problem("not-found");
    const listed = { size: listing.size, root: listing.root };
    const { index } = listing;
    return json({
      vkey,
      checkpoint,
      size,
      index,
      leaf: toBase64(listing.leaf),
      path: hashesOf(listing.path),
      listed,
    });
  },
);

export const tenantLogRoutes: readonly Route[] = [
  heads,
  checkpoint,
  tile,
  leaves,
  inclusion,
  consistency,
  serviceProof,
];
