/**
 * Canonical JSON text of whole documents, and the refusals.
 *
 * @module
 */
import { MAX_DEPTH } from "./canonicalize.ts";
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  type JsonForm,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from "./chars.ts";
import { JsonError } from "./errors.ts";
import { pointerAt } from "./pointer.ts";
import { JsonReader } from "./reader.ts";
import type { Check } from "./tokens.ts";

const BLANK = /^[ \t\n\r]*$/;

function canonical(text: string, form: JsonForm): string {
  if (BLANK.test(text)) return "null";
  const reader = new JsonReader(text, 0, text.length, { form });
  const out = reader.readCanonical();
  reader.finish();
  return out;
}

/**
 * The canonical text that hashes and commitments are over. Blank text is `null`, as in agentrt. Throws `JsonError`, the
 * refusal that comes first in the text.
 */
export function canonicalJson(text: string): string {
  return canonical(text, "hash");
}

/**
 * The text that a policy is handed: as `canonicalJson`, but `<`, `>`, `&`, U+2028 and U+2029 stand for themselves. It is
 * never hashed. Throws `JsonError`.
 */
export function policyJson(text: string): string {
  return canonical(text, "policy");
}

/**
 * The refusals alone, in agentrt's order: nesting; text that has no UTF-8; not exactly one JSON value; unpaired escaped
 * surrogates; repeated keys; number literals. Throws `JsonError`, the first of its class in the text.
 */
export function checkJson(text: string): void {
  try {
    readWith(text);
  } catch {
    // Something is refused. Which refusal comes first is found by one pass for each class.
    checkDepth(text);
    checkWellFormed(text);
    skipWhole(text);
    for (const check of ["json-surrogate", "json-duplicate-key", "json-number"] as const)
      readWith(text, [check]);
    throw new Error("unreachable: a text that is refused is refused by one of its checks");
  }
}

function readWith(text: string, checks?: readonly Check[]): void {
  const reader = new JsonReader(text, 0, text.length, checks === undefined ? {} : { checks });
  reader.readCanonical();
  reader.finish();
}

function skipWhole(text: string): void {
  const reader = new JsonReader(text);
  reader.skipValue();
  reader.finish();
}

/** Counts brackets outside of strings: the text may be anything yet. */
function checkDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (inString) {
      if (unit === BACKSLASH) i++;
      else if (unit === QUOTE) inString = false;
    } else if (unit === QUOTE) {
      inString = true;
    } else if (unit === OPEN_ARRAY || unit === OPEN_OBJECT) {
      if (++depth > MAX_DEPTH) {
        throw new JsonError("json-depth", `nested deeper than ${MAX_DEPTH} levels`, pointerAt(text, 0, i), i);
      }
    } else if (unit === CLOSE_ARRAY || unit === CLOSE_OBJECT) {
      depth--;
    }
  }
}

function checkWellFormed(text: string): void {
  const at = text.search(/\p{Surrogate}/u);
  if (at >= 0) throw new JsonError("json-surrogate", "an unpaired surrogate", pointerAt(text, 0, at), at);
}
