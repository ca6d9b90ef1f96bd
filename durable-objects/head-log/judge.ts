/**
 * Whether a reported head may take the place of the last one: it is larger or the same, and proved to go on from it.
 *
 * @module
 */
import { fromHex } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { verifyConsistency } from "../../shared/merkle/verify.ts";
import { hashList } from "../tile-store/proofs.ts";
import type { HeadReport, ReportedHead, ReportOutcome } from "./types.ts";

/**
 * @param last what is known of the log; null for nothing
 * @returns as the reporter gets it; `changed` tells whether there is something to store
 */
export function judgeReport(
  crypto: CryptoPort,
  last: ReportedHead | null,
  report: HeadReport,
): { readonly outcome: ReportOutcome; readonly changed: boolean } {
  const unchanged = (outcome: ReportOutcome) => ({ outcome, changed: false });
  const known = last?.size ?? 0;
  // A report that is late, or whose sender does not know what is listed, contradicts nothing yet.
  if (report.from !== known) return unchanged({ status: "behind", size: known });
  if (last === null) return { outcome: { status: "taken" }, changed: true };
  if (report.size < last.size) return unchanged({ status: "refused", reason: "lowered" });
  if (report.epoch < last.epoch) return unchanged({ status: "refused", reason: "epoch-regression" });
  if (report.size === last.size) {
    const same = report.root === last.root;
    return unchanged(same ? { status: "taken" } : { status: "refused", reason: "forked" });
  }
  const { ok } = verifyConsistency(
    crypto,
    last.size,
    report.size,
    hashList(report.path),
    fromHex(last.root, 32),
    fromHex(report.root, 32),
  );
  return ok
    ? { outcome: { status: "taken" }, changed: true }
    : unchanged({ status: "refused", reason: "inconsistent" });
}
