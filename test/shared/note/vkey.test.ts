import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import {
  formatVkey,
  isKeyName,
  logKey,
  noteKey,
  parseVkey,
  readKeyId,
  SIGNATURE_TYPES,
  witnessKey,
} from "../../../shared/note/vkey.ts";

const crypto = nativeCrypto;
const withCode = (code: string) => expect.objectContaining({ code });
const KEY = crypto.signer(new Uint8Array(32).fill(1)).publicKey;
const OTHER_KEY = crypto.signer(new Uint8Array(32).fill(2)).publicKey;

describe("note keys", () => {
  it("have the same id wherever it is computed, and another for each name, type and key", () => {
    const key = KEY;
    const ids = [
      logKey(crypto, "a", key),
      logKey(crypto, "b", key),
      witnessKey(crypto, "a", key),
      logKey(crypto, "a", OTHER_KEY),
      noteKey(crypto, "a", SIGNATURE_TYPES.ecdsa, key),
      noteKey(crypto, "a", SIGNATURE_TYPES.treeHead, key),
      noteKey(crypto, "a", SIGNATURE_TYPES.mlDsa44, key),
    ].map(({ keyId }) => keyId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(logKey(pureCrypto, "a", key).keyId).toBe(ids[0]);
  });

  it("have ids that are read from anywhere in a buffer", () => {
    expect(readKeyId(new Uint8Array([9, 9, 0xff, 1, 2, 3, 9]).subarray(2))).toBe(0xff010203);
  });

  it("go to vkeys and back", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 1 }).filter(isKeyName),
        fc.constantFrom(SIGNATURE_TYPES.ed25519, SIGNATURE_TYPES.cosignature),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        (name, type, publicKey) => {
          const key = noteKey(crypto, name, type, publicKey);
          expect(parseVkey(crypto, formatVkey(key))).toEqual(key);
        },
      ),
    );
  });

  it("refuse names, types and lengths that can't be", () => {
    const good = new Uint8Array(32);
    for (const name of ["", "a b", "a+b", "a\u3000b", "a\u0000", "\ud800"]) {
      expect(() => logKey(crypto, name, good)).toThrow(withCode("bad-key"));
    }
    for (const type of [0, 3, 7, 255])
      expect(() => noteKey(crypto, "a", type, good)).toThrow(withCode("bad-key"));
    for (const length of [0, 31, 33]) {
      expect(() => logKey(crypto, "a", new Uint8Array(length))).toThrow(withCode("bad-key"));
      expect(() => witnessKey(crypto, "a", new Uint8Array(length))).toThrow(withCode("bad-key"));
    }
    expect(() => noteKey(crypto, "a", SIGNATURE_TYPES.ecdsa, new Uint8Array(0))).toThrow(withCode("bad-key"));
  });

  it("are not the caller's array", () => {
    const bytes = KEY.slice();
    const key = logKey(crypto, "a", bytes);
    bytes.fill(0);
    expect(key.publicKey).toEqual(KEY);
  });
});
