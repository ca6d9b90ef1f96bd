/**
 * The alarm that flushes and mirrors: set once after a commit and not put off by the next ones. Each kind of its work has
 * pauses of its own, longer ones while it fails, however many commits there are meanwhile: a D1 that is away does not keep
 * heads from R2, nor the other way round.
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
/** First and longest pause between two attempts at what fails. */
const MIN_PAUSE_MS = 2000;
const MAX_PAUSE_MS = 60_000;

/** Kinds of work: entries for D1; the head, its tiles and bundles for R2; content, erasures, and what others are told. */
export type Work = "index" | "mirror" | "other";
const WORKS: readonly Work[] = ["index", "mirror", "other"];

/** Whether each kind that was attempted is done; what was not is left out. */
export type WorkOutcome = Readonly<Partial<Record<Work, boolean>>>;

/** Whether the work is done without an error. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch {
    return false;
  }
}

/** When one kind of work may be attempted again. */
class Pause {
  failures = 0;
  /** Milliseconds since the epoch. */
  until = 0;

  note(done: boolean): void {
    this.failures = done ? 0 : this.failures + 1;
    const pause = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** Math.min(this.failures - 1, 10));
    this.until = done ? 0 : Date.now() + pause;
  }
}

export class FlushAlarm {
  readonly #storage: DurableObjectStorage;
  readonly #name: string;
  readonly #pauses: Readonly<Record<Work, Pause>> = {
    index: new Pause(),
    mirror: new Pause(),
    other: new Pause(),
  };
  /** When it is set to go off; null where it is not set. */
  #at: number | null = null;
  /** Whether an attempt is under way. */
  #running = false;

  /** @param name the object's, for the operator's log */
  constructor(storage: DurableObjectStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
  }

  /** Finds out whether an alarm is set, when the object starts. */
  async start(): Promise<void> {
    this.#at = await this.#storage.getAlarm();
  }

  /** Kinds of work that failed when they were attempted last. */
  get failing(): readonly Work[] {
    return WORKS.filter((work) => this.#pauses[work].failures > 0);
  }

  /**
   * Sets the alarm for when the first of the works may be attempted, unless it goes off by then: to set it later each time
   * would starve the flush. While an attempt is under way its end decides.
   *
   * @param soon whether the attempt that just ended left off where it may go on at once
   */
  async arm(works: readonly Work[] = WORKS, soon = false): Promise<void> {
    if (this.#running || works.length === 0) return;
    const earliest = Date.now() + (soon ? ALARM_PACE.breathMs : ALARM_PACE.delayMs);
    const at = Math.min(...works.map((work) => Math.max(earliest, this.#pauses[work].until)));
    if (this.#at !== null && this.#at <= at) return;
    this.#at = at;
    try {
      await this.#storage.setAlarm(at);
    } catch {
      // The next commit tries again.
      this.#at = null;
    }
  }

  /**
   * Makes an attempt, when the alarm went off: none is set now. Whether nothing failed; what it throws counts as a failure
   * of all.
   *
   * @param attempt gets what is due: what failed is not before its pause is over
   */
  async run(attempt: (due: ReadonlySet<Work>) => Promise<WorkOutcome>): Promise<boolean> {
    // The platform's clock and ours may differ by a little: it went off at the time that it was set for.
    const now = Math.max(Date.now(), this.#at ?? 0);
    const due = new Set(WORKS.filter((work) => this.#pauses[work].until <= now));
    this.#at = null;
    this.#running = true;
    const outcome = await attempt(due).catch(() => ({ index: false, mirror: false, other: false }));
    this.#running = false;
    const failed = WORKS.filter((work) => outcome[work] === false);
    for (const work of WORKS) {
      const done = outcome[work];
      if (done !== undefined) this.#pauses[work].note(done);
    }
    if (failed.length === 0) return true;
    const failures = Math.max(...failed.map((work) => this.#pauses[work].failures));
    logEvent("flush-failed", { object: this.#name, work: failed.join(" "), failures });
    return false;
  }
}
