/**
 * From a request's body to its receipts: reads the entries, hands them to their log, and says what became of each.
 *
 * @module
 */
import { encodeFrame } from "../../durable-objects/principal-log/frame.ts";
import type {
  Appended,
  AppendOutcome,
  HeadView,
  IdempotentRequest,
} from "../../durable-objects/principal-log/types.ts";
import type { Amount } from "../../durable-objects/tenant-directory/limits.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { randomSource } from "../../native/random-source.ts";
import { fromHex } from "../../shared/bytes.ts";
import type { BodyForm, ParsedBatch } from "../../shared/entry/parse-batch.ts";
import { parseBatch } from "../../shared/entry/parse-batch.ts";
import type { PrepareContext, PreparedEntry } from "../../shared/entry/prepare.ts";
import { RunsealError } from "../../shared/errors.ts";
import { uuidv7 } from "../../shared/ids.ts";
import type { Extensions } from "../../shared/kinds/catalogue.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import { refuseExhausted, takeBudget } from "../http/rate-limit.ts";
import type { Item } from "./append-results.ts";
import { outcomeItem, refuseAll, refusedItem, sorted } from "./append-results.ts";
import type { VerifyClient } from "./client-keys.ts";
import { readSigned } from "./client-keys.ts";
import { DeclarationsNeeded, knownExtensions, readExtensions } from "./extensions.ts";
import type { OpenLog } from "./open-log.ts";
import { findLogForAppend, openLogForAppend, refusal } from "./open-log.ts";

/** Salts and ids of every request that this isolate serves: a block for each would be drawn for nothing. */
const random = randomSource();

/** A request's entries as they were sent, and how they are to be stored. */
export interface Sent {
  readonly form: BodyForm;
  readonly bytes: Uint8Array;
  readonly atomic: boolean;
  /** Null where the request has no Idempotency-Key. */
  readonly idempotency: Omit<IdempotentRequest, "note"> | null;
}

export interface AppendResult {
  readonly log: OpenLog;
  /** In the order of the request. At least one entry is stored. */
  readonly results: readonly Item[];
  readonly head: HeadView;
  /** Whether the request had an Idempotency-Key: every answer to it is then made of this very result. */
  readonly kept: boolean;
  /** What is left of the caller's limits, where it has some, and whether the request was answered before. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Times that signatures are checked anew because the registry moved on between check and commit. */
const MAX_CHECKS = 4;

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

/** Appends what was sent. Throws the problem where nothing of it is stored. */
export async function append(env: Env, caller: Caller, name: string, sent: Sent): Promise<AppendResult> {
  try {
    refuseExhausted(caller);
    return await appendWithinLimits(env, caller, name, sent);
  } catch (error) {
    // What was answered before needs no room. Only now is it asked for: a request that has room costs no call more.
    const known = isOverLimit(error) ? await answeredBefore(env, caller, name, sent) : null;
    if (known === null) throw error;
    return known;
  }
}

function isOverLimit(error: unknown): boolean {
  return error instanceof Problem && (error.code === "rate-limited" || error.code === "quota-exceeded");
}

async function appendWithinLimits(env: Env, caller: Caller, name: string, sent: Sent): Promise<AppendResult> {
  let extensions: Extensions | null = null;
  for (let check = 1, epoch = 0; ; ) {
    try {
      return await appendAt(env, caller, name, sent, epoch, extensions);
    } catch (error) {
      if (error instanceof DeclarationsNeeded) {
        extensions = await readExtensions(env, caller.tenant.id);
        continue;
      }
      if (!(error instanceof EpochMoved)) throw error;
      if (check++ === MAX_CHECKS) throw error.problem;
      epoch = error.epoch;
    }
  }
}

/** @param extensions null: what this isolate knows of them, where the batch has a kind that needs them */
function parse(
  { form, bytes }: Sent,
  caller: Caller,
  verifyClient: VerifyClient,
  extensions: Extensions | null,
): ParsedBatch {
  const context: PrepareContext = {
    crypto: nativeCrypto,
    credential: fromHex(caller.key.id, 16),
    defaultReporter: "agent",
    writer: "client",
    random,
    newId: () => uuidv7(Date.now(), random(16)),
    verifyClient,
    extensions: extensions ?? ((prefix) => knownExtensions(caller.tenant.id)(prefix)),
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

/** A batch as it was read: what may be stored, and what can't be. */
interface Read {
  readonly single: boolean;
  readonly refused: readonly Item[];
  readonly accepted: readonly { readonly index: number; readonly entry: PreparedEntry }[];
}

function sort(batch: ParsedBatch): Read {
  if (batch.entries.length === 0) {
    const detail = "the request holds no entry";
    throw new Problem("entries-refused", { pointer: "", detail, members: { results: [] } });
  }
  const refused: Item[] = [];
  const accepted: { index: number; entry: PreparedEntry }[] = [];
  batch.entries.forEach((parsed, index) => {
    if (parsed.ok) accepted.push({ index, entry: parsed.entry });
    else refused.push(refusedItem(index, parsed.id, parsed.problem));
  });
  return { single: batch.single, refused, accepted };
}

/** What is kept with an answer beside the log's own part: from both together the answer is made each time. */
interface Note {
  readonly refused: readonly Item[];
  readonly indexes: readonly number[];
  readonly single: boolean;
}

/** For an answer that brings its own. */
const NO_NOTE: Note = { refused: [], indexes: [], single: false };

async function appendAt(
  env: Env,
  caller: Caller,
  name: string,
  sent: Sent,
  atLeast: number,
  extensions: Extensions | null,
): Promise<AppendResult> {
  const { batch, signedEpoch } = await readSigned(
    env,
    caller.tenant.id,
    () => findLogForAppend(env, caller, name),
    atLeast,
    (verifyClient) => parse(sent, caller, verifyClient, extensions),
  );
  const read = sort(batch);
  const { accepted, refused } = read;
  const note: Note = { refused, indexes: accepted.map(({ index }) => index), single: read.single };
  const idempotency =
    sent.idempotency === null ? undefined : { ...sent.idempotency, note: JSON.stringify(note) };
  if (accepted.length === 0 || (sent.atomic && refused.length > 0)) {
    const known = await answeredBefore(env, caller, name, sent);
    if (known !== null) return known;
    const notStored = accepted.map(({ index, entry }) =>
      outcomeItem(index, entry.id, { status: "not-stored" }, caller),
    );
    throw refuseAll(sorted([...refused, ...notStored]), read.single, sent.atomic);
  }
  const need = { entries: accepted.length, bytes: sent.bytes.length };
  const taking = takeBudget(env, caller, need);
  const charge = taking === null ? null : await taking;
  const log = await openLogForAppend(env, caller, name).catch((error: unknown) => {
    charge?.giveBack(need);
    throw error;
  });
  const ids = accepted.map(({ entry }) => entry.id);
  const outcome = await log.stub.append({
    log: log.identity,
    epoch: Math.max(log.epoch, signedEpoch ?? 0),
    ...(signedEpoch === null ? {} : { signedEpoch }),
    ...(idempotency === undefined ? {} : { idempotency }),
    atomic: sent.atomic,
    ids,
    frame: encodeFrame(accepted.map(({ entry: { body, row } }) => ({ bytes: body, row }))),
  });
  charge?.giveBack(unstored(need, outcome));
  if (!outcome.ok) {
    const problem = refusal(outcome);
    throw outcome.epoch !== undefined ? new EpochMoved(outcome.epoch, problem) : problem;
  }
  const result = resultOf(log, caller, sent, note, ids, outcome);
  return { ...result, headers: { ...charge?.headers, ...result.headers } };
}

/** What does not count against a limit, because nothing new is stored for it. */
function unstored(need: Amount, outcome: AppendOutcome): Amount {
  if (!outcome.ok) return outcome.stored === true ? { entries: 0, bytes: 0 } : need;
  if (outcome.kept?.replayed === true) return need;
  const stored = outcome.items.filter(({ status }) => status === "stored").length;
  return { entries: need.entries - stored, bytes: stored === 0 ? need.bytes : 0 };
}

/** What a request that can't be stored now was answered when it could be; null where it has no Idempotency-Key, too. */
async function answeredBefore(
  env: Env,
  caller: Caller,
  name: string,
  sent: Sent,
): Promise<AppendResult | null> {
  if (sent.idempotency === null) return null;
  const log = await findLogForAppend(env, caller, name);
  const request = { ...sent.idempotency, note: "" };
  const outcome = log === null ? null : await log.stub.recall(log.identity, log.epoch, request);
  if (log === null || outcome === null) return null;
  if (!outcome.ok) throw refusal(outcome);
  return resultOf(log, caller, sent, NO_NOTE, [], outcome);
}

function resultOf(
  log: OpenLog,
  caller: Caller,
  sent: Sent,
  ours: Note,
  ids: readonly string[],
  { items, head, kept }: Appended,
): AppendResult {
  const { refused, indexes, single } = kept === undefined ? ours : (JSON.parse(kept.note) as Note);
  const results = [...refused];
  items.forEach((outcome, i) => {
    const id = (kept?.ids ?? ids)[i] ?? "";
    results.push(outcomeItem(indexes[i] ?? 0, id, outcome, caller));
  });
  const answer = sorted(results);
  const headers: Record<string, string> = kept?.replayed === true ? { "idempotency-replayed": "true" } : {};
  if (answer.every((item) => item.error !== undefined)) {
    const { code, options } = refuseAll(answer, single, sent.atomic);
    throw new Problem(code, { ...options, headers });
  }
  return { log, results: answer, head, kept: kept !== undefined, headers };
}
