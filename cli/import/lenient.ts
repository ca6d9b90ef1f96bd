/**
 * Reads JSON that the log itself would refuse, so that one bad string does not cost a whole recorded run.
 *
 * Real traces hold unpaired surrogates, bad UTF-8, Python's NaN, repeated keys. The strict reader (shared/json)
 * goes first; this one only reads what that one refused. What cannot be kept exactly is repaired and remembered in
 * a `Losses`, and the entry that carries it says so under `extra.lossy` (docs/importing.md).
 *
 * @module
 */

import { RunsealError } from "../../shared/errors.ts";
import { JsonNumber, type JsonValue, parseJsonValue } from "../../shared/json/value.ts";
import { deeperThan, MAX_SOURCE_DEPTH } from "./tree.ts";

/** Why a value is not exactly the source's. */
export type LossReason =
  | "json-surrogate"
  | "json-number"
  | "json-depth"
  | "json-duplicate-key"
  | "value-too-long"
  | "entry-too-long";

/**
 * What was repaired: by text for strings (a primitive has no identity), by identity for objects. A text that happens
 * to be equal to a repaired one is reported as repaired too; that errs on the honest side.
 */
export class Losses {
  readonly #strings = new Map<string, LossReason>();
  readonly #objects = new Map<object, LossReason>();
  #count = 0;

  /** How many repairs were made. */
  get count(): number {
    return this.#count;
  }

  add(value: string | object, reason: LossReason): void {
    this.#count += 1;
    if (typeof value === "string") this.#strings.set(value, reason);
    else this.#objects.set(value, reason);
  }

  /** Takes over the repairs of another. */
  merge(other: Losses): void {
    for (const [text, reason] of other.#strings) this.#strings.set(text, reason);
    for (const [object, reason] of other.#objects) this.#objects.set(object, reason);
    this.#count += other.#count;
  }

  /** The reason where this very value was repaired. */
  reason(value: JsonValue): LossReason | undefined {
    if (typeof value === "string") return this.#strings.get(value);
    if (value !== null && typeof value === "object") return this.#objects.get(value);
    return undefined;
  }
}

/** Characters of a replaced value that its marker keeps. */
const HEAD_CHARS = 1000;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /-?[A-Za-z]+/y;
/** With the u flag a paired surrogate is one code point of another category, so only unpaired ones match. */
const UNPAIRED = /\p{Cs}/gu;

/** The object that stands for a value which could not be kept: `{"runseal.lossy": reason, "head": text, ...}`. */
export function lossMarker(
  losses: Losses,
  reason: LossReason,
  text: string,
  more: readonly (readonly [string, JsonValue])[] = [],
): JsonValue {
  const head = text.slice(0, HEAD_CHARS).replace(UNPAIRED, "\ufffd");
  const marker = new Map<string, JsonValue>([["runseal.lossy", reason], ["head", head], ...more]);
  losses.add(marker, reason);
  return marker;
}

/**
 * The value of a JSON text. Exact where the log accepts the text; else repaired, with each repair in `losses`.
 * Throws `RunsealError("import-json")` where it is not JSON at all.
 */
export function readJson(text: string, losses: Losses): JsonValue {
  try {
    const value = parseJsonValue(text);
    if (!deeperThan(value, MAX_SOURCE_DEPTH)) return value;
  } catch {
    // Read again below, leniently.
  }
  return new LenientReader(text, losses).document();
}

class LenientReader {
  readonly #text: string;
  readonly #losses: Losses;
  #at = 0;

  constructor(text: string, losses: Losses) {
    this.#text = text;
    this.#losses = losses;
  }

  document(): JsonValue {
    const value = this.#value(1);
    this.#space();
    if (this.#at !== this.#text.length) throw this.#fail();
    return value;
  }

  #fail(): RunsealError {
    return new RunsealError("import-json", `not JSON at character ${this.#at}`);
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at += 1;
    }
  }

  #take(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #value(depth: number): JsonValue {
    this.#space();
    const char = this.#text[this.#at];
    if (char === '"') return this.#string();
    if (char === "{" || char === "[") {
      if (depth > MAX_SOURCE_DEPTH) return this.#tooDeep();
      this.#at += 1;
      return char === "{" ? this.#object(depth) : this.#array(depth);
    }
    return this.#scalar();
  }

  #object(depth: number): JsonValue {
    const object = new Map<string, JsonValue>();
    if (this.#take("}")) return object;
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') throw this.#fail();
      const key = this.#string();
      if (!this.#take(":")) throw this.#fail();
      // The last one wins, as in the readers that wrote and read these files (Python, JavaScript).
      if (object.has(key)) this.#losses.add(object, "json-duplicate-key");
      if (this.#losses.reason(key) !== undefined) this.#losses.add(object, "json-surrogate");
      object.set(key, this.#value(depth + 1));
    } while (this.#take(","));
    if (!this.#take("}")) throw this.#fail();
    return object;
  }

  #array(depth: number): JsonValue {
    const array: JsonValue[] = [];
    if (this.#take("]")) return array;
    do array.push(this.#value(depth + 1));
    while (this.#take(","));
    if (!this.#take("]")) throw this.#fail();
    return array;
  }

  /** A string; raw control characters are taken (they are kept exactly), unpaired surrogates become U+FFFD. */
  #string(): string {
    const start = this.#at + 1;
    let at = start;
    let escaped = false;
    for (; ; at += 1) {
      const char = this.#text[at];
      if (char === undefined) throw this.#fail();
      if (char === '"') break;
      if (char === "\\") {
        escaped = true;
        at += 1;
      }
    }
    const raw = this.#text.slice(start, at);
    const text = escaped ? this.#unescape(raw) : raw;
    this.#at = at + 1;
    const repaired = text.replace(UNPAIRED, "\ufffd");
    if (repaired === text) return text;
    this.#losses.add(repaired, "json-surrogate");
    return repaired;
  }

  #unescape(raw: string): string {
    return raw.replace(/\\(u[0-9a-fA-F]{4}|[\s\S]?)/g, (_, name: string) => {
      if (name.length === 5) return String.fromCharCode(Number.parseInt(name.slice(1), 16));
      const plain = ESCAPES.get(name);
      if (plain === undefined) throw this.#fail();
      return plain;
    });
  }

  #scalar(): JsonValue {
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text)?.[0];
    if (number !== undefined) {
      this.#at += number.length;
      return this.#number(number);
    }
    WORD.lastIndex = this.#at;
    const word = WORD.exec(this.#text)?.[0] ?? "";
    if (!WORDS.has(word)) throw this.#fail();
    this.#at += word.length;
    const value = WORDS.get(word);
    return value === undefined ? lossMarker(this.#losses, "json-number", word) : value;
  }

  #number(literal: string): JsonValue {
    try {
      const value = parseJsonValue(literal);
      if (value instanceof JsonNumber) return value;
    } catch {
      // Too long, or not finite: marked below.
    }
    return lossMarker(this.#losses, "json-number", literal);
  }

  /** Steps over a value without recursion, and marks it. */
  #tooDeep(): JsonValue {
    const start = this.#at;
    let open = 0;
    do {
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#fail();
      if (char === '"') {
        this.#string();
        continue;
      }
      if (char === "{" || char === "[") open += 1;
      if (char === "}" || char === "]") open -= 1;
      this.#at += 1;
    } while (open > 0);
    return lossMarker(this.#losses, "json-depth", this.#text.slice(start, this.#at));
  }
}

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

/** The words of JSON, and Python's three that are not numbers (undefined: they are marked). */
const WORDS = new Map<string, JsonValue | undefined>([
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", undefined],
  ["Infinity", undefined],
  ["-Infinity", undefined],
]);
