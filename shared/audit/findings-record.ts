/**
 * The record itself: clocks that went back, and what a host declares to be lost.
 *
 * @module
 */
import type { EntryView } from "../entry/view.ts";
import { type EntryRef, type FindingList, refOf } from "./finding.ts";
import { ENDS } from "./langbot-native.ts";

interface Instant {
  readonly at: bigint;
  readonly entry: EntryRef;
}

export class ClockCheck {
  readonly #list: FindingList;
  #recorded: Instant | null = null;
  #occurred: Instant | null = null;

  constructor(list: FindingList) {
    this.#list = list;
  }

  /** Every entry of the stream: the log's clock is one over all its runs; the sender's is compared within the run. */
  add(entry: EntryView, isOwn: boolean): void {
    this.#recorded = this.#next("recorded_clock_regression", this.#recorded, entry.recorded_at, entry);
    if (isOwn && entry.occurred_at !== null)
      this.#occurred = this.#next("occurred_clock_regression", this.#occurred, entry.occurred_at, entry);
  }

  #next(
    kind: "recorded_clock_regression" | "occurred_clock_regression",
    before: Instant | null,
    at: bigint,
    entry: EntryView,
  ): Instant {
    const here = { at, entry: refOf(entry) };
    if (before !== null && at < before.at) this.#list.add(kind, [before.entry, here.entry]);
    return here;
  }
}

/** Declarations between a run's entries, or after a run that has no end, which are held until the end is known. */
const MAX_HELD = 1024;

export class LossCheck {
  readonly #list: FindingList;
  readonly #held: EntryView[] = [];
  #began = false;
  #ended = false;

  constructor(list: FindingList) {
    this.#list = list;
  }

  /** A host declares a loss for its whole log, in no run; it counts where it lies between the run's entries. */
  add(entry: EntryView, isOwn: boolean): void {
    if (isOwn) {
      this.#began = true;
      this.#ended ||= ENDS.has(entry.kind);
      this.#release();
      this.#declare(entry);
    } else if (this.#began && entry.run === null && isDeclaration(entry.kind)) {
      if (this.#held.length < MAX_HELD) this.#held.push(entry);
      else this.#list.limit(`declared losses in a row, beyond ${MAX_HELD}`);
    }
  }

  /** A run without an end may have been cut off by what the host declares afterwards. */
  finish(): void {
    if (!this.#ended) this.#release();
  }

  #release(): void {
    for (const entry of this.#held.splice(0)) this.#declare(entry);
  }

  #declare(entry: EntryView): void {
    if (entry.kind === "host.loss") this.#list.add("declared_loss", [refOf(entry)]);
    if (entry.kind === "host.gap") this.#list.add("declared_gap", [refOf(entry)]);
  }
}

function isDeclaration(kind: string): boolean {
  return kind === "host.loss" || kind === "host.gap";
}
