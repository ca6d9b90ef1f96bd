import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex, utf8 } from "../../../shared/bytes.ts";
import { isLowOrder, passesStrictChecks } from "../../../shared/crypto/ed25519-strict.ts";
import type { CryptoPort } from "../../../shared/crypto/port.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import { RunsealError } from "../../../shared/errors.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";
import type { Ed25519Case } from "./ed25519-vectors.ts";
import { cctvCases, speccheckCases, wycheproofCases } from "./ed25519-vectors.ts";

const PORTS: [string, CryptoPort][] = [
  ["pure", pureCrypto],
  ["native", nativeCrypto],
];

/** Names of the cases that the port answers wrongly. */
function wrong(port: CryptoPort, cases: readonly Ed25519Case[]): string[] {
  return cases
    .filter((one) => {
      const answer = port.verifyEd25519(fromHex(one.key), fromHex(one.message), fromHex(one.signature));
      return answer !== one.valid;
    })
    .map((one) => one.name);
}

/** The group order added to S: the same signature under a verifier that does not check S < L. */
function withOrderAdded(signature: Uint8Array): Uint8Array {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  let s = BigInt(`0x${toHex(signature.slice(32).reverse())}`) + order;
  const out = signature.slice();
  for (let i = 32; i < 64; i++) {
    out[i] = Number(s & 0xffn);
    s >>= 8n;
  }
  return out;
}

describe.each(PORTS)("the %s crypto port", (_name, port) => {
  it("hashes as FIPS 180-4 says", () => {
    expect(toHex(port.sha256(new Uint8Array(0)))).toBe(
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
    expect(toHex(port.sha256(utf8("abc")))).toBe(
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
  });

  it("answers with a plain array of its own, not with a window on a larger buffer", () => {
    const signer = port.signer(new Uint8Array(32).fill(7));
    for (const bytes of [port.sha256(utf8("x")), signer.publicKey, signer.sign(utf8("x"))]) {
      expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
      expect(bytes.buffer.byteLength).toBe(bytes.length);
    }
  });

  it("signs as RFC 8032 section 7.1 test 2 says", () => {
    const signer = port.signer(fromHex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
    expect(toHex(signer.publicKey)).toBe("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    expect(toHex(signer.sign(fromHex("72")))).toBe(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da" +
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
  });

  it("keeps signing with the seed that it was given when the caller's array changes", () => {
    const seed = new Uint8Array(32).fill(9);
    const signer = port.signer(seed);
    const before = signer.sign(utf8("m"));
    seed.fill(0);
    expect(signer.sign(utf8("m"))).toEqual(before);
  });

  it("refuses a seed of another length", () => {
    for (const length of [0, 31, 33, 64]) {
      expect(() => port.signer(new Uint8Array(length))).toThrow(RunsealError);
      expect(() => port.signer(new Uint8Array(length))).toThrow(expect.objectContaining({ code: "bad-key" }));
    }
  });

  it("answers false, and does not throw, for keys and signatures of other lengths", () => {
    const signer = port.signer(new Uint8Array(32).fill(1));
    const signature = signer.sign(utf8("m"));
    expect(port.verifyEd25519(signer.publicKey, utf8("m"), signature)).toBe(true);
    for (const key of [signer.publicKey.slice(1), new Uint8Array(0), new Uint8Array(33)]) {
      expect(port.verifyEd25519(key, utf8("m"), signature)).toBe(false);
    }
    for (const bad of [signature.slice(1), new Uint8Array(0), new Uint8Array(65), new Uint8Array(64)]) {
      expect(port.verifyEd25519(signer.publicKey, utf8("m"), bad)).toBe(false);
    }
  });

  it("refuses S + L for S", () => {
    const signer = port.signer(new Uint8Array(32).fill(2));
    const signature = signer.sign(utf8("m"));
    expect(port.verifyEd25519(signer.publicKey, utf8("m"), withOrderAdded(signature))).toBe(false);
  });

  it("answers false for a key that is no point of the curve", () => {
    const signature = port.signer(new Uint8Array(32).fill(3)).sign(utf8("m"));
    // y = 2 has no x on the curve.
    const key = new Uint8Array(32);
    key[0] = 2;
    expect(port.verifyEd25519(key, utf8("m"), signature)).toBe(false);
  });

  describeWithShared("over the published vectors", "vectors/extracted/cctv-strict-expectation.json", () => {
    it("answers all 151 of wycheproof", () => {
      const cases = wycheproofCases();
      expect(cases).toHaveLength(151);
      expect(cases.filter((one) => one.valid)).not.toHaveLength(0);
      expect(wrong(port, cases)).toEqual([]);
    });

    it("accepts of CCTV exactly what a strict verifier accepts", () => {
      const cases = cctvCases();
      expect(cases).toHaveLength(914);
      expect(cases.filter((one) => one.valid)).toHaveLength(43);
      expect(wrong(port, cases)).toEqual([]);
    });

    it("accepts of speccheck case 3 alone", () => {
      const cases = speccheckCases();
      expect(cases).toHaveLength(12);
      expect(wrong(port, cases)).toEqual([]);
    });
  });
});

describe("both crypto ports", () => {
  const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength });

  it("give the same hash, key and signature, and accept each other's", () => {
    fc.assert(
      fc.property(bytes(32, 32), bytes(0, 300), (seed, message) => {
        expect(nativeCrypto.sha256(message)).toEqual(pureCrypto.sha256(message));
        const [pure, native] = [pureCrypto.signer(seed), nativeCrypto.signer(seed)];
        expect(native.publicKey).toEqual(pure.publicKey);
        const signature = pure.sign(message);
        expect(native.sign(message)).toEqual(signature);
        expect(nativeCrypto.verifyEd25519(pure.publicKey, message, signature)).toBe(true);
        expect(pureCrypto.verifyEd25519(pure.publicKey, message, signature)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it("refuse a signature with any bit of key, message or signature flipped", () => {
    fc.assert(
      fc.property(bytes(32, 32), bytes(1, 40), fc.nat(), (seed, message, at) => {
        const signer = nativeCrypto.signer(seed);
        const all = [signer.publicKey.slice(), message.slice(), signer.sign(message)] as const;
        let bit = at % (8 * (96 + message.length));
        for (const part of all) {
          if (bit < 8 * part.length) {
            part[bit >> 3]! ^= 1 << (bit & 7);
            break;
          }
          bit -= 8 * part.length;
        }
        expect(nativeCrypto.verifyEd25519(...all)).toBe(false);
        expect(pureCrypto.verifyEd25519(...all)).toBe(false);
      }),
      { numRuns: 60 },
    );
  });

  it("refuse a key whose y is not reduced, and only such, before any arithmetic", () => {
    const signature = nativeCrypto.signer(new Uint8Array(32).fill(4)).sign(utf8("m"));
    // y = p + 3, and y = p - 2 with either sign: neither is of low order.
    const above = `f0${"ff".repeat(30)}`;
    const below = `eb${"ff".repeat(30)}`;
    for (const top of ["7f", "ff"]) {
      expect(passesStrictChecks(fromHex(above + top), signature)).toBe(false);
      expect(passesStrictChecks(fromHex(below + top), signature)).toBe(true);
    }
    for (const length of [31, 33]) {
      expect(passesStrictChecks(new Uint8Array(length).fill(9), signature)).toBe(false);
    }
  });

  describeWithShared("the low-order encodings", "vectors/extracted/cctv-strict-expectation.json", () => {
    it("are the 14 published ones and no others near them", () => {
      const { low_order_encodings } = readSharedJson<{ low_order_encodings: string[] }>(
        "vectors/extracted/cctv-strict-expectation.json",
      );
      expect(low_order_encodings).toHaveLength(14);
      for (const hex of low_order_encodings) {
        const encoding = fromHex(hex, 32);
        expect(isLowOrder(encoding)).toBe(true);
        // Each differs from the others, the sign bit aside, in more than one of these bytes.
        for (const index of [1, 15, 30]) {
          const near = encoding.slice();
          near[index]! ^= 1;
          expect(isLowOrder(near)).toBe(false);
        }
      }
      expect(isLowOrder(new Uint8Array(31))).toBe(false);
    });
  });
});
