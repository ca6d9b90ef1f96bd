/**
 * Whether a checkpoint is a good head of a log (design section 4): its origin is the log's, and one of its signatures
 * is by a key that held `audit` at an epoch not before the last leaf's.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import type { Checkpoint } from "../note/checkpoint.ts";
import { openCheckpoint } from "../note/checkpoint.ts";
import type { RegistryChain } from "../registry/chain.ts";
import { ROLES } from "../registry/record.ts";
import type { IssueCode } from "./issues.ts";

export type CheckpointCheck =
  | { readonly ok: true; readonly checkpoint: Checkpoint; readonly key: Uint8Array }
  | { readonly ok: false; readonly code: IssueCode; readonly detail: string };

/**
 * Opens the note under the registry's audit keys.
 *
 * @param lastEpoch epoch of leaf `size`, or null where it is not known (the signer's epoch is not judged then)
 */
export function checkCheckpoint(
  crypto: CryptoPort,
  registry: RegistryChain,
  origin: string,
  note: string,
  lastEpoch: number | null,
): CheckpointCheck {
  const keys = registry.ever(ROLES.audit);
  let opened: ReturnType<typeof openCheckpoint>;
  try {
    opened = openCheckpoint(crypto, note, origin, keys);
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { ok: false, code: error.code === "unverified-note" ? "unregistered-key" : "invalid-signature", detail: error.message };
  }
  if (opened.checkpoint.origin !== origin) {
    return { ok: false, code: "log-id-mismatch", detail: "the checkpoint is of another log" };
  }
  const good = opened.keys.find((key) => lastEpoch === null || (registry.lastEpochHeld(ROLES.audit, key) ?? -1) >= lastEpoch);
  if (good === undefined) {
    return { ok: false, code: "unregistered-key", detail: "no signer held the audit role at the last entry's epoch" };
  }
  return { ok: true, checkpoint: opened.checkpoint, key: good };
}
