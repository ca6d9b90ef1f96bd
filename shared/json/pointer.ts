/**
 * JSON pointers (RFC 6901) to places in JSON text. Readers keep no path while they read a value: where something is
 * refused, the value's text up to that offset is walked once more, and the pointer is made then.
 *
 * @module
 */
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from "./chars.ts";

/** Levels of a pointer at most: text that nests deeper is named by its outer levels. */
const MAX_LEVELS = 512;

/** One reference token, escaped: `~` is `~0` and `/` is `~1`. */
export function escapePointer(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** The pointer to the place that the names and indices lead to: `["a", 0]` is `/a/0`. */
export function jsonPointer(...path: readonly (string | number)[]): string {
  return path.map((token) => `/${escapePointer(String(token))}`).join("");
}

/**
 * The key that a string token stands for; halves of surrogate pairs become U+FFFD, for a pointer is sent as text. A
 * token that is no JSON string (text that was not read yet may hold one) stands for itself.
 */
function keyOf(token: string): string {
  let key = token;
  try {
    key = JSON.parse(token) as string;
  } catch {}
  return key.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Offset after the string token that starts at `at`; null where it has not ended by `limit`. */
function stringEnd(text: string, at: number, limit: number): number | null {
  for (let i = at + 1; i < limit; i++) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) return i + 1;
    if (unit === BACKSLASH) i++;
  }
  return null;
}

interface Level {
  readonly array: boolean;
  /** Elements before the current one. */
  index: number;
  /** The current member's key, as its token. */
  key: string;
  /** Whether an element or a member's value is being read: not so before a key, and not after a value. */
  inside: boolean;
}

/** Where a walk through the text stands. Levels past `MAX_LEVELS` are counted and not kept. */
class Path {
  private readonly levels: Level[] = [];
  private depth = 0;

  private get level(): Level | undefined {
    return this.depth <= MAX_LEVELS ? this.levels.at(-1) : undefined;
  }

  open(array: boolean): void {
    if (this.depth++ < MAX_LEVELS) this.levels.push({ array, index: 0, key: "", inside: array });
  }

  close(): void {
    if (--this.depth < MAX_LEVELS) this.levels.pop();
    this.valueRead();
  }

  comma(): void {
    const { level } = this;
    if (!level?.array) return;
    level.index++;
    level.inside = true;
  }

  stringRead(token: () => string): void {
    const { level } = this;
    if (level === undefined || level.array || level.inside) {
      this.valueRead();
    } else {
      level.key = token();
      level.inside = true;
    }
  }

  valueRead(): void {
    const { level } = this;
    if (level !== undefined) level.inside = false;
  }

  toString(): string {
    const inside = this.levels.filter((level) => level.inside);
    return jsonPointer(...inside.map(({ array, index, key }) => (array ? index : keyOf(key))));
  }
}

/**
 * The pointer, relative to the value that starts at `start`, to the innermost value that holds the offset `to`. Between
 * two members, that is their array or object. Up to `to` the text is syntactically right.
 */
export function pointerAt(text: string, start: number, to: number): string {
  const path = new Path();
  let i = start;
  while (i < to) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) {
      const from = i;
      const end = stringEnd(text, i, to);
      if (end === null) break;
      path.stringRead(() => text.slice(from, end));
      i = end;
      continue;
    }
    i++;
    if (unit === OPEN_ARRAY || unit === OPEN_OBJECT) path.open(unit === OPEN_ARRAY);
    else if (unit === CLOSE_ARRAY || unit === CLOSE_OBJECT) path.close();
    else if (unit === COMMA) path.comma();
    else if (!isSpace(unit) && unit !== COLON) {
      // A number or a word: it is over where something else begins.
      while (i < to && !/[\s,\]}]/.test(text.charAt(i))) i++;
      if (i < to) path.valueRead();
    }
  }
  return path.toString();
}
