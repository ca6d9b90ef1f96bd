/**
 * Cuts a file into the texts of its records, so that one run is in memory at a time: the lines of JSONL, or the
 * elements of a top-level array. Nothing is parsed here but the nesting of brackets and strings.
 *
 * @module
 */

/** One record's text and where it is: a line number from 1, or an element's index from 0. */
export interface SourceRecord {
  readonly text: string;
  readonly where: string;
}

/** How a file is laid out at its top. */
export type Layout = "array" | "lines" | "single";

const SPACE = /[ \t\r\n]/;

/**
 * The layout of a JSON text: `array` (its elements are the records), `lines` (JSONL: the first line with text is a
 * complete value and more follow) or `single`.
 */
export function layoutOf(text: string): Layout {
  const start = skipSpace(text, 0);
  const end = endOfValue(text, start);
  const lineEnd = text.indexOf("\n", start);
  if (end !== undefined && lineEnd >= 0 && end <= lineEnd && skipSpace(text, lineEnd) < text.length)
    return "lines";
  if (text[start] === "[") return "array";
  // A document that never ends is JSONL with a broken first line, or cut off: then no line of it will parse.
  return end === undefined && lineEnd >= 0 ? "lines" : "single";
}

/** The lines that hold something. */
export function* linesOf(text: string): Generator<SourceRecord> {
  let number = 0;
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const stop = end < 0 ? text.length : end;
    number += 1;
    const line = text.slice(start, stop).trim();
    if (line !== "") yield { text: line, where: `line ${number}` };
    start = stop + 1;
  }
}

/** The elements of a top-level array, each as its own text. An array that is cut off gives what is whole of it. */
export function* elementsOf(text: string): Generator<SourceRecord> {
  let at = skipSpace(text, 0) + 1;
  for (let index = 0; ; index += 1) {
    at = skipSpace(text, at);
    if (at >= text.length || text[at] === "]") return;
    const end = endOfValue(text, at);
    if (end === undefined) {
      yield { text: text.slice(at), where: `element ${index}` };
      return;
    }
    yield { text: text.slice(at, end), where: `element ${index}` };
    at = skipSpace(text, end);
    if (text[at] === ",") at += 1;
    else if (text[at] !== "]") return;
  }
}

/** The records of a text in any of the three layouts. */
export function* recordsOf(text: string): Generator<SourceRecord> {
  const layout = layoutOf(text);
  if (layout === "lines") yield* linesOf(text);
  else if (layout === "array") yield* elementsOf(text);
  else if (text.trim() !== "") yield { text: text.trim(), where: "document" };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && SPACE.test(text[at] ?? "")) at += 1;
  return at;
}

/** The index after the value that starts at `start`, or undefined where it does not end. */
function endOfValue(text: string, start: number): number | undefined {
  let open = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      const end = endOfString(text, at);
      if (end === undefined) return undefined;
      at = end;
      if (open === 0) return at + 1;
    } else if (char === 0x7b || char === 0x5b) {
      open += 1;
    } else if (char === 0x7d || char === 0x5d) {
      open -= 1;
      if (open === 0) return at + 1;
      if (open < 0) return at;
    } else if (open === 0 && (char === 0x2c || char === 0x0a)) {
      return at;
    }
  }
  return open === 0 ? text.length : undefined;
}

/** The index of the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return undefined;
}
