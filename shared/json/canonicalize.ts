/**
 * Canonical text of one JSON value (agentrt's form): no white space, keys in the order of
 * their UTF-8 bytes, number literals as sent, one escape for each character that has one. Single pass; recursion ends
 * at `MAX_DEPTH`.
 *
 * @module
 */
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from "./chars.ts";
import { compareUtf8 } from "./order.ts";
import type { Tokens } from "./tokens.ts";

/** Levels of arrays and objects within one value. */
export const MAX_DEPTH = 256;
/** Members up to which sorting and the search for a repeated key go one by one. */
const FEW_MEMBERS = 12;

/** Reads the value at `tokens.pos`, white space before it skipped, and gives its canonical text. */
export function canonicalValue(tokens: Tokens, depth = 0): string {
  switch (tokens.next()) {
    case QUOTE:
      return tokens.string();
    case OPEN_OBJECT:
      return canonicalObject(tokens, depth + 1);
    case OPEN_ARRAY:
      return canonicalArray(tokens, depth + 1);
    case 0x74:
      return tokens.word("true");
    case 0x66:
      return tokens.word("false");
    case 0x6e:
      return tokens.word("null");
    default:
      return tokens.number();
  }
}

/** The keys of one object, in the order of the text: refuses one that repeats. */
export class Keys {
  readonly names: string[] = [];
  /** Whether they came in the order of their UTF-8 bytes. */
  sorted = true;
  private last = "";
  private seen: Set<string> | null = null;

  /** Adds a key that starts at `keyAt`; `tokens.pos` is after it. */
  add(key: string, tokens: Tokens, keyAt: number): void {
    const { names } = this;
    const count = names.length;
    if (count > 0 && (!this.sorted || compareUtf8(this.last, key) >= 0)) {
      if (this.has(key, count)) {
        tokens.refuse("json-duplicate-key", "a key that its object has already", keyAt, tokens.pos);
      }
      this.sorted = false;
    }
    this.last = key;
    names.push(key);
    this.seen?.add(key);
  }

  private has(key: string, count: number): boolean {
    if (count <= FEW_MEMBERS) return this.names.includes(key);
    this.seen ??= new Set(this.names);
    return this.seen.has(key);
  }
}

function tooDeep(tokens: Tokens): void {
  tokens.refuse("json-depth", `nested deeper than ${MAX_DEPTH} levels`, tokens.pos);
}

function canonicalArray(tokens: Tokens, depth: number): string {
  if (depth > MAX_DEPTH) tooDeep(tokens);
  const start = tokens.pos++;
  if (tokens.next() === CLOSE_ARRAY) return empty(tokens, start, "[]");
  let out = "[";
  let verbatim = true;
  for (;;) {
    out += canonicalValue(tokens, depth);
    verbatim &&= tokens.verbatim;
    const unit = tokens.next();
    if (unit !== COMMA && unit !== CLOSE_ARRAY) tokens.unexpected(tokens.pos);
    tokens.pos++;
    if (unit === CLOSE_ARRAY) break;
    out += ",";
  }
  out += "]";
  return asSent(tokens, start, verbatim && out.length === tokens.pos - start) ?? out;
}

function canonicalObject(tokens: Tokens, depth: number): string {
  if (depth > MAX_DEPTH) tooDeep(tokens);
  const start = tokens.pos++;
  if (tokens.next() === CLOSE_OBJECT) return empty(tokens, start, "{}");
  const keys = new Keys();
  const members: string[] = [];
  let verbatim = true;
  let length = 1;
  for (;;) {
    const keyAt = tokens.pos;
    if (tokens.next() !== QUOTE) tokens.unexpected(tokens.pos);
    const keyText = tokens.string();
    verbatim &&= tokens.verbatim;
    keys.add(tokens.unescape(keyAt, keyText), tokens, keyAt);
    if (tokens.next() !== COLON) tokens.unexpected(tokens.pos);
    tokens.pos++;
    const member = `${keyText}:${canonicalValue(tokens, depth)}`;
    verbatim &&= tokens.verbatim;
    members.push(member);
    length += member.length + 1;
    const unit = tokens.next();
    if (unit !== COMMA && unit !== CLOSE_OBJECT) tokens.unexpected(tokens.pos);
    tokens.pos++;
    if (unit === CLOSE_OBJECT) break;
    tokens.next();
  }
  const { sorted } = keys;
  return (
    asSent(tokens, start, verbatim && sorted && length === tokens.pos - start) ??
    joinMembers(members, sorted ? null : keys.names)
  );
}

function empty(tokens: Tokens, start: number, text: "[]" | "{}"): string {
  tokens.verbatim = tokens.pos === start + 1;
  tokens.pos++;
  return text;
}

/** The text from `start` as it was sent, where that is canonical. */
function asSent(tokens: Tokens, start: number, verbatim: boolean): string | null {
  tokens.verbatim = verbatim;
  return verbatim ? tokens.text.slice(start, tokens.pos) : null;
}

/** The object's text; `names` are the members' keys where those have to be sorted first. */
function joinMembers(members: readonly string[], names: string[] | null): string {
  const order = names === null ? null : sortedOrder(names);
  let out = "{";
  for (let i = 0; i < members.length; i++) {
    if (i > 0) out += ",";
    out += members[order === null ? i : (order[i] ?? i)];
  }
  return `${out}}`;
}

/** Indices of the names in the order of their UTF-8 bytes. */
function sortedOrder(names: readonly string[]): number[] {
  const order: number[] = [];
  if (names.length > FEW_MEMBERS) {
    for (let i = 0; i < names.length; i++) order.push(i);
    return order.sort((a, b) => compareUtf8(names[a] ?? "", names[b] ?? ""));
  }
  for (let i = 0; i < names.length; i++) {
    const name = names[i] ?? "";
    let k = i;
    while (k > 0 && compareUtf8(names[order[k - 1] ?? 0] ?? "", name) > 0) {
      order[k] = order[k - 1] ?? 0;
      k--;
    }
    order[k] = i;
  }
  return order;
}
