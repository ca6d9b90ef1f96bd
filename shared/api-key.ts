/**
 * The form of an API key: `rsk_` and base64url of tenant id, key id and secret. It names its tenant so that it can be
 * checked where the tenant's keys are; the tenant and key ids are not secret.
 *
 * @module
 */
import { concat, fromBase64, fromHex, toBase64, toHex } from "./bytes.ts";

const PREFIX = "rsk_";
const ENCODED = /^[A-Za-z0-9_-]{86}$/;

/** Characters of an API key. */
export const API_KEY_CHARS = 90;

export interface ApiKeyParts {
  /** 16 bytes of hex. */
  readonly tenant: string;
  /** 16 bytes of hex. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

export function formatApiKey({ tenant, id, secret }: ApiKeyParts): string {
  const text = toBase64(concat(fromHex(tenant, 16), fromHex(id, 16), secret));
  return PREFIX + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The parts of a key, or null for any other text. */
export function parseApiKey(text: string): ApiKeyParts | null {
  const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : "";
  if (!ENCODED.test(encoded)) return null;
  try {
    const bytes = fromBase64(`${encoded.replaceAll("-", "+").replaceAll("_", "/")}==`);
    return {
      tenant: toHex(bytes.subarray(0, 16)),
      id: toHex(bytes.subarray(16, 32)),
      secret: bytes.slice(32),
    };
  } catch {
    return null;
  }
}
