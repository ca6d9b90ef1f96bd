/**
 * The signed head that D1 holds of a log, beside the entries that it covers. It tells a log that starts what R2's mirrored
 * head may be too old to tell: that its storage was set back behind what it acknowledged. Read once a start; while D1 is
 * away a log starts without it.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import type { RegistryChain } from "../../shared/registry/chain.ts";
import { checkCheckpoint } from "../../shared/verify/checkpoint.ts";
import { logEvent } from "../../workers/log-event.ts";
import type { MirrorContext, NoteCheck } from "../tile-store/mirror.ts";
import { checkNote } from "../tile-store/mirror.ts";
import { headOfNote } from "./refill.ts";

/** Milliseconds for which a start waits for D1. An object, so that a test can change it. */
export const INDEXED_HEAD = { waitMs: 2000 };

export interface IndexedHeadContext extends Pick<MirrorContext, "crypto" | "tree" | "origin"> {
  readonly crypto: CryptoPort;
  readonly db: D1Database;
  /** Hex. */
  readonly logId: string;
  readonly principal: string;
  /** The tenant's registry. Throws what the registry throws. */
  readonly registry: () => Promise<RegistryChain>;
}

/**
 * The checkpoint as D1 has it; null where it has none.
 *
 * @throws what D1 throws; `RunsealError("index-slow")`
 */
export async function readIndexedHead({ db, logId }: IndexedHeadContext): Promise<string | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const asked = db
      .prepare("SELECT checkpoint FROM logs WHERE log_id = ?1")
      .bind(logId)
      .first<{ checkpoint: string | null }>();
    const late = new Promise<never>((_resolve, reject) => {
      const error = new RunsealError("index-slow", "D1 does not answer in time");
      timer = setTimeout(() => reject(error), INDEXED_HEAD.waitMs);
    });
    return (await Promise.race([asked, late]))?.checkpoint ?? null;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * How the head that D1 holds relates to the log. One that is not under the log's own signature proves nothing: it is passed
 * over, and noted for the operator.
 *
 * @throws what the registry throws, where the signature has to be checked
 */
async function checkIndexedHead(
  context: IndexedHeadContext,
  note: string,
  size: number,
): Promise<NoteCheck | null> {
  if (headOfNote(note) !== null) {
    const check = checkNote(context, note, size);
    if (check.kind === "consistent") return check;
    if (checkCheckpoint(context.crypto, await context.registry(), context.origin, note, null).ok)
      return check;
  }
  logEvent("indexed-head-altered", { principal: context.principal });
  return null;
}

/** The first of these heads that the log contradicts or lacks; null where there is none. Throws as above. */
export async function checkIndexedHeads(
  context: IndexedHeadContext,
  notes: readonly (string | null)[],
  size: number,
): Promise<NoteCheck | null> {
  for (const note of notes) {
    const check = note === null ? null : await checkIndexedHead(context, note, size);
    if (check !== null && check.kind !== "consistent") return check;
  }
  return null;
}
