/**
 * Witnesses: those of the service's own log, for the operator to see; and the service as a witness for other logs
 * (c2sp.org/tlog-witness). docs/heads.md.
 *
 * @module
 */
import { z } from "zod";
import type { WitnessView } from "../../durable-objects/head-log/witness-client.ts";
import type { WitnessedLogView } from "../../durable-objects/witness/types.ts";
import { WITNESS } from "../../durable-objects/witness/types.ts";
import type { Witness } from "../../durable-objects/witness/witness.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { Hash, Time } from "../../shared/api/schemas.ts";
import { RunsealError } from "../../shared/errors.ts";
import { parseVkey, SIGNATURE_TYPES } from "../../shared/note/vkey.ts";
import { formatSizeConflict, SIZE_CONTENT_TYPE } from "../../shared/note/witness.ts";
import type { Env } from "../env.ts";
import { readBody } from "../http/body.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, openRoute, plain } from "../http/route.ts";
import { refusal } from "../logs/open-log.ts";
import { openServiceLog } from "./service-log.ts";

/** Bytes of a request: 63 hashes and a note with a hundred signatures are less than half of it. */
const MAX_REQUEST = 64 * 1024;

function open(env: Env): DurableObjectStub<Witness> {
  return env.WITNESS.getByName(WITNESS);
}

function timeOf(ms: number): string | null {
  return ms === 0 ? null : new Date(ms).toISOString();
}

const WitnessOut = z.object({
  name: z.string(),
  url: z.string(),
  vkey: z.string(),
  outcome: z.string().nullable().describe("how the last submission ended; null before the first"),
  asked_at: Time.nullable(),
  next_at: Time.nullable().describe("not to be asked before"),
  failures: z.int().min(0).describe("submissions in a row that gave no cosignature"),
  known_size: z.int().min(0).describe("the size that it has of the log, as far as is known"),
  cosigned_size: z.int().min(0),
  cosigned_at: Time.nullable(),
});

function witnessOut(view: WitnessView): z.infer<typeof WitnessOut> {
  return {
    name: view.name,
    url: view.url,
    vkey: view.vkey,
    outcome: view.outcome,
    asked_at: timeOf(view.askedAtMs),
    next_at: timeOf(view.nextAtMs),
    failures: view.failures,
    known_size: view.known,
    cosigned_size: view.cosignedSize,
    cosigned_at: timeOf(view.cosignedAtMs),
  };
}

const witnesses = openRoute(
  {
    method: "GET",
    path: "/v1/witnesses",
    operation: "listWitnesses",
    tag: "service log",
    access: "operator",
    summary: "The witnesses of the service's log, and what each of them answered last",
    query: z.object({}),
    answers: {
      200: {
        description: "the witnesses",
        schema: z.object({
          size: z.int().min(0).describe("of the service's log"),
          misconfigured: z.string().nullable().describe("why the setting WITNESSES can't be read"),
          witnesses: z.array(WitnessOut),
          alarms: z.array(z.object({ name: z.string(), detail: z.string(), raised_at: Time })),
        }),
      },
    },
  },
  async ({ env }) => {
    const { stub, identity } = openServiceLog(env);
    const outcome = await stub.witnesses(identity);
    if (!outcome.ok) throw refusal(outcome);
    return json({
      size: outcome.view.size,
      misconfigured: outcome.misconfigured,
      witnesses: outcome.witnesses.map(witnessOut),
      alarms: outcome.view.alarms.map(({ name, detail, atMs }) => {
        return { name, detail, raised_at: new Date(atMs).toISOString() };
      }),
    });
  },
);

const WitnessedLogOut = z.object({
  origin: z.string(),
  vkeys: z.array(z.string()),
  latest: z
    .object({ size: z.int().min(0), root: Hash, checkpoint: z.string(), cosigned_at: Time })
    .nullable()
    .describe("the last head that was cosigned"),
});

function logOut({ origin, vkeys, latest }: WitnessedLogView): z.infer<typeof WitnessedLogOut> {
  if (latest === null) return { origin, vkeys: [...vkeys], latest };
  const { size, root, checkpoint, cosignedAtMs } = latest;
  const cosigned_at = new Date(cosignedAtMs).toISOString();
  return { origin, vkeys: [...vkeys], latest: { size, root, checkpoint, cosigned_at } };
}

/** One line without control characters, as a checkpoint's first line is. */
const Origin = z
  .string()
  .min(1)
  .max(1000)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  .regex(/^[^\u0000-\u001f\p{Surrogate}]+$/u);

const putLog = openRoute(
  {
    method: "PUT",
    path: "/v1/witnessed-logs",
    operation: "putWitnessedLog",
    tag: "witness",
    access: "operator",
    summary: "Be a witness for a log under these keys; without keys, no longer",
    description: "What was cosigned of the log is never forgotten, so that it can't begin anew.",
    body: z.strictObject({
      origin: Origin.describe("the first line of its checkpoints"),
      vkeys: z.array(z.string().max(2000)).max(10).describe("its Ed25519 keys, as C2SP vkeys"),
    }),
    answers: { 200: { description: "the log", schema: WitnessedLogOut } },
  },
  async ({ env, body }) => {
    body.vkeys.forEach((vkey, i) => {
      if (!isLogKey(vkey)) {
        throw new Problem("invalid-request", {
          pointer: `/vkeys/${i}`,
          detail: "body: not the vkey of an Ed25519 log key",
        });
      }
    });
    return json(logOut(await open(env).setLog(body.origin, body.vkeys)));
  },
);

function isLogKey(vkey: string): boolean {
  try {
    return parseVkey(nativeCrypto, vkey).type === SIGNATURE_TYPES.ed25519;
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return false;
  }
}

const listLogs = openRoute(
  {
    method: "GET",
    path: "/v1/witnessed-logs",
    operation: "listWitnessedLogs",
    tag: "witness",
    access: "operator",
    summary: "The logs that the service is a witness for, each with the last head that it cosigned",
    query: z.object({}),
    answers: { 200: { description: "the logs", schema: z.object({ logs: z.array(WitnessedLogOut) }) } },
  },
  async ({ env }) => json({ logs: (await open(env).logs()).map(logOut) }),
);

const key = openRoute(
  {
    method: "GET",
    path: "/witness/key",
    operation: "getWitnessKey",
    tag: "witness",
    access: "none",
    summary: "The witness' key, as a C2SP vkey: pin it once",
    query: z.object({}),
    answers: { 200: { description: "a vkey", contentType: "text/plain" } },
  },
  async ({ env }) => plain(`${await open(env).vkey()}\n`),
);

const addCheckpoint = openRoute(
  {
    method: "POST",
    path: "/add-checkpoint",
    operation: "addCheckpoint",
    tag: "witness",
    access: "none",
    summary: "The C2SP tlog-witness protocol: cosigns a head that goes on from the last one",
    rawBody: { schema: z.string(), contentTypes: ["text/plain"], limit: MAX_REQUEST },
    answers: {
      200: { description: "signature lines", contentType: "text/plain" },
      409: { description: "the size that the witness has", contentType: SIZE_CONTENT_TYPE },
    },
  },
  async ({ env, request }) => {
    const reply = await open(env).addCheckpoint(await readBody(request, MAX_REQUEST));
    switch (reply.status) {
      case 200:
        return plain(reply.cosignatures);
      case 409:
        return new Response(formatSizeConflict(reply.size), {
          status: 409,
          headers: { "content-type": SIZE_CONTENT_TYPE, "cache-control": "no-store" },
        });
      case 400:
        throw new Problem("invalid-request", {
          pointer: "",
          detail: "the body is not an add-checkpoint request",
        });
      case 403:
        throw new Problem("untrusted-checkpoint");
      case 404:
        throw new Problem("unknown-log");
      case 422:
        throw new Problem("inconsistent-checkpoint");
    }
  },
);

export const witnessRoutes: readonly Route[] = [witnesses, putLog, listLogs, key, addCheckpoint];
