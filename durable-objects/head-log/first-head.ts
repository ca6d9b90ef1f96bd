/**
 * The head of a log of heads that lists nothing yet.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex } from "../../shared/bytes.ts";
import { RightEdge } from "../../shared/merkle/edge.ts";
import { EMPTY_ROOT } from "../../shared/merkle/hash.ts";
import { signCheckpoint } from "../../shared/note/checkpoint.ts";
import type { OpenLogKey } from "./log-keys.ts";
import { FIRST_PAUSE_MS } from "./schedule.ts";
import type { HeadStorage } from "./storage.ts";

/** Signs and stores it, where the log has no head. */
export function ensureFirstHead(storage: HeadStorage, origin: string, { epoch, signer }: OpenLogKey): void {
  if (storage.state() !== null) return;
  storage.setState({
    size: 0,
    edge: new RightEdge(nativeCrypto).toBytes(),
    checkpoint: signCheckpoint(nativeCrypto, origin, [signer], { origin, size: 0, root: EMPTY_ROOT }),
    key: toHex(signer.publicKey),
    epoch,
    batch: 0,
    time: 0n,
    recordEpoch: -1,
    listedReport: 0,
    signedAtMs: 0,
    fullAtMs: 0,
    intervalMs: FIRST_PAUSE_MS,
  });
}
