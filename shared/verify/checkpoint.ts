/**
 * Whether a checkpoint is a good head of a log: its origin is the log's, and one of its signatures
 * is by a key that held `audit` at an epoch not before the last leaf's.
 *
 * @module
 */
import type { CryptoPort } from "../crypto/port.ts";
import { RunsealError } from "../errors.ts";
import type { Checkpoint } from "../note/checkpoint.ts";
import { openCheckpoint, parseCheckpoint } from "../note/checkpoint.ts";
import type { RegistryChain } from "../registry/chain.ts";
import { ROLES } from "../registry/record.ts";
import type { IssueCode } from "./issues.ts";

export type CheckpointCheck =
  | {
      readonly ok: true;
      readonly checkpoint: Checkpoint;
      readonly key: Uint8Array;
      /** Every signer that counts. */
      readonly good: readonly Uint8Array[];
      /** Whether the key still holds `audit` at the registry's latest epoch. */
      readonly current: boolean;
    }
  | { readonly ok: false; readonly code: IssueCode; readonly detail: string };

const CODE_OF: Readonly<Record<string, IssueCode>> = {
  "unverified-note": "unregistered-key",
  "malformed-note": "malformed-entry",
  "malformed-checkpoint": "malformed-entry",
};

export type OpenedHead =
  | { readonly ok: true; readonly checkpoint: Checkpoint; readonly keys: readonly Uint8Array[] }
  | { readonly ok: false; readonly code: IssueCode; readonly detail: string };

/** Opens a note as the head of the log with that origin, under any of the keys. */
export function openHead(
  crypto: CryptoPort,
  origin: string,
  note: string,
  keys: readonly Uint8Array[],
): OpenedHead {
  try {
    // A head of another log has signatures of other names: that it is another's is to be said first.
    if (parseCheckpoint(note).checkpoint.origin !== origin) {
      return { ok: false, code: "log-id-mismatch", detail: "the checkpoint is of another log" };
    }
    return { ok: true, ...openCheckpoint(crypto, note, origin, keys) };
  } catch (error) {
    if (!(error instanceof RunsealError)) throw error;
    return { ok: false, code: CODE_OF[error.code] ?? "invalid-signature", detail: error.message };
  }
}

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
  const opened = openHead(crypto, origin, note, registry.ever(ROLES.audit));
  if (!opened.ok) return opened;
  const good = opened.keys.filter(
    (key) => lastEpoch === null || (registry.lastEpochHeld(ROLES.audit, key) ?? -1) >= lastEpoch,
  );
  const current = good.find((key) => registry.holds(ROLES.audit, key, registry.epoch));
  const key = current ?? good[0];
  if (key === undefined) {
    return {
      ok: false,
      code: "unregistered-key",
      detail: "no signer held the audit role at the last entry's epoch",
    };
  }
  return { ok: true, checkpoint: opened.checkpoint, key, good, current: current !== undefined };
}
