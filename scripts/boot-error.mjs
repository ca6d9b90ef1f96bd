/**
 * @module
 */

/** What keeps a command from starting; the message is a sentence for the person who typed it. */
export class BootError extends Error {
  name = "BootError";
}
