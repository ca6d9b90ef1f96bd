/**
 * A pause in long work of an object. The embedded server has D1 and R2 on the object's own thread, and reads nothing from the
 * network while one of their answers follows another: without pauses every request would wait for the end of the work.
 *
 * @module
 */

/** Lets in what has arrived. Other events come between: what was read before is to be read again. */
export function breathe(): Promise<void> {
  return scheduler.wait(0);
}
