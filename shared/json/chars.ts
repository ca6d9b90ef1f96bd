/**
 * Characters that JSON text is made of, and the escapes of the canonical form (agentrt's).
 *
 * @module
 */

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const MINUS = 0x2d;
export const PLUS = 0x2b;
export const DOT = 0x2e;
export const DIGIT_0 = 0x30;
export const DIGIT_9 = 0x39;
export const LOWER_U = 0x75;
export const SLASH = 0x2f;
export const LINE_SEPARATOR = 0x2028;
export const PARAGRAPH_SEPARATOR = 0x2029;

/** Which of the two forms a text is brought into: hashes are over `hash`; policies are handed `policy`. */
export type JsonForm = "hash" | "policy";

/** What stops a run of characters that stand for themselves: 1 = look closer. Indexed by code units below 128. */
function stops(characters: string): Uint8Array {
  const table = new Uint8Array(128);
  table.fill(1, 0, 0x20);
  for (const character of characters) table[character.charCodeAt(0)] = 1;
  return table;
}
export const STOPS: Readonly<Record<JsonForm, Uint8Array>> = { hash: stops('"\\<>&'), policy: stops('"\\') };

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function escapes(raw: string): ReadonlyMap<number, string> {
  const out = new Map<number, string>();
  for (let unit = 0; unit < 0x20; unit++) out.set(unit, `\\u${unit.toString(16).padStart(4, "0")}`);
  for (const unit of [0x3c, 0x3e, 0x26, LINE_SEPARATOR, PARAGRAPH_SEPARATOR]) {
    if (!raw.includes(String.fromCharCode(unit))) out.set(unit, `\\u${unit.toString(16).padStart(4, "0")}`);
  }
  for (const [character, short] of Object.entries(SHORT_ESCAPES)) out.set(character.charCodeAt(0), short);
  return out;
}

/** The canonical escape of a code unit, where it has one. */
export const ESCAPES: Readonly<Record<JsonForm, ReadonlyMap<number, string>>> = {
  hash: escapes(""),
  policy: escapes("<>&\u2028\u2029"),
};

/** Whether the code unit is JSON's white space. */
export function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/** Whether the code unit is the first, or the second, half of a surrogate pair. */
export function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
export function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be escaped
const MAY_NEED_ESCAPES = /["\\<>&\u0000-\u001f\u2028\u2029]/;

/** A JSON string token of the text, in the given form. Lone surrogates are kept: check before where it matters. */
export function quote(text: string, form: JsonForm = "hash"): string {
  if (!MAY_NEED_ESCAPES.test(text)) return `"${text}"`;
  const table = ESCAPES[form];
  let out = '"';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const escaped = table.get(text.charCodeAt(i));
    if (escaped === undefined) continue;
    out += text.slice(from, i) + escaped;
    from = i + 1;
  }
  return `${out}${text.slice(from)}"`;
}
