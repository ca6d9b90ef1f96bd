/**
 * The findings of one run beyond its ledger, gathered while its entries go by, in memory that does not grow with the
 * run (docs/audit.md "Findings").
 *
 * @module
 */
import { pureCrypto } from "../crypto/pure.ts";
import type { EntryView } from "../entry/view.ts";
import { RunsealError } from "../errors.ts";
import type { Sha256 } from "../recheck/hash.ts";
import { FindingList } from "./finding.ts";
import { CapabilityCheck, CodeCheck } from "./findings-authority.ts";
import { ConsentCheck } from "./findings-consent.ts";
import { HostRunCheck } from "./findings-host.ts";
import { HttpCheck } from "./findings-http.ts";
import { ClockCheck, LossCheck } from "./findings-record.ts";

/**
 * Kinds that are read of the whole log, not of the run alone: what they say outlives a run. Where the caller gives
 * them, `context` is "log".
 */
export const CONTEXT_KINDS: readonly string[] = [
  "approval.requested",
  "approval.granted",
  "approval.denied",
  "approval.expired",
  "capability.created",
  "capability.revoked",
  "capability.changed",
  "code.installed",
  "host.loss",
  "host.gap",
];
const IN_CONTEXT = new Set(CONTEXT_KINDS);

export interface FindingsOptions {
  /**
   * `log`: besides the run's entries, those of `CONTEXT_KINDS` of the whole log are given, from its first entry on; so
   * what is not among them is not on record. `run`, the default: the run's entries alone.
   */
  readonly context?: "log" | "run";
  /** Canonical text of the stored tool spec of a hash; with it approval hashes are computed again. */
  readonly specs?: (hash: string) => string | undefined;
  readonly crypto?: Sha256;
  /** `accept`: what a record has no place for is a note, and does not keep the audit from passing. */
  readonly unrecorded?: "accept";
}

/** Looks at the entries of one run, and of its context, in the order of their sequence numbers. */
export class RunFindings {
  readonly list = new FindingList();
  readonly #run: string;
  readonly #http = new HttpCheck(this.list);
  readonly #clock = new ClockCheck(this.list);
  readonly #loss = new LossCheck(this.list);
  readonly #hostRuns = new HostRunCheck(this.list);
  readonly #consent: ConsentCheck;
  readonly #capabilities: CapabilityCheck;
  readonly #code: CodeCheck;
  #last = 0;

  constructor(run: string, options: FindingsOptions = {}) {
    const wholeLog = options.context === "log";
    const crypto = options.crypto ?? pureCrypto;
    this.#run = run;
    this.#consent = new ConsentCheck(
      this.list,
      { crypto, specs: options.specs ?? (() => undefined) },
      wholeLog,
    );
    this.#capabilities = new CapabilityCheck(this.list, wholeLog);
    this.#code = new CodeCheck(this.list, wholeLog);
  }

  /** Throws `RunsealError("audit-order")` where the entry does not come after the one before. */
  add(entry: EntryView): void {
    if (entry.seq <= this.#last)
      throw new RunsealError(
        "audit-order",
        "the entries of an audit come in the order of their sequence numbers",
      );
    this.#last = entry.seq;
    const isOwn = entry.run === this.#run;
    if (!isOwn && !IN_CONTEXT.has(entry.kind)) return;
    this.#clock.add(entry, isOwn);
    this.#loss.add(entry, isOwn);
    this.#capabilities.add(entry, isOwn);
    this.#code.add(entry, isOwn);
    this.#consent.add(entry, isOwn);
    this.#http.add(entry);
    this.#hostRuns.add(entry);
  }

  /** To be called once, after the last entry: what is still open is found now. */
  finish(): FindingList {
    this.#loss.finish();
    this.#capabilities.finish();
    this.#consent.finish();
    this.#http.finish();
    return this.list;
  }
}
