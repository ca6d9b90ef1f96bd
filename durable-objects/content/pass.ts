/**
 * How much of what can wait one alarm does: so many pieces, and no further one after a time. The head's mirror waits for the
 * alarm's end, and is promised within five seconds of the last append, however slow R2 is.
 *
 * @module
 */

/** An object, so that a test can lower it. */
export const PASS_LIMITS = {
  /** Milliseconds after which no further piece is begun. Sealing and pruning have them each. */
  ms: 1000,
};

export class Pass {
  readonly #most: number;
  readonly #until = Date.now() + PASS_LIMITS.ms;

  /** Begins now. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether another piece is to be done after so many. The first one is, whatever the time: each pass gets on. */
  goesOn(done: number): boolean {
    return done < this.#most && (done === 0 || Date.now() < this.#until);
  }
}
