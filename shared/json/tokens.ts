/**
 * The tokens of JSON text, read strictly and brought into canonical form. This is the ingest hot path: loops run over
 * code units, canonical stretches are taken as slices, and nothing is allocated for what needs no change.
 *
 * @module
 */
import {
  BACKSLASH,
  DIGIT_0,
  DIGIT_9,
  DOT,
  ESCAPES,
  isHighSurrogate,
  isLowSurrogate,
  isSpace,
  type JsonForm,
  LINE_SEPARATOR,
  LOWER_U,
  MINUS,
  PARAGRAPH_SEPARATOR,
  PLUS,
  QUOTE,
  SLASH,
  STOPS,
} from "./chars.ts";
import { JsonError, type JsonErrorCode } from "./errors.ts";

/** Characters of a number literal, and its exponent, at most. */
export const MAX_NUMBER_LENGTH = 10_000;
export const MAX_EXPONENT = 10_000;
/** Plain characters after which a string is searched by a regular expression: it is faster, once started. */
const LONG_RUN = 48;
const NEXT_STOP: Readonly<Record<JsonForm, RegExp>> = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them raw in a string
  hash: /["\\<>&\u0000-\u001f\u2028\u2029\ud800-\udfff]/g,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  policy: /["\\\u0000-\u001f\u2028\u2029\ud800-\udfff]/g,
};
const HEX_ESCAPE = /\\u[0-9A-Fa-f]{4}/y;

/** What a reader refuses beyond bad syntax. */
export type Check = "json-surrogate" | "json-duplicate-key" | "json-depth" | "json-number";
const ALL_CHECKS: readonly Check[] = ["json-surrogate", "json-duplicate-key", "json-depth", "json-number"];

export interface TokenOptions {
  readonly form?: JsonForm;
  /** U+DC80..U+DCFF alone stand for bytes that are not UTF-8 (`decodeUtf8`). */
  readonly escapedBytes?: boolean;
  /** Only these checks are made; all, unless told. */
  readonly checks?: readonly Check[];
}

export class Tokens {
  readonly text: string;
  readonly end: number;
  /** UTF-16 index of the next code unit. */
  pos: number;
  readonly form: JsonForm;
  /** Whether the canonical text that was last returned is the text as it was sent. */
  verbatim = true;
  /** Whether the string last read held a backslash. */
  escaped = false;
  /** Offset after the escape that was last read. */
  private escapeEnd = 0;
  private readonly stops: Uint8Array;
  private readonly escapes: ReadonlyMap<number, string>;
  private readonly nextStop: RegExp;
  private readonly escapedBytes: boolean;
  private readonly checks: ReadonlySet<string>;
  private readonly locate: (offset: number) => string;

  /** `locate` gives the JSON pointer to the place of an offset; it is called for a refusal only. */
  constructor(
    text: string,
    offset: number,
    end: number,
    locate: (offset: number) => string,
    options: TokenOptions = {},
  ) {
    this.text = text;
    this.pos = offset;
    this.end = end;
    this.locate = locate;
    this.form = options.form ?? "hash";
    this.stops = STOPS[this.form];
    this.escapes = ESCAPES[this.form];
    this.nextStop = NEXT_STOP[this.form];
    this.escapedBytes = options.escapedBytes ?? false;
    this.checks = new Set(options.checks ?? ALL_CHECKS);
  }

  /** Throws the refusal; `place` is the offset whose JSON pointer it carries. */
  fail(code: JsonErrorCode, message: string, offset: number, place = offset): never {
    throw new JsonError(code, message, this.locate(place), offset);
  }

  /** As `fail`, unless the check is switched off. */
  refuse(code: Check, message: string, offset: number, place = offset): void {
    if (this.checks.has(code)) this.fail(code, message, offset, place);
  }

  /** A refusal of the code unit at the offset, or of the text's end. */
  unexpected(offset: number): never {
    if (offset >= this.end) this.fail("json-syntax", "the text ends inside a JSON value", this.end);
    if (this.isEscapedByte(offset)) this.fail("json-utf8", "a byte that is not UTF-8", offset);
    this.fail("json-syntax", "a character that JSON does not allow here", offset);
  }

  /** Skips white space and gives the code unit at the new position; -1 at the end. */
  next(): number {
    const { text, end } = this;
    let i = this.pos;
    let unit = text.charCodeAt(i);
    while (isSpace(unit) && i < end) unit = text.charCodeAt(++i);
    this.pos = i;
    return i < end ? unit : -1;
  }

  /** Reads the string at `pos` (its opening quote) and gives its canonical text, quotes and all. */
  string(): string {
    const { text, stops } = this;
    const start = this.pos;
    let i = start + 1;
    let from = start;
    let out = "";
    let escaped = false;
    let longRun = i + LONG_RUN;
    for (;;) {
      let unit = text.charCodeAt(i);
      while (
        unit < 128
          ? stops[unit] === 0
          : unit < LINE_SEPARATOR || (unit > PARAGRAPH_SEPARATOR && (unit < 0xd800 || unit > 0xdfff))
      ) {
        if (++i === longRun) {
          this.nextStop.lastIndex = i;
          i = this.nextStop.test(text) ? this.nextStop.lastIndex - 1 : text.length;
        }
        unit = text.charCodeAt(i);
      }
      if (i >= this.end) this.unexpected(this.end);
      if (unit === QUOTE) break;
      let length = 1;
      let canonical: string | undefined;
      if (unit === BACKSLASH) {
        escaped = true;
        canonical = this.canonicalEscape(i);
        length = this.escapeEnd - i;
      } else if (unit < 0x20) {
        this.fail("json-syntax", "a control character inside a string", i);
      } else if (unit >= 0xd800) {
        length = this.surrogates(i);
      } else {
        canonical = this.escapes.get(unit);
      }
      if (canonical !== undefined) {
        out += text.slice(from, i) + canonical;
        from = i + length;
      }
      i += length;
      longRun = i + LONG_RUN;
    }
    this.pos = i + 1;
    this.escaped = escaped;
    this.verbatim = from === start;
    return from === start ? text.slice(start, i + 1) : out + text.slice(from, i + 1);
  }

  /** The text that the string token just read stands for; it started at `start`, and `canonical` is what `string` gave. */
  unescape(start: number, canonical: string): string {
    return this.escaped ? (JSON.parse(canonical) as string) : this.text.slice(start + 1, this.pos - 1);
  }

  /** Reads past the string at `pos`, by syntax alone. */
  skipString(): void {
    const { text, end } = this;
    let i = this.pos + 1;
    for (;;) {
      const unit = text.charCodeAt(i);
      if (i >= end) this.unexpected(end);
      if (unit === QUOTE) break;
      if (unit < 0x20) this.fail("json-syntax", "a control character inside a string", i);
      i += unit === BACKSLASH ? this.escapeLength(i) : 1;
    }
    this.pos = i + 1;
  }

  /** Reads the number at `pos` and gives its literal as it was sent. */
  number(): string {
    const start = this.pos;
    const exponentAt = this.skipNumber();
    const { text, pos } = this;
    this.verbatim = true;
    const literal = text.slice(start, pos);
    if (exponentAt !== 0 || pos - start > 308) this.checkNumber(literal, start, exponentAt);
    return literal;
  }

  /** Reads past the number at `pos`; gives the offset of its exponent's first character, or 0. */
  skipNumber(): number {
    const { text } = this;
    let i = this.pos;
    if (text.charCodeAt(i) === MINUS) i++;
    if (text.charCodeAt(i) === DIGIT_0 && i < this.end) i++;
    else i = this.digits(i);
    if (text.charCodeAt(i) === DOT && i < this.end) i = this.digits(i + 1);
    let exponentAt = 0;
    const unit = text.charCodeAt(i);
    if ((unit === 0x65 || unit === 0x45) && i < this.end) {
      exponentAt = ++i;
      const sign = text.charCodeAt(i);
      i = this.digits(sign === PLUS || sign === MINUS ? i + 1 : i);
    }
    this.pos = i;
    return exponentAt;
  }

  /** Reads the word at `pos`, which its first code unit promises: true, false or null. */
  word(word: "true" | "false" | "null"): string {
    const { text, pos } = this;
    for (let k = 1; k < word.length; k++) {
      if (text.charCodeAt(pos + k) !== word.charCodeAt(k) || pos + k >= this.end) this.unexpected(pos + k);
    }
    this.pos = pos + word.length;
    this.verbatim = true;
    return word;
  }

  private digits(at: number): number {
    const { text } = this;
    let i = at;
    let unit = text.charCodeAt(i);
    while (unit >= DIGIT_0 && unit <= DIGIT_9 && i < this.end) unit = text.charCodeAt(++i);
    if (i === at) this.unexpected(i);
    return i;
  }

  private checkNumber(literal: string, start: number, exponentAt: number): void {
    if (literal.length > MAX_NUMBER_LENGTH) {
      this.refuse("json-number", `a number literal of more than ${MAX_NUMBER_LENGTH} characters`, start);
    }
    if (exponentAt !== 0 && Math.abs(Number(literal.slice(exponentAt - start))) > MAX_EXPONENT) {
      this.refuse("json-number", `a number with an exponent past ${MAX_EXPONENT}`, start);
    }
    if (!Number.isFinite(Number(literal))) {
      this.refuse("json-number", "a number that is not finite as binary64", start);
    }
  }

  /** Length of the escape at the offset: 2 or 6. Refuses what is none. It may reach past `end`: its string does then. */
  private escapeLength(at: number): number {
    const { text, end } = this;
    switch (text.charCodeAt(at + 1)) {
      case QUOTE:
      case BACKSLASH:
      case SLASH:
      case 0x62:
      case 0x66:
      case 0x6e:
      case 0x72:
      case 0x74:
        return 2;
      case LOWER_U:
        if (this.escapedUnit(at) < 0) this.fail("json-syntax", "an escape that JSON does not know", at);
        return 6;
      default:
        if (at + 1 >= end) this.unexpected(end);
        this.fail("json-syntax", "an escape that JSON does not know", at);
    }
  }

  /** The canonical form of the escape at the offset, or undefined where it is canonical; sets `escapeEnd`. */
  private canonicalEscape(at: number): string | undefined {
    const { text } = this;
    const length = this.escapeLength(at);
    this.escapeEnd = at + length;
    if (length === 2) return text.charCodeAt(at + 1) === SLASH ? "/" : undefined;
    const unit = this.escapedUnit(at);
    if (unit >= 0xd800 && unit <= 0xdfff) {
      const low = isHighSurrogate(unit) ? this.escapedUnit(at + 6) : 0;
      if (isLowSurrogate(low)) {
        this.escapeEnd = at + 12;
        return String.fromCharCode(unit, low);
      }
      this.refuse("json-surrogate", "an unpaired surrogate", at);
    }
    const canonical = this.escapes.get(unit) ?? String.fromCharCode(unit);
    return canonical.length === 6 && text.startsWith(canonical, at) ? undefined : canonical;
  }

  /** The code unit that the `\u` escape at the offset stands for; -1 where there is none. */
  private escapedUnit(at: number): number {
    HEX_ESCAPE.lastIndex = at;
    if (!HEX_ESCAPE.test(this.text)) return -1;
    return Number.parseInt(this.text.slice(at + 2, at + 6), 16);
  }

  /** Units of the raw character whose first is a surrogate; refuses one without its other half. */
  private surrogates(at: number): number {
    const { text } = this;
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) return 2;
    if (this.isEscapedByte(at)) this.fail("json-utf8", "a byte that is not UTF-8", at);
    this.refuse("json-surrogate", "an unpaired surrogate", at);
    return 1;
  }

  private isEscapedByte(at: number): boolean {
    const unit = this.text.charCodeAt(at);
    return this.escapedBytes && unit >= 0xdc80 && unit <= 0xdcff;
  }
}
