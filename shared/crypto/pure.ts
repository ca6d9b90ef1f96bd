/**
 * The crypto port over noble: pure JavaScript, for browsers and tests. `native/crypto.ts` gives the same answers
 * with the platform's own code, several times faster.
 *
 * @module
 */
import { getPublicKey, hashes, Point, sign } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { concat, equalBytes, toHex } from "../bytes.ts";
import { RunsealError } from "../errors.ts";
import { ED25519_KEY_BYTES, passesStrictChecks } from "./ed25519-strict.ts";
import type { CryptoPort, Signer } from "./port.ts";

// noble's synchronous calls take SHA-512 from this slot.
hashes.sha512 = (message) => sha512(message);

const GROUP_ORDER = Point.CURVE().n;

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${toHex(bytes.slice().reverse())}`);
}

/**
 * RFC 8032 section 5.1.7 without the cofactor: R must be, byte for byte, the encoding of [S]B - [k]A. noble's own
 * `verify` multiplies by the cofactor and so accepts more.
 */
function satisfiesEquation(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const r = signature.subarray(0, 32);
  let a: Point;
  try {
    a = Point.fromBytes(publicKey);
  } catch {
    return false; // not a point of the curve
  }
  const s = littleEndian(signature.subarray(32));
  const k = littleEndian(sha512(concat(r, publicKey, message))) % GROUP_ORDER;
  const expected = Point.BASE.multiply(s, false).add(a.negate().multiply(k, false));
  return equalBytes(expected.toBytes(), r);
}

class PureSigner implements Signer {
  readonly publicKey: Uint8Array;
  readonly #seed: Uint8Array;

  constructor(seed: Uint8Array) {
    this.#seed = seed.slice();
    this.publicKey = getPublicKey(this.#seed);
  }

  sign(message: Uint8Array): Uint8Array {
    return sign(message, this.#seed);
  }
}

/** Hashing and signing in pure JavaScript. */
export const pureCrypto: CryptoPort = {
  sha256: (data) => sha256(data),
  verifyEd25519: (publicKey, message, signature) =>
    passesStrictChecks(publicKey, signature) && satisfiesEquation(publicKey, message, signature),
  signer: (seed) => {
    if (seed.length !== ED25519_KEY_BYTES) throw new RunsealError("bad-key", "an Ed25519 seed has 32 bytes");
    return new PureSigner(seed);
  },
};
