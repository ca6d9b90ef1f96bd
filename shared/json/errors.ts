/**
 * The refusals of the strict JSON reader.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";

/**
 * - `json-syntax`: not JSON (RFC 8259), or something after the value, or a byte order mark;
 * - `json-utf8`: the bytes behind the text are not UTF-8;
 * - `json-surrogate`: half of a surrogate pair, escaped or raw: such text has no UTF-8;
 * - `json-duplicate-key`: a key that its object has already, compared after unescaping;
 * - `json-depth`: a value nested deeper than `MAX_DEPTH`;
 * - `json-number`: a literal that is too long, has an exponent past 10000, or is not finite as binary64.
 */
export type JsonErrorCode =
  | "json-syntax"
  | "json-utf8"
  | "json-surrogate"
  | "json-duplicate-key"
  | "json-depth"
  | "json-number";

/** A refusal, with the place. The message never contains any of the text. */
export class JsonError extends RunsealError<JsonErrorCode> {
  override readonly name = "JsonError";
  /**
   * RFC 6901 pointer to the value at fault. A repeated key: the member. A key that is no Unicode text (it can't be
   * part of a pointer), or a missing comma or bracket: the object or array that holds it.
   */
  override readonly pointer: string;
  /** UTF-16 index into the text that was read: the character at fault, or the start of the key or number. */
  readonly offset: number;

  constructor(code: JsonErrorCode, message: string, pointer: string, offset: number) {
    super(code, message);
    this.pointer = pointer;
    this.offset = offset;
  }
}
