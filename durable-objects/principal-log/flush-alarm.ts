/**
 * The alarm that flushes and mirrors: set once after a commit and not put off by the next ones, and with longer pauses
 * while D1 or R2 fail, however many commits there are meanwhile.
 *
 * @module
 */

import { logEvent } from "../../workers/log-event.ts";

/** Pauses. An object, so that a test can change them. */
export const ALARM_PACE = {
  /**
   * Milliseconds between a commit and the flush and mirror that follow it. A reader does not wait for it (it asks for a
   * flush), and what comes meanwhile shares one transaction in D1 and one put of the checkpoint.
   */
  delayMs: 2000,
  /** The same between two passes of work that is bounded a pass: appends are served in between. */
  breathMs: 100,
};
/** First and longest pause between two attempts of a failing flush. */
const MIN_PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;

/** Whether the work is done without an error. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch {
    return false;
  }
}

export class FlushAlarm {
  readonly #storage: DurableObjectStorage;
  readonly #name: string;
  #armed = false;
  /** Whether an attempt is under way. */
  #running = false;
  #failures = 0;

  /** @param name the object's, for the operator's log */
  constructor(storage: DurableObjectStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
  }

  /** Finds out whether an alarm is set, when the object starts. */
  async start(): Promise<void> {
    this.#armed = (await this.#storage.getAlarm()) !== null;
  }

  /**
   * Sets the alarm, unless it is set: to set it later each time would starve the flush. While an attempt is under way
   * its end decides.
   *
   * @param soon whether the attempt that just ended left off where it may go on at once
   */
  async arm(soon = false): Promise<void> {
    if (this.#armed || this.#running) return;
    this.#armed = true;
    try {
      await this.#storage.setAlarm(Date.now() + (soon ? ALARM_PACE.breathMs : this.#pause()));
    } catch {
      // The next commit tries again.
      this.#armed = false;
    }
  }

  /** Makes an attempt, when the alarm went off: none is set now. Whether all was done; what it throws counts as a no. */
  async run(attempt: () => Promise<boolean>): Promise<boolean> {
    this.#armed = false;
    this.#running = true;
    const done = await attempt().catch(() => false);
    this.#running = false;
    this.#failures = done ? 0 : this.#failures + 1;
    if (!done) logEvent("flush-failed", { object: this.#name, failures: this.#failures });
    return done;
  }

  #pause(): number {
    if (this.#failures === 0) return ALARM_PACE.delayMs;
    return Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 10));
  }
}
