/**
 * The text that a fold keeps of one run, counted, so that no run can take more memory than `MAX_RUN_TEXT` allows.
 *
 * @module
 */
import { detached } from "./fields.ts";
import { MAX_RUN_TEXT } from "./limits.ts";
import type { Problem } from "./model.ts";

/** What is wrong with a record whose text found no room. */
export const NO_ROOM: Problem = {
  reason: "text-budget",
  words: "the run has more text than a re-check keeps",
};

export class TextBudget {
  readonly #limit: number;
  readonly #names = new Map<string, string>();
  /** UTF-16 units kept so far. */
  used = 0;

  constructor(limit: number = MAX_RUN_TEXT) {
    this.#limit = limit;
  }

  /** Whether texts of this many units in all may be kept; they are counted if so. */
  take(units: number): boolean {
    if (this.used + units > this.#limit) return false;
    this.used += units;
    return true;
  }

  /** A text that repeats over a run (a tool, an identity, a hash), kept once; null where there is no room for it. */
  name(text: string): string | null {
    const kept = this.#names.get(text);
    if (kept !== undefined) return kept;
    if (!this.take(text.length)) return null;
    const copy = detached(text);
    this.#names.set(copy, copy);
    return copy;
  }
}
