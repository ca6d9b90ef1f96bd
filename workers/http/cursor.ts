/**
 * Cursors: opaque, bound to the tenant and the query that gave them, and positions in an order, never times.
 *
 * @module
 */
import { nativeCrypto } from "../../native/crypto.ts";
import { concat, equalBytes, fromBase64, toBase64, utf8 } from "../../shared/bytes.ts";
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
  const text = toBase64(concat(binding(scope), utf8(String(position))));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The position of a cursor; 0 without one. Throws a 400 problem for one that is not of this query. */
export function decodeCursor(scope: readonly string[], cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  try {
    const padded = cursor.replaceAll("-", "+").replaceAll("_", "/");
    const bytes = fromBase64(padded + "=".repeat((4 - (padded.length % 4)) % 4));
    const position = Number(new TextDecoder().decode(bytes.subarray(BINDING_BYTES)));
    const bound = equalBytes(bytes.subarray(0, BINDING_BYTES), binding(scope));
    if (bound && Number.isSafeInteger(position) && position >= 0) return position;
  } catch {
    // Not one of ours.
  }
  throw new Problem("invalid-cursor", { pointer: "?cursor" });
}
