/**
 * The part of strict Ed25519 verification that does not depend on the library underneath. Both
 * ports run these checks first, and so refuse the same keys and signatures.
 *
 * @module
 */
import { fromHex } from "../bytes.ts";

/** Length of a public key, and of R and S. */
export const ED25519_KEY_BYTES = 32;
export const ED25519_SIGNATURE_BYTES = 64;

/**
 * The seven y coordinates, as 32 little-endian bytes with the sign bit clear, that encode a point of order 1, 2, 4
 * or 8, the non-canonical forms included. With either sign bit they make the 14 low-order encodings.
 */
const LOW_ORDER_Y: readonly Uint8Array[] = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
].map((hex) => fromHex(hex, ED25519_KEY_BYTES));

/** The order L of the base point, little-endian (RFC 8032 section 5.1). */
const GROUP_ORDER = fromHex(
  "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010",
  ED25519_KEY_BYTES,
);

/** The field prime p = 2^255 - 19, little-endian. */
const FIELD_PRIME = fromHex(
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  ED25519_KEY_BYTES,
);

/** Whether the 32 bytes are one of the 14 encodings of a point of small order; other lengths answer false. */
export function isLowOrder(encoding: Uint8Array): boolean {
  if (encoding.length !== ED25519_KEY_BYTES) return false;
  return LOW_ORDER_Y.some((y) => equalsWithoutSign(encoding, y));
}

function equalsWithoutSign(encoding: Uint8Array, y: Uint8Array): boolean {
  for (let i = 0; i < 31; i++) {
    if (encoding[i] !== y[i]) return false;
  }
  return ((encoding[31] ?? 0) & 0x7f) === y[31];
}

/** Whether the little-endian number in `bytes` (its last byte masked with `topMask`) is below `limit`. */
function isBelow(bytes: Uint8Array, limit: Uint8Array, topMask: number): boolean {
  for (let i = 31; i >= 0; i--) {
    const byte = (bytes[i] ?? 0) & (i === 31 ? topMask : 0xff);
    const difference = byte - (limit[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/**
 * What can be refused from the bytes alone: wrong lengths, a low-order key or R, a key whose y is not reduced
 * (RFC 8032 section 5.1.3), S not below L. An R that is not reduced needs no check: the verification equation
 * compares R's bytes with a canonical encoding.
 */
export function passesStrictChecks(publicKey: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== ED25519_KEY_BYTES || signature.length !== ED25519_SIGNATURE_BYTES) return false;
  return (
    isBelow(signature.subarray(32), GROUP_ORDER, 0xff) &&
    isBelow(publicKey, FIELD_PRIME, 0x7f) &&
    !isLowOrder(publicKey) &&
    !isLowOrder(signature.subarray(0, 32))
  );
}
