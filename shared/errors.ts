/**
 * The one error class of the project. Code branches on `code`, never on the message.
 *
 * @module
 */

/**
 * An error with a stable code and, where a document was at fault, a JSON pointer (RFC 6901) to the place.
 * The message is a plain sentence that never contains a submitted value.
 */
export class RunsealError<Code extends string = string> extends Error {
  override readonly name: string = "RunsealError";
  readonly code: Code;
  /** RFC 6901 pointer into the offending document; absent where none applies. */
  readonly pointer?: string;

  constructor(code: Code, message: string, pointer?: string) {
    super(message);
    this.code = code;
    if (pointer !== undefined) this.pointer = pointer;
  }
}
