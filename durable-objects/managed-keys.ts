/**
 * Managed private keys at rest: AES-GCM under a key derived from the master secret, bound to tenant, role, public key
 * and version. They are unwrapped only inside the Durable Object that signs.
 *
 * @module
 */
import { concat, equalBytes, fromHex, toHex, utf8 } from "../shared/bytes.ts";
import type { CryptoPort, Signer } from "../shared/crypto/port.ts";
import { RunsealError } from "../shared/errors.ts";
import type { RoleName } from "../shared/registry/record.ts";

const VERSION = 1;

/** A wrapped key as it is stored; nothing in it is secret without the master key. */
export interface WrappedKey {
  readonly version: number;
  readonly role: RoleName;
  /** 32 bytes of hex. */
  readonly publicKey: string;
  /** 12 bytes of hex. */
  readonly nonce: string;
  /** The seed's ciphertext and tag, hex. */
  readonly box: string;
}

async function wrappingKey(masterKey: string): Promise<CryptoKey> {
  const base = await crypto.subtle.importKey("raw", fromHex(masterKey, 32), "HKDF", false, ["deriveKey"]);
  return crypto.subtle.deriveKey(
    { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: utf8("runseal.managed-keys.v1") },
    base,
    { name: "AES-GCM", length: 256 },
    false,
    ["encrypt", "decrypt"],
  );
}

function additionalData(tenant: string, role: RoleName, publicKey: string, version: number): Uint8Array {
  return utf8(`runseal.managed-key/${version}/${tenant}/${role}/${publicKey}`);
}

/** Makes a key and wraps it. The seed leaves this function only inside the signer. */
export async function createManagedKey(
  port: CryptoPort,
  masterKey: string,
  tenant: string,
  role: RoleName,
): Promise<{ signer: Signer; wrapped: WrappedKey }> {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const signer = port.signer(seed);
  const publicKey = toHex(signer.publicKey);
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  const box = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv: nonce, additionalData: additionalData(tenant, role, publicKey, VERSION) },
    await wrappingKey(masterKey),
    seed,
  );
  seed.fill(0);
  return {
    signer,
    wrapped: { version: VERSION, role, publicKey, nonce: toHex(nonce), box: toHex(new Uint8Array(box)) },
  };
}

/** Unwraps a key and checks that it gives the public key it is stored under. Throws `RunsealError("bad-key")`. */
export async function openManagedKey(
  port: CryptoPort,
  masterKey: string,
  tenant: string,
  wrapped: WrappedKey,
): Promise<Signer> {
  let seed: Uint8Array;
  try {
    const opened = await crypto.subtle.decrypt(
      {
        name: "AES-GCM",
        iv: fromHex(wrapped.nonce, 12),
        additionalData: additionalData(tenant, wrapped.role, wrapped.publicKey, wrapped.version),
      },
      await wrappingKey(masterKey),
      fromHex(wrapped.box),
    );
    seed = new Uint8Array(opened);
  } catch {
    throw new RunsealError(
      "bad-key",
      "a managed key does not open: is MASTER_KEY the one that it was wrapped with?",
    );
  }
  const signer = port.signer(seed);
  seed.fill(0);
  if (!equalBytes(signer.publicKey, fromHex(wrapped.publicKey, 32))) {
    throw new RunsealError("bad-key", "a managed key does not give its public key");
  }
  return signer;
}

/** A keyed hash under the master secret, for values that must be the same again without being stored. 32 bytes. */
export async function deriveFromMaster(
  masterKey: string,
  purpose: string,
  ...parts: string[]
): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey(
    "raw",
    fromHex(masterKey, 32),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const pieces = [purpose, ...parts].flatMap((part) => {
    const bytes = utf8(part);
    return [utf8(`${bytes.length}:`), bytes];
  });
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, concat(...pieces)));
}
