/**
 * Why an entry is refused.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";

/** The codes are those of shared/api/problems.ts; the pointer is relative to the entry. */
export class EntryError extends RunsealError {
  override readonly name = "EntryError";
}

/** The refusal. */
export function refuse(code: string, pointer: string, message: string): EntryError {
  return new EntryError(code, message, pointer);
}
