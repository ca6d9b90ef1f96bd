/**
 * Tells a log of heads what head this log has: from the log's alarm, never on the way of an append. The report carries
 * the proof that the head goes on from the one that is listed. What fails costs nothing but lag: the alarm tries again.
 *
 * @module
 */
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { logEvent } from "../../workers/log-event.ts";
import { consistencyPath } from "../tile-store/proofs.ts";
import type { TileTree } from "../tile-store/tile-tree.ts";
import type { HeadReport, ReportedHead, ReportOutcome } from "./types.ts";

/** One to learn what is listed, one to report, and one more for a report that crossed another. */
const MAX_ATTEMPTS = 3;

export class HeadReporter {
  readonly #crypto: CryptoPort;
  readonly #tree: TileTree;
  readonly #send: (report: HeadReport) => Promise<ReportOutcome>;
  /** The size that the log of heads is known to have of this log. */
  #known = 0;
  /** The last size that needs no further report. */
  #settled = 0;

  constructor(crypto: CryptoPort, tree: TileTree, send: (report: HeadReport) => Promise<ReportOutcome>) {
    this.#crypto = crypto;
    this.#tree = tree;
    this.#send = send;
  }

  /**
   * Reports the head, unless this object has done so. Never throws.
   *
   * @returns whether there is nothing left to do for it
   */
  async report(head: ReportedHead): Promise<boolean> {
    if (head.size === 0 || head.size === this.#settled) return true;
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const from = this.#known;
        const path =
          from < head.size ? consistencyPath(this.#crypto, this.#tree, from, head.size) : new Uint8Array();
        const outcome = await this.#send({ ...head, from, path });
        if (outcome.status === "behind") {
          this.#known = outcome.size;
          continue;
        }
        // A refusal stands in the log of heads as an alarm; saying the same again changes nothing.
        if (outcome.status === "taken") this.#known = head.size;
        this.#settled = head.size;
        return true;
      }
    } catch {
      logEvent("head-report-failed", { log_id: head.logId });
    }
    return false;
  }
}
