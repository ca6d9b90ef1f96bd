/**
 * What a request is known by where an Idempotency-Key came with it: a keyed hash, for it is stored beside what the
 * request's values may later be erased from. A plain hash would let whoever holds that storage test guesses of them.
 *
 * @module
 */
import { createHmac, hkdfSync } from "node:crypto";
import { fromHex, toHex, utf8 } from "../../shared/bytes.ts";

const LABEL = "runseal.idempotency.v1";

/** The key of the master secret that this isolate used last: it is derived once, not for each request. */
let derived: { readonly masterKey: string; readonly key: Uint8Array } | null = null;

/** HKDF-SHA-256 (RFC 5869) of the master secret, without salt, under a label of its own: 32 bytes. */
function keyOf(masterKey: string): Uint8Array {
  if (derived?.masterKey !== masterKey) {
    const bytes = hkdfSync("sha256", fromHex(masterKey, 32), new Uint8Array(), utf8(LABEL), 32);
    derived = { masterKey, key: new Uint8Array(bytes) };
  }
  return derived.key;
}

/**
 * HMAC-SHA-256 over whose request it is, what it asks for, and its body. Whose: two logs that got the same body show no
 * equal fingerprints.
 *
 * @param masterKey the service's secret, 32 bytes of hex
 * @param owner the tenant's id, and the principal's name where the request is about one
 * @param asked the operation and whatever else changes the answer
 * @param body as it was received; hashed as it is, without a copy
 * @returns 32 bytes of hex; compare with `equalSecret`
 */
export function fingerprintOf(
  masterKey: string,
  owner: readonly string[],
  asked: readonly (string | null)[],
  body: Uint8Array,
): string {
  // The JSON text has no line feed in it, so that nothing of it can be taken for the body.
  const hmac = createHmac("sha256", keyOf(masterKey)).update(utf8(`${JSON.stringify([owner, asked])}\n`));
  return toHex(new Uint8Array(hmac.update(body).digest()));
}
