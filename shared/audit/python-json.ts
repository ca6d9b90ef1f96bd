/**
 * JSON as Python 3.11's `json.loads` reads it, which is not how the log reads it: NaN and the infinities are numbers, a
 * repeated key overwrites, half a surrogate pair is a character. LangBot's ledger was written and is judged by it,
 * so that a stricter reader would find failures that its audit does not know.
 *
 * @module
 */
import { PythonFailure, type PyValue } from "./python-value.ts";

export type PyDecoded =
  | { readonly ok: true; readonly value: PyValue }
  /** `reason` is worded and placed as Python does, for the common mistakes; nothing may depend on it. */
  | { readonly ok: false; readonly reason: string };

/** Python refuses to convert longer literals to an int (`sys.set_int_max_str_digits`). */
const MAX_INT_DIGITS = 4300;
/** Below Python's recursion limit of 1000, less what its caller has used up: where exactly, no ledger depends on. */
const MAX_DEPTH = 970;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const WORDS: readonly (readonly [string, PyValue])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
];
const ESCAPES = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

/**
 * The value of a JSON text. Throws `PythonFailure` where Python's decoder runs out of stack: that is no decoding error,
 * and its caller does not catch it either.
 */
export function decodePythonJson(text: string): PyDecoded {
  try {
    return { ok: true, value: new Decoder(text).document() };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.message };
    throw error;
  }
}

/** A ValueError of the decoder. */
class Refusal extends Error {}

class Decoder {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): PyValue {
    if (this.#text.startsWith("\ufeff"))
      throw this.#refusal("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
    this.#space();
    const value = this.#value(0);
    this.#space();
    if (this.#at !== this.#text.length) throw this.#refusal("Extra data", this.#at);
    return value;
  }

  #refusal(what: string, at: number): Refusal {
    const before = this.#text.slice(0, at);
    const lines = before.split("\n");
    const column = [...(lines.at(-1) ?? "")].length + 1;
    return new Refusal(`${what}: line ${lines.length} column ${column} (char ${[...before].length})`);
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    SPACE.exec(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #value(depth: number): PyValue {
    switch (this.#text[this.#at]) {
      case '"':
        return this.#string();
      case "{":
        return this.#object(deeper(depth, "object"));
      case "[":
        return this.#array(deeper(depth, "array"));
      default:
        return this.#scalar();
    }
  }

  #scalar(): PyValue {
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number === null) throw this.#refusal("Expecting value", this.#at);
    const [literal, whole = "", fraction, exponent] = number;
    if (fraction === undefined && exponent === undefined) {
      const digits = whole.startsWith("-") ? whole.length - 1 : whole.length;
      if (digits > MAX_INT_DIGITS)
        throw new Refusal(
          `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion: value has ${digits} digits; ` +
            "use sys.set_int_max_str_digits() to increase the limit",
        );
      this.#at += literal.length;
      return BigInt(whole);
    }
    this.#at += literal.length;
    return Number(literal);
  }

  #object(depth: number): PyValue {
    const members = new Map<string, PyValue>();
    this.#at += 1;
    this.#space();
    if (this.#take("}")) return members;
    for (;;) {
      if (this.#text[this.#at] !== '"')
        throw this.#refusal("Expecting property name enclosed in double quotes", this.#at);
      const key = this.#string();
      this.#space();
      if (!this.#take(":")) throw this.#refusal("Expecting ':' delimiter", this.#at);
      this.#space();
      members.set(key, this.#value(depth));
      this.#space();
      if (this.#take("}")) return members;
      if (!this.#take(",")) throw this.#refusal("Expecting ',' delimiter", this.#at);
      this.#space();
    }
  }

  #array(depth: number): PyValue {
    const items: PyValue[] = [];
    this.#at += 1;
    this.#space();
    if (this.#take("]")) return items;
    for (;;) {
      items.push(this.#value(depth));
      this.#space();
      if (this.#take("]")) return items;
      if (!this.#take(",")) throw this.#refusal("Expecting ',' delimiter", this.#at);
      this.#space();
    }
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at;
    let out = "";
    let from = start + 1;
    for (let at = from; ; at += 1) {
      const unit = text.charCodeAt(at);
      if (Number.isNaN(unit)) throw this.#refusal("Unterminated string starting at", start);
      if (unit === 0x22) {
        this.#at = at + 1;
        return out + text.slice(from, at);
      }
      if (unit < 0x20) throw this.#refusal("Invalid control character at", at);
      if (unit !== 0x5c) continue;
      out += text.slice(from, at);
      const name = text[at + 1];
      if (name === undefined) throw this.#refusal("Unterminated string starting at", start);
      if (name === "u") {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#refusal("Invalid \\uXXXX escape", at + 1);
        // Two escapes that make a pair make one character by standing beside each other.
        out += String.fromCharCode(Number.parseInt(digits, 16));
        at += 5;
      } else {
        const plain = ESCAPES.get(name);
        if (plain === undefined) throw this.#refusal("Invalid \\escape", at);
        out += plain;
        at += 1;
      }
      from = at + 1;
    }
  }
}

function deeper(depth: number, what: string): number {
  if (depth >= MAX_DEPTH)
    throw new PythonFailure(
      `maximum recursion depth exceeded while decoding a JSON ${what} from a unicode string`,
    );
  return depth + 1;
}
