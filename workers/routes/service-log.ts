/**
 * The service's log over the tenants' logs of heads, for anyone: its signed head, its key and its hash tiles. Its leaves
 * name tenants' logs and are not served.
 *
 * @module
 */
import { z } from "zod";
import type { HeadLog } from "../../durable-objects/head-log/head-log.ts";
import type { HeadLogIdentity } from "../../durable-objects/head-log/types.ts";
import { SERVICE } from "../../durable-objects/head-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { fromHex } from "../../shared/bytes.ts";
import { parseTilePath } from "../../shared/merkle/tiles.ts";
import { formatVkey, logKey } from "../../shared/note/vkey.ts";
import type { Env } from "../env.ts";
import { tileResponse } from "../http/hashes.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { openRoute, plain } from "../http/route.ts";
import { refusal } from "../logs/open-log.ts";

const NoQuery = z.object({});

/** The service's log of heads. */
export function openServiceLog(env: Env): { stub: DurableObjectStub<HeadLog>; identity: HeadLogIdentity } {
  return { stub: env.HEAD_LOG.getByName(SERVICE), identity: { host: env.LOG_HOST, owner: SERVICE } };
}

const checkpoint = openRoute(
  {
    method: "GET",
    path: "/log/checkpoint",
    operation: "getServiceCheckpoint",
    tag: "service log",
    access: "none",
    summary: "The signed head of the service's log, as a C2SP checkpoint",
    query: NoQuery,
    answers: { 200: { description: "a signed note", contentType: "text/plain" } },
  },
  async ({ env }) => {
    const { stub, identity } = openServiceLog(env);
    const outcome = await stub.view(identity);
    if (!outcome.ok) throw refusal(outcome);
    return plain(outcome.view.checkpoint);
  },
);

const key = openRoute(
  {
    method: "GET",
    path: "/log/key",
    operation: "getServiceKey",
    tag: "service log",
    access: "none",
    summary: "The key of the service's log, as a C2SP vkey: pin it once",
    query: NoQuery,
    answers: { 200: { description: "a vkey", contentType: "text/plain" } },
  },
  async ({ env }) => {
    const { stub, identity } = openServiceLog(env);
    const outcome = await stub.view(identity);
    if (!outcome.ok) throw refusal(outcome);
    const { origin, key: publicKey } = outcome.view;
    return plain(`${formatVkey(logKey(nativeCrypto, origin, fromHex(publicKey, 32)))}\n`);
  },
);

const tile = openRoute(
  {
    method: "GET",
    path: "/log/tile/{path+}",
    operation: "getServiceTile",
    tag: "service log",
    access: "none",
    summary:
      "A hash tile of the service's log in the C2SP tlog-tiles layout, full or partial; no entry bundles",
    params: z.object({ path: z.string().max(200) }),
    query: NoQuery,
    answers: { 200: { description: "the tile's bytes", contentType: "application/octet-stream" } },
  },
  async ({ env, params }) => {
    const place = parseTilePath(`tile/${params.path}`);
    if (place === undefined || place.kind !== "hashes") throw new Problem("not-found");
    const { stub, identity } = openServiceLog(env);
    const outcome = await stub.tile(identity, place);
    if (!outcome.ok) throw refusal(outcome);
    if (outcome.bytes === null) throw new Problem("not-found");
    return tileResponse(outcome.bytes);
  },
);

export const serviceLogRoutes: readonly Route[] = [checkpoint, key, tile];
