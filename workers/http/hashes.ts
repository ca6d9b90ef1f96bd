/**
 * Hashes and proofs as the API answers them.
 *
 * @module
 */
import { z } from "zod";
import { toHex } from "../../shared/bytes.ts";

/** A size or index in a query. */
export const Size = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** A proof's hashes. */
export const ProofPath = z
  .array(z.string().regex(/^[0-9a-f]{64}$/))
  .describe("hashes, hex, as in RFC 6962 section 2.1");

/** Each 32 bytes as hex. */
export function hashesOf(bytes: Uint8Array): string[] {
  const out: string[] = [];
  for (let i = 0; i < bytes.length; i += 32) out.push(toHex(bytes.subarray(i, i + 32)));
  return out;
}

/** The bytes of a tile or bundle. */
export function tileResponse(bytes: Uint8Array): Response {
  return new Response(bytes, {
    headers: { "content-type": "application/octet-stream", "cache-control": "no-store" },
  });
}
