/**
 * What can keep the embedded server from starting. Every message is a sentence that says what to do next; the command
 * line prints it and exits with 2.
 *
 * @module
 */
import { RunsealError } from "../../shared/errors.ts";

export type ServeErrorCode =
  | "usage"
  | "state-dir"
  | "secret"
  | "locked"
  | "port-in-use"
  | "not-built"
  | "migrations"
  | "runtime";

/** Thrown by `startServer` and by what it is made of. */
export class ServeError extends RunsealError<ServeErrorCode> {
  override readonly name = "ServeError";
}
