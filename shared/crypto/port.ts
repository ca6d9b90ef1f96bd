/**
 * The port through which hashing and signing enter the pure code. Two implementations give the same answer on
 * every vector: `shared/crypto/pure.ts` (noble; browsers, tests) and `native/crypto.ts` (node:crypto; Worker,
 * Durable Objects, Node).
 *
 * @module
 */

/** Everything the evidence code needs from a cryptographic library. All calls are synchronous. */
export interface CryptoPort {
  /** SHA-256 (FIPS 180-4): 32 bytes. */
  sha256(data: Uint8Array): Uint8Array;
  /**
   * Strict Ed25519 verification (RFC 8032, cofactorless): lengths 32 and 64, S < L, the 14 low-order encodings
   * refused for the key and for R, R's bytes compared. Never throws on bad input: it answers false.
   */
  verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
  /** A signer for a 32-byte Ed25519 seed (RFC 8032 private key). Throws `RunsealError("bad-key")` on another length. */
  signer(seed: Uint8Array): Signer;
}

/** Holds a private key and signs with it; the seed cannot be read back. */
export interface Signer {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** Ed25519 signature, 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}
