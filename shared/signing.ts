/**
 * What a Runseal key signs: never bare bytes, always `dCBOR(["runseal.sig.v1", purpose, hash])`, so that a signature
 * made for one purpose says nothing for another.
 *
 * @module
 */
import { encodeCbor } from "./cbor/encode.ts";

export const SIGNATURE_TAG = "runseal.sig.v1";

/** What the signature is for. */
export type SignaturePurpose = "client" | "registry";

/**
 * The message to be signed.
 *
 * @param hash SHA-256 of the signed object, 32 bytes
 */
export function signedMessage(purpose: SignaturePurpose, hash: Uint8Array): Uint8Array {
  return encodeCbor([SIGNATURE_TAG, purpose, hash]);
}
