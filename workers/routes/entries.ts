/**
 * Appending entries.
 *
 * @module
 */
import { z } from "zod";
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type { HeadView, ItemOutcome } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import type { ProblemCode } from "../../shared/api/problems.ts";
import { isProblemCode, PROBLEMS, problemType } from "../../shared/api/problems.ts";
import { AppendAnswer, EntryIn, PrincipalName } from "../../shared/api/schemas.ts";
import { fromHex } from "../../shared/bytes.ts";
import { MAX_BATCH_BYTES } from "../../shared/entry/limits.ts";
import type { BodyForm, ParsedBatch } from "../../shared/entry/parse-batch.ts";
import { parseBatch } from "../../shared/entry/parse-batch.ts";
import type { PrepareContext, PreparedEntry } from "../../shared/entry/prepare.ts";
import { RunsealError } from "../../shared/errors.ts";
import { uuidv7 } from "../../shared/ids.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { hasScope } from "../http/auth.ts";
import { readBody } from "../http/body.ts";
import { headOut } from "../http/head.ts";
import { Problem } from "../http/problem.ts";
import type { Route } from "../http/route.ts";
import { json, tenantRoute } from "../http/route.ts";
import type { VerifyClient } from "../logs/client-keys.ts";
import { readSigned } from "../logs/client-keys.ts";
import type { OpenLog } from "../logs/open-log.ts";
import { findLogForAppend, openLogForAppend, refusal } from "../logs/open-log.ts";
import { proofsFor } from "../logs/proofs.ts";

const FLAG = z.enum(["true", "false"]).optional();

/** Random bytes for salts, drawn in blocks: the platform gives at most 65,536 at once. */
function randomSource(): (count: number) => Uint8Array {
  let block = new Uint8Array();
  let at = 0;
  return (count) => {
    if (at + count > block.length) {
      block = crypto.getRandomValues(new Uint8Array(8192));
      at = 0;
    }
    at += count;
    return block.subarray(at - count, at);
  };
}

function bodyForm(request: Request): BodyForm {
  const type = (request.headers.get("content-type") ?? "application/json")
    .split(";")[0]
    ?.trim()
    .toLowerCase();
  if (type === "application/json") return "json";
  if (type === "application/x-ndjson" || type === "application/ndjson" || type === "application/jsonl")
    return "ndjson";
  throw new Problem("unsupported-media-type");
}

/** What a batch's item becomes in the answer. */
interface Item {
  readonly index: number;
  readonly id?: string;
  readonly seq?: number;
  readonly hash?: string;
  readonly status?: "stored" | "seen";
  readonly proof?: string;
  readonly checkpoint?: string;
  readonly path?: readonly string[];
  readonly error?: Record<string, unknown>;
}

function itemError(
  code: ProblemCode,
  options: { detail?: string; pointer?: string; differs?: readonly string[] } = {},
) {
  const { title, status } = PROBLEMS[code];
  return { type: problemType(code), title, status, ...options };
}

function refusedItem(
  index: number,
  id: string | null,
  problem: { code: string; pointer: string; message: string },
): Item {
  const code: ProblemCode = isProblemCode(problem.code) ? problem.code : "invalid-field";
  return {
    index,
    ...(id === null ? {} : { id }),
    error: itemError(code, { detail: problem.message, pointer: problem.pointer }),
  };
}

function outcomeItem(index: number, id: string, outcome: ItemOutcome, caller: Caller): Item {
  switch (outcome.status) {
    case "stored":
    case "seen":
      return { index, id, seq: outcome.seq, hash: outcome.hash, status: outcome.status };
    case "conflict":
      // What differs tells of the stored entry: only a key that may read learns it.
      return {
        index,
        id,
        error: hasScope(caller, "read")
          ? itemError("conflict", { pointer: outcome.differs[0] ?? "/id", differs: outcome.differs })
          : itemError("conflict"),
      };
    case "erased":
      return { index, id, seq: outcome.seq, hash: outcome.hash, error: itemError("erased") };
    case "not-stored":
      return { index, id, error: itemError("not-stored") };
  }
}

/** A request's entries as they were sent. */
interface Sent {
  readonly form: BodyForm;
  readonly bytes: Uint8Array;
}

function parse({ form, bytes }: Sent, caller: Caller, verifyClient: VerifyClient): ParsedBatch {
  const random = randomSource();
  const context: PrepareContext = {
    crypto: nativeCrypto,
    credential: fromHex(caller.key.id, 16),
    defaultReporter: "agent",
    writer: "client",
    random,
    newId: () => uuidv7(Date.now(), random(16)),
    verifyClient,
  };
  try {
    return parseBatch(bytes, form, context);
  } catch (error) {
    if (error instanceof RunsealError && (error.code === "json-syntax" || error.code === "batch-too-large")) {
      throw new Problem(error.code, { detail: error.message, pointer: error.pointer ?? "" });
    }
    throw error;
  }
}

/** The log stores entries under another epoch than the one at which their signatures were checked. */
class EpochMoved extends Error {
  override readonly name = "EpochMoved";
  readonly epoch: number;
  readonly problem: Problem;

  constructor(epoch: number, problem: Problem) {
    super("the log's epoch is another one");
    this.epoch = epoch;
    this.problem = problem;
  }
}

async function store(
  log: OpenLog,
  entries: readonly PreparedEntry[],
  atomic: boolean,
  signedEpoch: number | null,
): Promise<{ items: readonly ItemOutcome[]; head: HeadView }> {
  const outcome = await log.stub.append({
    log: log.identity,
    epoch: Math.max(log.epoch, signedEpoch ?? 0),
    ...(signedEpoch === null ? {} : { signedEpoch }),
    atomic,
    ids: entries.map(({ id }) => id),
    frame: encodeFrame(entries.map(({ body, row }) => ({ bytes: body, row }))),
  });
  if (outcome.ok) return outcome;
  if (outcome.epoch !== undefined) throw new EpochMoved(outcome.epoch, refusal(outcome));
  throw refusal(outcome);
}

/** Times that signatures are checked anew because the registry moved on between check and commit. */
const MAX_CHECKS = 4;

/** Status of a request of which nothing could be stored. */
function refuseAll(results: readonly Item[], single: boolean, atomic: boolean): Problem {
  const [first] = results;
  const error = first?.error;
  if (single && error !== undefined) {
    const code = String(error.type).slice(problemType("internal").length - "internal".length);
    const { type: _type, title: _title, status: _status, ...members } = error;
    return new Problem(isProblemCode(code) ? code : "entries-refused", { members: { ...members, results } });
  }
  const notStored = problemType("not-stored");
  const firstRefused = results.find((item) => item.error !== undefined && item.error.type !== notStored);
  const pointer = `/${firstRefused?.index ?? 0}${String(firstRefused?.error?.pointer ?? "")}`;
  return new Problem(atomic ? "batch-refused" : "entries-refused", { pointer, members: { results } });
}

const append = tenantRoute(
  {
    method: "POST",
    path: "/v1/principals/{p}/entries",
    operation: "appendEntries",
    tag: "entries",
    scope: "ingest",
    summary: "Append one entry, an array of entries, or NDJSON",
    description:
      "A 2xx answer is sent only once the entries are durable. One bad entry costs only itself, unless atomic=true. The same id again gets the first receipt; the same id with other content is a conflict.",
    params: z.object({ p: PrincipalName }),
    query: z.object({
      atomic: FLAG.describe("all or nothing"),
      proof: FLAG.describe("add an inclusion proof under the answered head to each receipt"),
      wait: z.enum(["mirrored"]).optional().describe("answer after the head is in the mirror"),
    }),
    rawBody: {
      schema: z.union([EntryIn, z.array(EntryIn)]),
      contentTypes: ["application/json", "application/x-ndjson"],
      limit: MAX_BATCH_BYTES,
    },
    answers: {
      201: { description: "all stored", schema: AppendAnswer },
      200: { description: "all seen before", schema: AppendAnswer },
      207: { description: "some stored, some seen before or refused: see each result", schema: AppendAnswer },
    },
  },
  async ({ request, env, caller, params, query }) => {
    const form = bodyForm(request);
    const sent = { form, bytes: await readBody(request, MAX_BATCH_BYTES) };
    for (let check = 1, epoch = 0; ; check++) {
      try {
        return await appendSent(env, caller, params.p, query, sent, epoch);
      } catch (error) {
        if (!(error instanceof EpochMoved)) throw error;
        if (check === MAX_CHECKS) throw error.problem;
        epoch = error.epoch;
      }
    }
  },
);

interface AppendQuery {
  readonly atomic?: "true" | "false" | undefined;
  readonly proof?: "true" | "false" | undefined;
  readonly wait?: "mirrored" | undefined;
}

/** Reads and appends what was sent. Throws `EpochMoved` where its signatures have to be checked again. */
async function appendSent(
  env: Env,
  caller: Caller,
  name: string,
  query: AppendQuery,
  sent: Sent,
  atLeast: number,
): Promise<Response> {
  const { batch, signedEpoch } = await readSigned(
    env,
    caller.tenant.id,
    () => findLogForAppend(env, caller, name),
    atLeast,
    (verifyClient) => parse(sent, caller, verifyClient),
  );
  if (batch.entries.length === 0) {
    throw new Problem("entries-refused", {
      pointer: "",
      detail: "the request holds no entry",
      members: { results: [] },
    });
  }
  const atomic = query.atomic === "true";
  const results: Item[] = [];
  const accepted: { index: number; entry: PreparedEntry }[] = [];
  batch.entries.forEach((parsed, index) => {
    if (parsed.ok) accepted.push({ index, entry: parsed.entry });
    else results.push(refusedItem(index, parsed.id, parsed.problem));
  });
  if (accepted.length === 0 || (atomic && results.length > 0)) {
    for (const { index, entry } of accepted)
      results.push(outcomeItem(index, entry.id, { status: "not-stored" }, caller));
    throw refuseAll(sorted(results), batch.single, atomic);
  }
  const log = await openLogForAppend(env, caller, name);
  const { items, head: first } = await store(
    log,
    accepted.map(({ entry }) => entry),
    atomic,
    signedEpoch,
  );
  accepted.forEach(({ index, entry }, i) => {
    const outcome = items[i];
    if (outcome !== undefined) results.push(outcomeItem(index, entry.id, outcome, caller));
  });
  const answer = sorted(results);
  if (answer.every((item) => item.error !== undefined)) throw refuseAll(answer, batch.single, atomic);
  const head = query.wait === "mirrored" ? await waitMirrored(log, first) : first;
  const withProofs = query.proof === "true" ? await addProofs(log, answer) : answer;
  return json(
    { results: withProofs, head: headOut(head), mirrored_size: head.mirroredSize },
    statusOf(answer),
  );
}

function sorted(results: readonly Item[]): Item[] {
  return [...results].sort((a, b) => a.index - b.index);
}

function statusOf(items: readonly Item[]): number {
  if (items.every((item) => item.status === "stored")) return 201;
  return items.every((item) => item.status === "seen") ? 200 : 207;
}

async function waitMirrored(log: OpenLog, head: HeadView): Promise<HeadView> {
  const outcome = await log.stub.mirrored(log.identity, log.epoch, head.size);
  if (!outcome.ok) throw refusal(outcome);
  return outcome.head;
}

async function addProofs(log: OpenLog, items: readonly Item[]): Promise<Item[]> {
  const seqs = items.flatMap((item) => (item.seq === undefined ? [] : [item.seq]));
  const proofs = await proofsFor(log, seqs);
  return items.map((item) => {
    const proof = item.seq === undefined ? undefined : proofs.get(item.seq);
    return proof === undefined
      ? item
      : { ...item, proof: proof.text, checkpoint: proof.checkpoint, path: proof.path };
  });
}

export const entryRoutes: readonly Route[] = [append];
