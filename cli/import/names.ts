/**
 * Names of runs, calls and entries. All are opaque ids of `[A-Za-z0-9._:-]`, 1 to 128,
 * and all are a function of the file's content, so that importing a file twice gives the same ones.
 *
 * @module
 */
import { toHex, utf8 } from "../../shared/bytes.ts";
import type { CryptoPort } from "../../shared/crypto/port.ts";
import { type JsonValue, jsonText } from "../../shared/json/value.ts";

const MAX_ID = 128;
/** Hex digits of a digest inside a name: 64 bits tell runs apart; they prove nothing. */
const DIGEST_DIGITS = 16;

/** What the names need: SHA-256. */
export interface Hashing {
  readonly crypto: Pick<CryptoPort, "sha256">;
}

/** The first 16 hex digits of SHA-256 over the canonical text of the value. */
export function contentDigest(value: JsonValue, { crypto }: Hashing): string {
  return toHex(crypto.sha256(utf8(jsonText(value)))).slice(0, DIGEST_DIGITS);
}

/**
 * An opaque id of the parts, joined by colons. Characters that an id cannot have become `-`, and then, or where it
 * would be empty or longer than 128, it ends with a digest of the parts themselves: two sources never share a name by this.
 */
export function runName(parts: readonly string[], { crypto }: Hashing): string {
  const exact = parts.join(":");
  const name = parts.map((part) => part.replace(/[^A-Za-z0-9._-]/g, "-")).join(":");
  if (name === exact && name !== "" && name.length <= MAX_ID) return name;
  const digest = toHex(crypto.sha256(utf8(JSON.stringify(parts)))).slice(0, DIGEST_DIGITS);
  return `${name.slice(0, MAX_ID - DIGEST_DIGITS - 1) || "unnamed"}:${digest}`;
}

/** The id of a call within its run: the message that made it and its place in it. */
export function callName(index: number, position: number): string {
  return `m${index}.c${position}`;
}

/** The step of a model exchange: the message that it gave. */
export function stepName(index: number): string {
  return `m${index}`;
}

/**
 * The id of an entry: a digest over format, run, place in the run and the entry's whole content. The same file gives
 * the same ids; a changed file gives other ones, and never the same id with other content.
 */
export function entryName(
  format: string,
  run: string,
  place: string,
  content: string,
  { crypto }: Hashing,
): string {
  const digest = crypto.sha256(utf8(JSON.stringify(["runseal.import.v1", format, run, place, content])));
  return `imp:${toHex(digest).slice(0, 40)}`;
}
