/**
 * A log's signed head. The first head after a rotation, and only that, carries the
 * signatures of both keys: whoever knows the old key can take over the new one there. (After a recovery the old key may
 * be lost: then the new one signs alone.)
 *
 * @module
 */
import { toHex } from "../../shared/bytes.ts";
import type { CryptoPort, Signer } from "../../shared/crypto/port.ts";
import { RunsealError } from "../../shared/errors.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import type { AuditKeys } from "./audit-keys.ts";
import type { StoredHead } from "./storage.ts";
import type { HeadView } from "./types.ts";

/** Signs a head; the key that signs now comes first. */
export function signHead(
  crypto: CryptoPort,
  origin: string,
  signer: Signer,
  retiring: Signer | null,
  head: { readonly size: number; readonly root: Uint8Array },
): string {
  const signers = retiring === null ? [signer] : [signer, retiring];
  return signCheckpoint(crypto, origin, signers, { origin, size: head.size, root: head.root });
}

/** The same head under the key that signs now, where another key signed it; else null. */
export function restatedHead(
  crypto: CryptoPort,
  origin: string,
  head: StoredHead,
  keys: AuditKeys,
): StoredHead | null {
  if (!keys.changedSince(head.epoch)) return null;
  const { epoch, signer } = keys.current();
  const checkpoint = signHead(crypto, origin, signer, keys.retiring(head.epoch), {
    size: head.size,
    root: head.edge.root(),
  });
  return { ...head, epoch, checkpoint };
}

/** The head as it crosses RPC. Throws `RunsealError("storage-inconsistent")` where storage holds none. */
export function headView(head: StoredHead | null, keys: AuditKeys, mirroredSize: number): HeadView {
  if (head === null) throw new RunsealError("storage-inconsistent", "the log has no head");
  return {
    size: head.size,
    hash: toHex(head.lastHash),
    root: toHex(head.edge.root()),
    checkpoint: head.checkpoint,
    epoch: head.epoch,
    key: toHex(keys.publicKey(head.epoch)),
    mirroredSize,
  };
}
