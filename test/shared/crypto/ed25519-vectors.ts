/**
 * Ed25519 vectors of three publishers, as plain cases that any implementation of the port can be run over.
 *
 * @module
 */
import { readSharedJson } from "../../support/shared-files.ts";

/** One verification, and what a strict verifier must answer. */
export interface Ed25519Case {
  readonly name: string;
  /** Lower-case hex. */
  readonly key: string;
  readonly message: string;
  readonly signature: string;
  readonly valid: boolean;
}

const textHex = (text: string): string => Buffer.from(text, "utf8").toString("hex");

/** C2SP/wycheproof: 151 cases. */
export function wycheproofCases(): Ed25519Case[] {
  interface File {
    testGroups: {
      publicKey: { pk: string };
      tests: { tcId: number; msg: string; sig: string; result: string }[];
    }[];
  }
  const file = readSharedJson<File>("vectors/wycheproof/ed25519_test.json");
  return file.testGroups.flatMap((group) =>
    group.tests.map((test) => ({
      name: `wycheproof ${test.tcId}`,
      key: group.publicKey.pk,
      message: test.msg,
      signature: test.sig,
      valid: test.result === "valid",
    })),
  );
}

/** C2SP/CCTV: 914 cases; the expectation is a strict verifier's, not CCTV's. */
export function cctvCases(): Ed25519Case[] {
  const file = readSharedJson<{ number: number; key: string; sig: string; msg: string }[]>(
    "vectors/cctv-ed25519/ed25519vectors.json",
  );
  const { accept_numbers } = readSharedJson<{ accept_numbers: number[] }>(
    "vectors/extracted/cctv-strict-expectation.json",
  );
  const accepted = new Set(accept_numbers);
  return file.map((test) => ({
    name: `cctv ${test.number}`,
    key: test.key,
    message: textHex(test.msg),
    signature: test.sig,
    valid: accepted.has(test.number),
  }));
}

/**
 * novifinancial/ed25519-speccheck: 12 cases. A verifier without cofactor accepts 0 to 3 of them; the first three
 * have a low-order key or R, so that a strict one accepts case 3 alone.
 */
export function speccheckCases(): Ed25519Case[] {
  const file = readSharedJson<{ message: string; pub_key: string; signature: string }[]>(
    "vectors/ed25519-speccheck/cases.json",
  );
  return file.map((test, index) => ({
    name: `speccheck ${index}`,
    key: test.pub_key,
    message: test.message,
    signature: test.signature,
    valid: index === 3,
  }));
}

/** All of them. */
export function allEd25519Cases(): Ed25519Case[] {
  return [...wycheproofCases(), ...cctvCases(), ...speccheckCases()];
}
