/**
 * Reads past one JSON value by syntax alone: no limit of depth and no recursion, so that a million levels cost no
 * stack. It finds where the next value starts after one that was refused for what it means.
 *
 * @module
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./chars.ts";
import type { Tokens } from "./tokens.ts";

/** Reads past the value at `tokens.pos`, white space before it included. Throws `json-syntax`. */
export function skipValue(tokens: Tokens): void {
  /** The code units that close what is open. */
  const open: number[] = [];
  do {
    const unit = tokens.next();
    if (unit === OPEN_OBJECT || unit === OPEN_ARRAY) {
      const close = unit === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
      tokens.pos++;
      if (tokens.next() !== close) {
        open.push(close);
        if (close === CLOSE_OBJECT) skipKey(tokens);
        continue;
      }
      tokens.pos++;
    } else {
      skipScalar(tokens, unit);
    }
    closeAndContinue(tokens, open);
  } while (open.length > 0);
}

/** After a value: closes what ends there, up to a comma and, in an object, past the next key. */
function closeAndContinue(tokens: Tokens, open: number[]): void {
  for (let close = open.at(-1); close !== undefined; close = open.at(-1)) {
    const unit = tokens.next();
    if (unit !== COMMA && unit !== close) tokens.unexpected(tokens.pos);
    tokens.pos++;
    if (unit === COMMA) {
      if (close === CLOSE_OBJECT) skipKey(tokens);
      return;
    }
    open.pop();
  }
}

function skipKey(tokens: Tokens): void {
  if (tokens.next() !== QUOTE) tokens.unexpected(tokens.pos);
  tokens.skipString();
  if (tokens.next() !== COLON) tokens.unexpected(tokens.pos);
  tokens.pos++;
}

function skipScalar(tokens: Tokens, unit: number): void {
  if (unit === QUOTE) tokens.skipString();
  else if (unit === 0x74) tokens.word("true");
  else if (unit === 0x66) tokens.word("false");
  else if (unit === 0x6e) tokens.word("null");
  else tokens.skipNumber();
}
