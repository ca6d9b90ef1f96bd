/**
 * A strict JSON reader for the second verifier, written from docs/format.md section 3 alone. Objects are Maps, numbers
 * keep their literals.
 *
 * @module
 */

export class Num {
  readonly literal: string;
  constructor(literal: string) {
    this.literal = literal;
  }
}
export type Json = null | boolean | string | Num | Json[] | Map<string, Json>;

export function parseStrict(text: string): Json {
  let at = 0;
  const fail = (): never => {
    throw new SyntaxError(`not strict JSON at ${at}`);
  };
  const token = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const match = pattern.exec(text) ?? fail();
    at += match[0].length;
    return match[0];
  };
  const space = () => token(/[ \t\n\r]*/y);
  function string(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings
    const raw = token(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    const value = JSON.parse(raw) as string;
    if (/\p{Surrogate}/u.test(value)) fail();
    return value;
  }
  function number(): Num {
    const literal = token(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    const exponent = Number(/[eE](.*)/.exec(literal)?.[1] ?? 0);
    if (literal.length > 10_000 || Math.abs(exponent) > 10_000 || !Number.isFinite(Number(literal))) fail();
    return new Num(literal);
  }
  function value(depth: number): Json {
    space();
    const next = text[at];
    if (next === '"') return string();
    if (next === "{" || next === "[") {
      if (depth === 256) fail();
      at += 1;
      const map = new Map<string, Json>();
      const array: Json[] = [];
      space();
      for (let first = true; text[at] !== (next === "{" ? "}" : "]"); first = false) {
        if (!first) token(/,/y);
        space();
        if (next === "[") array.push(value(depth + 1));
        else {
          const name = string();
          if (map.has(name)) fail();
          space();
          token(/:/y);
          map.set(name, value(depth + 1));
        }
        space();
      }
      at += 1;
      return next === "{" ? map : array;
    }
    for (const [word, meaning] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    return number();
  }
  const out = value(0);
  space();
  if (at < text.length) fail();
  return out;
}
