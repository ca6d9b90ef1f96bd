/**
 * Cursors: opaque, bound to the tenant and the query that gave them, and positions in an order, never times.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { concat, equalBytes, fromBase64, fromHex, toBase64, toHex, utf8 } from "../../shared/bytes.ts";
import { Problem } from "./problem.ts";

const BINDING_BYTES = 12;

function binding(scope: readonly string[]): Uint8Array {
  return nativeCrypto.sha256(utf8(JSON.stringify(scope))).subarray(0, BINDING_BYTES);
}

/**
 * A cursor that stands after a position.
 *
 * @param scope what it is bound to: tenant, route, filters
 */
export function encodeCursor(scope: readonly string[], position: number): string {
  return cursorText(concat(binding(scope), utf8(String(position))));
}

function cursorText(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function cursorBytes(cursor: string): Uint8Array {
  const padded = cursor.replaceAll("-", "+").replaceAll("_", "/");
  return fromBase64(padded + "=".repeat((4 - (padded.length % 4)) % 4));
}

/** A cursor that stands after 32 bytes of hex, in an order by them. */
export function encodeHashCursor(scope: readonly string[], position: string): string {
  return cursorText(concat(binding(scope), fromHex(position, 32)));
}

/** The hex of such a cursor; empty without one. Throws a 400 problem for one that is not of this query. */
export function decodeHashCursor(scope: readonly string[], cursor: string | undefined): string {
  if (cursor === undefined) return "";
  try {
    const bytes = cursorBytes(cursor);
    const bound = equalBytes(bytes.subarray(0, BINDING_BYTES), binding(scope));
    if (bound && bytes.length === BINDING_BYTES + 32) return toHex(bytes.subarray(BINDING_BYTES));
  } catch {
    // Not one of ours.
  }
  throw new Problem("invalid-cursor", { pointer: "?cursor" });
}

/** The position of a cursor; 0 without one. Throws a 400 problem for one that is not of this query. */
export function decodeCursor(scope: readonly string[], cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  try {
    const bytes = cursorBytes(cursor);
    const position = Number(new TextDecoder().decode(bytes.subarray(BINDING_BYTES)));
    const bound = equalBytes(bytes.subarray(0, BINDING_BYTES), binding(scope));
    if (bound && Number.isSafeInteger(position) && position >= 0) return position;
  } catch {
    // Not one of ours.
  }
  throw new Problem("invalid-cursor", { pointer: "?cursor" });
}
