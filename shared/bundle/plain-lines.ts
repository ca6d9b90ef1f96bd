/**
 * Reads the lines that are most of a bundle, exactly as an export writes them, without the strict JSON reader. Whatever is
 * written in any other way is left to that reader, which judges it.
 *
 * @module
 */
import { isHex } from "../bytes.ts";
import type { SectionName } from "../entry/commitment.ts";
import { SALT_BYTES, SECTIONS } from "../entry/commitment.ts";
import type { FieldLine, FieldsLine, LeafLine } from "./format.ts";
import { MAX_LINE_CHARS } from "./format.ts";
import type { LeafBytes } from "./leaf-bytes.ts";

const LEAF_START = '{"t":"leaf","seq":';
const HASH_START = ',"hash":"';
const LEAF_MEMBER = '","leaf":"';
const LEAF_END = '"}';
const HASH_DIGITS = 64;
/** Digits of a sequence number that is exact as a number whatever they are. */
const MAX_SEQ_DIGITS = 15;

/**
 * A leaf line exactly as an export writes it, told without a JSON reader: most lines of a bundle are such. Null for
 * any other text, which the reader judges. Neither member may have a character that JSON would escape or refuse.
 */
export function plainLeafLine(text: string, leaves: LeafBytes): LeafLine | null {
  if (!text.startsWith(LEAF_START) || text.length > MAX_LINE_CHARS) return null;
  let at = LEAF_START.length;
  let seq = 0;
  for (; at - LEAF_START.length < MAX_SEQ_DIGITS; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9) || (seq === 0 && digit === 0)) break;
    seq = 10 * seq + digit;
  }
  const hashAt = at + HASH_START.length;
  const leafAt = hashAt + HASH_DIGITS + LEAF_MEMBER.length;
  const plain =
    seq > 0 &&
    text.startsWith(HASH_START, at) &&
    text.startsWith(LEAF_MEMBER, hashAt + HASH_DIGITS) &&
    text.endsWith(LEAF_END) &&
    isHex(text, hashAt, hashAt + HASH_DIGITS);
  // The decoder takes no quote and no escape: the leaf ends where the line does.
  const leaf = plain ? text.slice(leafAt, -LEAF_END.length) : "";
  const prefixed = plain ? leaves.decode(leaf) : null;
  if (prefixed === null) return null;
  return { t: "leaf", seq, hash: text.slice(hashAt, hashAt + HASH_DIGITS), leaf, prefixed };
}

const CONTENT_START = '{"t":"content","seq":';

/** A content line as an export writes it; null for any other text. */
export function plainContentLine(text: string): FieldsLine | null {
  if (!text.startsWith(CONTENT_START) || text.length > MAX_LINE_CHARS) return null;
  const value = parsed(text);
  if (value === null || !("seq" in value && "fields" in value)) return null;
  const { seq, fields } = value;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 1 || !Array.isArray(fields)) return null;
  const out: FieldLine[] = [];
  for (const field of fields) {
    const line = fieldOf(field);
    if (line === null) return null;
    out.push(line);
  }
  const line: FieldsLine = { t: "content", seq, fields: out };
  // Written again it is the same text: no key came twice, no white space, no unpaired surrogate, nothing was passed over.
  return JSON.stringify(line) === text ? line : null;
}

function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

function fieldOf(value: unknown): FieldLine | null {
  if (typeof value !== "object" || value === null) return null;
  if (!("section" in value && "name" in value && "salt" in value && "text" in value)) return null;
  const { section, name, salt, text } = value;
  if (!isSection(section) || typeof name !== "string" || typeof text !== "string") return null;
  if (typeof salt !== "string" || salt.length !== 2 * SALT_BYTES || !isHex(salt, 0, salt.length)) return null;
  return { section, name, salt, text };
}

function isSection(value: unknown): value is SectionName {
  return (SECTIONS as readonly unknown[]).includes(value);
}
