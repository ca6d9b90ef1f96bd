/**
 * Reads one line of a bundle strictly. A repeated member, an unpaired surrogate or a number that is not plain digits
 * means different things to different JSON libraries: two verifiers would then judge two different bundles.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { JsonError } from "../json/errors.ts";
import { JsonReader } from "../json/reader.ts";
import { BundleError, MAX_LINE_CHARS } from "./format.ts";

const INTEGER = /^(?:0|[1-9][0-9]{0,15})$/;
/** How a whole line ends. */
const LINE_END = /\}[ \t\r]*$/;

/** Members by name, each with what reads its value. */
export type Members = Readonly<Record<string, () => void>>;

/** The refusal of a line. */
export function malformedLine(message: string): BundleError {
  return new BundleError("malformed-bundle", message);
}

export class LineReader {
  readonly #reader: JsonReader;
  #unknown: string | null = null;

  private constructor(text: string) {
    this.#reader = new JsonReader(text);
  }

  /**
   * Reads a line. What is malformed in it comes before what is unsupported.
   *
   * @throws `BundleError`
   */
  static read<T>(text: string, read: (line: LineReader) => T): T {
    if (text.length > MAX_LINE_CHARS) throw malformedLine("it is too long");
    const line = new LineReader(text);
    let out: T;
    try {
      out = read(line);
      line.#reader.finish();
    } catch (error) {
      if (error instanceof BundleError || !(error instanceof RunsealError)) throw error;
      if (!(error instanceof JsonError)) throw malformedLine("a member is of a wrong type");
      throw new BundleError(
        "malformed-bundle",
        `it is not strict JSON: ${error.message}`,
        !LINE_END.test(text),
      );
    }
    if (line.#unknown !== null) throw new BundleError("unsupported-bundle", line.#unknown);
    return out;
  }

  /** An object with all of these members; any other makes the line unsupported, for it may say what changes the rest. */
  members(members: Members): void {
    const reader = this.#reader;
    let left = Object.keys(members).length;
    reader.enterObject();
    for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
      const read = Object.hasOwn(members, name) ? members[name] : undefined;
      if (read === undefined) {
        this.unsupported("a member is not known here");
        reader.readCanonical();
      } else {
        left -= 1;
        read();
      }
    }
    if (left > 0) throw malformedLine("a member is missing");
  }

  /** Notes that this version can't read the line, should it be well-formed. */
  unsupported(message: string): void {
    this.#unknown ??= message;
  }

  /** Any value. */
  any(): void {
    this.#reader.readCanonical();
  }

  text(): string {
    return this.#reader.readString();
  }

  /** Lower-case hex of that many bytes. */
  hex(bytes: number): string {
    const text = this.#reader.readString();
    if (text.length !== 2 * bytes || !/^[0-9a-f]*$/.test(text))
      throw malformedLine("a member is not the hex demanded");
    return text;
  }

  /** An integer in plain digits, from `least` to 2^53 - 1. */
  integer(least: number): number {
    const literal = this.#reader.readNumber();
    const value = INTEGER.test(literal) ? Number(literal) : -1;
    if (!Number.isSafeInteger(value) || value < least)
      throw malformedLine("a number is not as the format demands");
    return value;
  }

  elements<T>(read: () => T): T[] {
    const out: T[] = [];
    this.#reader.enterArray();
    while (this.#reader.nextElement()) out.push(read());
    return out;
  }
}

/**
 * The member of the line's object, where it is a string; null else. It may stand anywhere in the object; what else is
 * there is looked at by its syntax alone.
 *
 * @throws `JsonError`
 */
export function findText(text: string, member: string): string | null {
  const reader = new JsonReader(text);
  if (reader.peek() !== "object") return null;
  reader.enterObject();
  for (let name = reader.nextKey(); name !== null; name = reader.nextKey()) {
    if (name === member) return reader.peek() === "string" ? reader.readString() : null;
    reader.skipValue();
  }
  return null;
}
