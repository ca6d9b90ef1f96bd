/**
 * A log of heads, as it answers for itself.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { RunsealError } from "../../shared/errors.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import type { HeadStorage } from "./storage.ts";
import type { HeadLogView } from "./types.ts";

/** From storage. Throws `RunsealError("storage-inconsistent")` where there is no head. */
export function headLogView(storage: HeadStorage, origin: string): HeadLogView {
  const state = storage.state();
  if (state === null) throw new RunsealError("storage-inconsistent", "the log of heads has no head");
  return {
    origin,
    registryId: storage.registryId() ?? "",
    size: state.size,
    root: toHex(RightEdge.fromBytes(nativeCrypto, state.edge).root()),
    checkpoint: state.checkpoint,
    key: state.key,
    batch: state.batch,
    signedAtMs: state.signedAtMs === 0 ? null : state.signedAtMs,
    fullAtMs: state.fullAtMs === 0 ? null : state.fullAtMs,
    mirroredSize: storage.progress().mirroredSize,
    pending: storage.countAfter(state.listedReport),
    alarms: storage.alarms(),
  };
}
