/**
 * Whether a head that is kept elsewhere takes the place of the last one that is: never a smaller one, never one that is
 * not proved to be of the same history.
 *
 * @module
 */
import { fromHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { verifyConsistency } from "../../shared/merkle/verify.ts";
import { hashList } from "../tile-store/proofs.ts";
import type { AnchorOutcome, AnchorRequest } from "./types.ts";

/** @param last null for none */
export function judgeAnchor(
  crypto: CryptoPort,
  last: { readonly size: number; readonly root: string } | null,
  request: AnchorRequest,
): AnchorOutcome {
  const known = last?.size ?? 0;
  if (request.from !== known) return { status: "behind", size: known };
  if (last === null) return { status: "advanced" };
  const [small, large] = request.size < last.size ? [request, last] : [last, request];
  const { ok } = verifyConsistency(
    crypto,
    small.size,
    large.size,
    hashList(request.path),
    fromHex(small.root, 32),
    fromHex(large.root, 32),
  );
  if (!ok) return { status: "rejected" };
  return { status: request.size > last.size ? "advanced" : "unchanged" };
}
