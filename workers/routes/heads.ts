/**
 * Heads, tiles, proofs and the registry: what an auditor takes away.
 *
 * @module
 */
import { z } from "zod";
import { Head, PrincipalName, RegistryAnswer } from "../../shared/api/schemas.ts";
import { tenantOrigin } from "../../shared/entry/log-id.ts";
import { parseTilePath } from "../../shared/merkle/tiles.ts";
import { Generation } from "../http/generation.ts";
import { hashesOf, ProofPath, Size, tileResponse } from "../http/hashes.ts";
import { headOut } from "../http/head.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, plain, tenantRoute } from "../http/route.ts";
import { openLog, refusal } from "../logs/open-log.ts";
import { registryState } from "../logs/registry.ts";
import { recordOut } from "./registry.ts";

const Principal = z.object({ p: PrincipalName });
const NoQuery = z.object({});
const OfGeneration = z.object({ generation: Generation.optional() });

const head = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/head",
    operation: "getHead",
    tag: "evidence",
    scope: "read",
    summary: "The log's signed head",
    params: Principal,
    query: OfGeneration,
    answers: { 200: { description: "the head", schema: Head } },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    const outcome = await log.stub.head(log.identity, log.epoch);
    if (!outcome.ok) throw refusal(outcome);
    return json(headOut(outcome.head));
  },
);

const checkpoint = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/checkpoint",
    operation: "getCheckpoint",
    tag: "evidence",
    scope: "read",
    summary: "The signed head as a C2SP checkpoint: the text to keep elsewhere",
    params: Principal,
    query: OfGeneration,
    answers: { 200: { description: "a signed note", contentType: "text/plain" } },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    const outcome = await log.stub.head(log.identity, log.epoch);
    if (!outcome.ok) throw refusal(outcome);
    return plain(outcome.head.checkpoint);
  },
);

const tile = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/tile/{path+}",
    operation: "getTile",
    tag: "evidence",
    scope: "read",
    summary: "A hash tile or entry bundle in the C2SP tlog-tiles layout, full or partial",
    params: z.object({ p: PrincipalName, path: z.string().max(200) }),
    query: OfGeneration,
    answers: { 200: { description: "the tile's bytes", contentType: "application/octet-stream" } },
  },
  async ({ env, caller, params, query }) => {
    const place = parseTilePath(`tile/${params.path}`);
    if (place === undefined) throw new Problem("not-found");
    const log = await openLog(env, caller, params.p, query.generation);
    const outcome = await log.stub.tile(log.identity, log.epoch, place);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.bytes === null) throw new Problem("not-found");
    return tileResponse(outcome.bytes);
  },
);

const inclusion = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/proof/inclusion",
    operation: "getInclusionProof",
    tag: "evidence",
    scope: "read",
    summary: "Proof that entry seq is in the tree of the given size (the head's by default)",
    params: Principal,
    query: OfGeneration.extend({ seq: Size.min(1), size: Size.optional() }),
    answers: {
      200: {
        description: "the proof",
        schema: z.object({ seq: z.int(), index: z.int(), size: z.int(), path: ProofPath, head: Head }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    const outcome = await log.stub.inclusion(log.identity, log.epoch, [query.seq], query.size ?? null);
    if (!outcome.ok) throw refusal(outcome);
    const [path] = outcome.paths;
    if (path === undefined) throw new Problem("not-found");
    return json({
      seq: query.seq,
      index: query.seq - 1,
      size: outcome.size,
      path: hashesOf(path),
      head: headOut(outcome.head),
    });
  },
);

const consistency = tenantRoute(
  {
    method: "GET",
    path: "/v1/principals/{p}/proof/consistency",
    operation: "getConsistencyProof",
    tag: "evidence",
    scope: "read",
    summary:
      "Proof that the tree of size `from` is a prefix of the tree of size `to` (the head's by default)",
    params: Principal,
    query: OfGeneration.extend({ from: Size, to: Size.optional() }),
    answers: {
      200: {
        description: "the proof",
        schema: z.object({ from: z.int(), to: z.int(), path: ProofPath, head: Head }),
      },
    },
  },
  async ({ env, caller, params, query }) => {
    const log = await openLog(env, caller, params.p, query.generation);
    const outcome = await log.stub.consistency(log.identity, log.epoch, query.from, query.to ?? null);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.path === null) {
      throw new Problem("invalid-request", { pointer: "?from", detail: "from <= to <= the head's size" });
    }
    return json({
      from: query.from,
      to: outcome.size,
      path: hashesOf(outcome.path),
      head: headOut(outcome.head),
    });
  },
);

const registry = tenantRoute(
  {
    method: "GET",
    path: "/v1/registry",
    operation: "getRegistry",
    tag: "evidence",
    scope: "read",
    summary: "The tenant's key registry: every record, as published",
    query: NoQuery,
    answers: { 200: { description: "the registry", schema: RegistryAnswer } },
  },
  async ({ env, caller }) => {
    const state = await registryState(env, caller.tenant.id, { maxAgeMs: 0 });
    return json({
      registry_id: state.registryId,
      epoch: state.epoch,
      origin: tenantOrigin(caller.tenant.host, caller.tenant.id),
      records: state.records.map(recordOut),
    });
  },
);

export const headRoutes: readonly Route[] = [head, checkpoint, tile, inclusion, consistency, registry];
