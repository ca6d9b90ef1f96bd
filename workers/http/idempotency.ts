/**
 * The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): a Structured Fields string (RFC 9651, quoted)
 * or the same characters raw, and what a request under it is known by. A key is the sender's: within one tenant, one
 * principal and one operation it stands for one request.
 *
 * @module
 */
import type { IdempotentRequest } from "../../durable-objects/principal-log/types.ts";
import { nativeCrypto } from "../../native/crypto.ts";
import { toHex, utf8 } from "../../shared/bytes.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { Problem } from "./problem.ts";

const MAX_LENGTH = 255;
/** An sf-string: printable ASCII, with `\"` and `\\` for the two that would end or escape it. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
/** Printable ASCII without spaces and quotes: two headers joined to one hold a space, and are refused. */
const RAW = /^[\x21\x23-\x7e]+$/;

/** The header's value, unquoted; null where there is none. Throws a 400 problem for one that is malformed. */
export function idempotencyKey(request: Request): string | null {
  const header = request.headers.get("idempotency-key")?.trim();
  if (header === undefined) return null;
  const quoted = QUOTED.exec(header)?.[1];
  const key = quoted?.replaceAll(/\\(["\\])/g, "$1") ?? (RAW.test(header) ? header : "");
  if (key.length === 0 || key.length > MAX_LENGTH) {
    const detail = `Idempotency-Key: one string of 1 to ${MAX_LENGTH} printable ASCII characters, quoted or raw`;
    throw new Problem("invalid-request", { pointer: "", detail });
  }
  return key;
}

/**
 * What a log remembers a request by.
 *
 * The key is a plain hash, so that an answer is found whatever the fingerprint's form was when it was stored. Until 2026-11
 * that was a hash without a secret, which no request matches now: a retry of a request that was stored then is refused
 * (422) for the 24 hours that its answer is kept. To take it for a new one would store entries without ids twice.
 *
 * @param masterKey the service's secret
 * @param owner the tenant's id and the principal's name
 * @param operation what is asked for: the same key under another operation is another key
 * @param terms whatever else changes the answer: the body's form, the query
 * @param body the request's body as it was received
 */
export function idempotentRequest(
  masterKey: string,
  owner: readonly [tenant: string, principal: string],
  key: string,
  operation: string,
  terms: readonly (string | null)[],
  body: Uint8Array,
): Omit<IdempotentRequest, "note"> {
  return {
    key: toHex(nativeCrypto.sha256(utf8(JSON.stringify([operation, key])))),
    fingerprint: fingerprintOf(masterKey, owner, [operation, ...terms], body),
  };
}
