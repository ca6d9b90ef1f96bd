/**
 * A strict JSON reader, pull style: the caller walks the objects and arrays that it knows, and takes any value as its
 * canonical text. Every refusal carries the JSON pointer to its place. Text is read once, from left to right.
 *
 *     const reader = new JsonReader(text);
 *     reader.enterObject();
 *     for (let key = reader.nextKey(); key !== null; key = reader.nextKey()) {
 *       fields.set(key, reader.readCanonical());
 *     }
 *     reader.finish();
 *
 * After `nextKey` gave a key, and after `nextElement` said true, exactly one value has to be read or entered. Asking for
 * a value of another kind than the one that comes next throws `RunsealError("json-kind")`, and nothing is read then.
 * The refusals are `JsonError`s.
 *
 * @module
 */
import { RunsealError } from "../errors.ts";
import { canonicalValue, Keys } from "./canonicalize.ts";
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  DIGIT_0,
  DIGIT_9,
  MINUS,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from "./chars.ts";
import { jsonPointer, pointerAt } from "./pointer.ts";
import { skipValue } from "./skip.ts";
import { type TokenOptions, Tokens } from "./tokens.ts";

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";
export type ReaderOptions = TokenOptions;

const NO_KEYS = new Keys();

/** A place that `rewind` returns to. */
export interface ReaderMark {
  readonly offset: number;
  readonly levels: number;
}

/** An array or object that was entered. */
interface Frame {
  readonly array: boolean;
  readonly keys: Keys;
  /** Elements or members begun so far. */
  count: number;
  /** Key of the member that was begun last. */
  key: string;
  /** Whether an element or member has begun: not so before the first, and while a separator or key is read. */
  inside: boolean;
}

export class JsonReader {
  private readonly tokens: Tokens;
  private readonly frames: Frame[] = [];
  /** Where the value starts that is read next or was read last. */
  private valueAt: number;

  /** Reads `text` from `offset` to `end` (UTF-16 indices). */
  constructor(text: string, offset = 0, end = text.length, options: ReaderOptions = {}) {
    this.tokens = new Tokens(text, offset, end, (place) => this.pointer + this.pointerWithin(place), options);
    this.valueAt = offset;
  }

  /** UTF-16 index of what is read next. */
  get offset(): number {
    return this.tokens.pos;
  }

  /** JSON pointer to the value that is read next or was read last; between members, to their array or object. */
  get pointer(): string {
    const inside = this.frames.filter((frame) => frame.inside);
    return jsonPointer(...inside.map((frame) => (frame.array ? frame.count - 1 : frame.key)));
  }

  /** What kind of value comes next. Throws `json-syntax` where none does. */
  peek(): JsonKind {
    const unit = this.begin();
    switch (unit) {
      case OPEN_OBJECT:
        return "object";
      case OPEN_ARRAY:
        return "array";
      case QUOTE:
        return "string";
      case 0x74:
      case 0x66:
        return "boolean";
      case 0x6e:
        return "null";
      default:
        if (unit !== MINUS && !(unit >= DIGIT_0 && unit <= DIGIT_9)) this.tokens.unexpected(this.tokens.pos);
        return "number";
    }
  }

  /** Enters the object that comes next. */
  enterObject(): void {
    this.enter("object");
  }

  /**
   * The key of the next member, unescaped; null where the object ended, which is left then. Throws
   * `json-duplicate-key` where the object has the key already.
   */
  nextKey(): string | null {
    const { tokens } = this;
    const frame = this.innermost(false);
    const unit = this.separator(frame, CLOSE_OBJECT);
    if (unit === null) return null;
    if (unit !== QUOTE) tokens.unexpected(tokens.pos);
    const keyAt = tokens.pos;
    const key = tokens.unescape(keyAt, tokens.string());
    frame.key = key;
    this.beginMember(frame);
    frame.keys.add(key, tokens, keyAt);
    if (tokens.next() !== COLON) tokens.unexpected(tokens.pos);
    tokens.pos++;
    return key;
  }

  /** Enters the array that comes next. */
  enterArray(): void {
    this.enter("array");
  }

  /** Whether the array has another element, which is read next; false where it ended, and it is left then. */
  nextElement(): boolean {
    const frame = this.innermost(true);
    if (this.separator(frame, CLOSE_ARRAY) === null) return false;
    this.beginMember(frame);
    return true;
  }

  /** The string that comes next, unescaped. */
  readString(): string {
    this.expect("string");
    const at = this.tokens.pos;
    return this.tokens.unescape(at, this.tokens.string());
  }

  /** The number that comes next, as its literal. */
  readNumber(): string {
    this.expect("number");
    return this.tokens.number();
  }

  /** The true, false or null that comes next. */
  readLiteral(): boolean | null {
    const kind = this.peek();
    if (kind !== "boolean" && kind !== "null") throw this.wrongKind("boolean or null");
    const text = canonicalValue(this.tokens);
    return text === "null" ? null : text === "true";
  }

  /** The value that comes next, whatever it is, as its canonical text. */
  readCanonical(): string {
    this.begin();
    return canonicalValue(this.tokens);
  }

  /**
   * Reads past the value that comes next. Only its syntax is looked at, and its depth has no limit: what a whole
   * reading would refuse for its meaning passes.
   */
  skipValue(): void {
    this.begin();
    skipValue(this.tokens);
  }

  /** The place of the value that comes next, for `rewind`. */
  mark(): ReaderMark {
    this.begin();
    return { offset: this.tokens.pos, levels: this.frames.length };
  }

  /**
   * Goes back to a marked value, out of whatever was entered since, also after a refusal: the value comes next again,
   * and `skipValue` reads past it. The array or object that holds it must not have gone on to another member.
   */
  rewind(mark: ReaderMark): void {
    this.frames.length = mark.levels;
    this.tokens.pos = mark.offset;
    this.valueAt = mark.offset;
  }

  /** Demands that nothing but white space is left. */
  finish(): void {
    if (this.tokens.next() !== -1) this.tokens.unexpected(this.tokens.pos);
  }

  /** Goes to the value that comes next and gives its first code unit; -1 at the end of the text. */
  private begin(): number {
    const unit = this.tokens.next();
    this.valueAt = this.tokens.pos;
    return unit;
  }

  private expect(kind: JsonKind): void {
    if (this.peek() !== kind) throw this.wrongKind(kind);
  }

  private enter(kind: "object" | "array"): void {
    this.expect(kind);
    this.tokens.pos++;
    const array = kind === "array";
    this.frames.push({ array, keys: array ? NO_KEYS : new Keys(), count: 0, key: "", inside: false });
  }

  private innermost(array: boolean): Frame {
    const frame = this.frames.at(-1);
    if (frame === undefined || frame.array !== array)
      throw this.wrongKind(array ? "entered array" : "entered object");
    return frame;
  }

  /**
   * Reads up to the next member or element, the comma included, and gives its first code unit; null where the array
   * or object ends, which is left then.
   */
  private separator(frame: Frame, close: number): number | null {
    const { tokens } = this;
    frame.inside = false;
    const unit = tokens.next();
    if (unit === close) {
      tokens.pos++;
      this.frames.pop();
      return null;
    }
    if (frame.count === 0) return unit;
    if (unit !== COMMA) tokens.unexpected(tokens.pos);
    tokens.pos++;
    return tokens.next();
  }

  private beginMember(frame: Frame): void {
    frame.count++;
    frame.inside = true;
    this.valueAt = this.tokens.pos;
  }

  /** The pointer to the offset, relative to `pointer`. */
  private pointerWithin(place: number): string {
    return this.frames.at(-1)?.inside === false ? "" : pointerAt(this.tokens.text, this.valueAt, place);
  }

  private wrongKind(wanted: string): RunsealError<"json-kind"> {
    return new RunsealError("json-kind", `the value is no ${wanted}`, this.pointer);
  }
}
