/**
 * Has a log erase content (docs/privacy.md): the request is on the tenant's system log before anything is done, and the
 * log itself goes on with it when this Worker is gone.
 *
 * @module
 */
import type {
  EntryPlace,
  ErasureReport,
  ErasureTarget,
} from "../../durable-objects/content/erasure-types.ts";
import { erasureFields } from "../../durable-objects/content/erasures.ts";
import { deriveFromMaster } from "../../durable-objects/managed-keys.ts";
import { toHex } from "../../shared/bytes.ts";
import type { FieldSelection } from "../../shared/entry/field-selection.ts";
import type { Env } from "../env.ts";
import type { Caller } from "../http/auth.ts";
import { Problem } from "../http/problem.ts";
import type { OpenLog } from "./open-log.ts";
import { refusal } from "./open-log.ts";
import { logIdOf } from "./read.ts";
import { recordSystemEntry } from "./system-log.ts";

export interface ErasureWish {
  readonly target: ErasureTarget;
  readonly selection: FieldSelection;
  readonly reason: string;
}

/** Throws 400 where the log has not all the entries, and 503 problems where a part is away. */
export async function eraseContent(
  env: Env,
  caller: Caller,
  log: OpenLog,
  { target, selection, reason }: ErasureWish,
): Promise<ErasureReport> {
  const resolved = await log.stub.erasable(log.identity, log.epoch, target);
  if (resolved.ok === false) throw refusal(resolved);
  if (resolved.ok === "absent") {
    const pointer = resolved.id !== null ? `/ids/${resolved.id}` : "/to";
    throw new Problem("invalid-request", { pointer, detail: "body: the log has no such entry" });
  }
  const seqs = [...resolved.seqs];
  const fields = selection.names;
  const by = caller.key.id;
  const logId = logIdOf(log);
  // Under the master key, for the reason is content, and the id is in the clear for good.
  const derived = await deriveFromMaster(
    env.MASTER_KEY,
    "erasure-id",
    logId,
    JSON.stringify([seqs, fields]),
    by,
    reason,
  );
  const id = toHex(derived.subarray(0, 16));
  const requested = await recordRequest(env, caller, id, {
    ...erasureFields(logId, { seqs, fields }),
    by,
    reason,
  });
  const outcome = await log.stub.erase(log.identity, log.epoch, {
    id,
    seqs,
    fields,
    by,
    reason,
    requested,
  });
  if (!outcome.ok) throw refusal(outcome);
  return outcome.report;
}

async function recordRequest(
  env: Env,
  caller: Caller,
  id: string,
  action: Readonly<Record<string, unknown>>,
): Promise<EntryPlace> {
  const kind = "erasure.requested";
  const item = await recordSystemEntry(env, caller.tenant, { id: `${kind}.${id}`, kind, action });
  if (item.status !== "stored" && item.status !== "seen") throw new Problem("internal");
  return { seq: item.seq, hash: item.hash };
}
