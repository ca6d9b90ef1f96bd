/**
 * Regular expressions of a schema, run only where backtracking is known to stay small. A schema is the tenant's own
 * text, and a pattern that runs for hours would stop everyone (docs/recheck.md, "Argument schemas").
 *
 * @module
 */

/** Paths that a match may have to try over one text. */
const MAX_PATHS = 1_000_000;
const MAX_PATTERN = 1_024;

export type PatternAnswer = "matches" | "fails" | "unchecked";

/** Whether the pattern is found in the text (ECMA-262, Unicode mode, not anchored). */
export function checkPattern(pattern: string, text: string): PatternAnswer {
  const paths = pathsOf(pattern, text.length);
  if (paths === null || paths > MAX_PATHS) return "unchecked";
  try {
    return new RegExp(pattern, "u").test(text) ? "matches" : "fails";
  } catch {
    return "unchecked";
  }
}

interface Group {
  /** Choices inside: quantifiers and alternatives. */
  choices: boolean;
}

/**
 * An upper bound of the ways that the pattern can be tried on a text of that length; null where there is none that is
 * simple: a backreference, a look-around, or a repeated group that holds a choice.
 */
export function pathsOf(pattern: string, length: number): number | null {
  if (pattern.length > MAX_PATTERN) return null;
  const groups: Group[] = [{ choices: false }];
  let paths = pattern.startsWith("^") ? 1 : length + 1;
  let last: Group | null = null;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern.charAt(i);
    let atom: Group | null = null;
    if (character === "\\") {
      i++;
      if (/[1-9k]/.test(pattern.charAt(i))) return null;
    } else if (character === "[") {
      i = endOfClass(pattern, i);
    } else if (character === "(") {
      if (/^\(\?(?:[=!]|<[=!])/.test(pattern.slice(i, i + 4))) return null;
      groups.push({ choices: false });
    } else if (character === ")") {
      atom = groups.pop() ?? null;
      const outer = groups.at(-1);
      if (outer !== undefined && atom?.choices) outer.choices = true;
    } else if (character === "|") {
      paths *= 2;
      const group = groups.at(-1);
      if (group !== undefined) group.choices = true;
    } else {
      const repeats = repeatsAt(pattern, i, length);
      if (repeats !== null && !(character === "?" && pattern.charAt(i - 1) === "(")) {
        if (last?.choices) return null;
        paths *= repeats.ways;
        const group = groups.at(-1);
        if (group !== undefined && repeats.ways > 1) group.choices = true;
        i = repeats.end;
      }
    }
    last = atom;
  }
  return paths;
}

/** Index of the bracket that ends the class which starts at `at`. */
function endOfClass(pattern: string, at: number): number {
  let i = at + 1;
  while (i < pattern.length && pattern.charAt(i) !== "]") i += pattern.charAt(i) === "\\" ? 2 : 1;
  return i;
}

/** The quantifier at the index: in how many ways it can be taken, and where it ends. */
function repeatsAt(pattern: string, at: number, length: number): { ways: number; end: number } | null {
  const found = /^(?:[*+]|\?|\{(\d+)(,(\d*))?\})\??/.exec(pattern.slice(at, at + 32));
  if (found === null) return null;
  const end = at + found[0].length - 1;
  const [, low, comma, high] = found;
  if (low === undefined) return { ways: found[0].startsWith("?") ? 2 : length + 1, end };
  if (comma === undefined) return { ways: 1, end };
  const most = high === undefined || high === "" ? length : Math.min(Number(high), length);
  return { ways: Math.max(1, most - Number(low) + 1), end };
}
