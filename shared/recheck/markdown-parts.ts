/**
 * The parts of which a comment in Markdown is made, safe whatever the record or the policy says.
 *
 * @module
 */
import type { Judged } from "./check.ts";
import { shown } from "./text.ts";

/** Characters of a whole comment: such a comment has at most 65,536. */
export const MAX_CHARS = 60_000;

/** ASCII punctuation: all that can be structure in Markdown or HTML. */
const PUNCTUATION = /[!-/:-@[-`{-~]/g;

/** Each character as a reference, which is never structure, unless it is one of those that are safe where it stands. */
function referenced(text: string, safe: string): string {
  return text.replaceAll(PUNCTUATION, (character) =>
    safe.includes(character) ? character : `&#${character.charCodeAt(0)};`,
  );
}

/** A text of the record or the policy, safe and cut, as code: in code nobody is mentioned. */
export function code(text: string): string {
  const safe = referenced(shown(text), ",=-");
  return safe === "" ? "-" : `<code>${safe}</code>`;
}

/** The same for sentences: without links, and what would mention somebody or an issue is code. */
export function plain(text: string): string {
  return sentence(shown(text));
}

/** A sentence whose parts were made safe to show. */
export function sentence(text: string): string {
  return referenced(text, ",.;-'\"()>@#:")
    .replaceAll(/[@#](?![0-9]+;)/g, (character) => `<code>&#${character.charCodeAt(0)};</code>`)
    .replaceAll(/(w{3})\./gi, "$1&#46;");
}

/** The first lines: the verdict, where something was expected, and why it fails. */
export function headline(result: Judged | null, found: string): string[] {
  const verdict = result === null ? "" : result.passed ? "passed: " : "**failed**: ";
  return [
    `### Recheck ${verdict}${found}`,
    "",
    ...(result?.failures ?? []).map(({ message }) => `- ${plain(message)}`),
    ...(result === null || result.passed ? [] : [""]),
  ];
}

/** Characters that are left. */
export class Budget {
  #left: number;
  constructor(left: number) {
    this.#left = left;
  }
  take(line: string): boolean {
    if (line.length + 1 > this.#left) return false;
    this.#left -= line.length + 1;
    return true;
  }
}
