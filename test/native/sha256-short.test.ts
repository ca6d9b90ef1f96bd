import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MAX_SHORT, sha256Short } from "../../native/sha256-short.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("SHA-256 of short messages", () => {
  it.each([
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ],
  ])("gives FIPS 180-4's answer for %j", (text, digest) => {
    expect(hex(sha256Short(new TextEncoder().encode(text)))).toBe(digest);
  });

  it("gives node:crypto's answer at every length, whatever was hashed before", () => {
    for (let length = 0; length <= MAX_SHORT; length++) {
      const data = randomBytes(length);
      expect(hex(sha256Short(data))).toBe(createHash("sha256").update(data).digest("hex"));
    }
  });

  it("keeps nothing of a longer message, and leaves its input alone", () => {
    const long = randomBytes(MAX_SHORT);
    const copy = Buffer.from(long);
    sha256Short(long);
    expect(hex(sha256Short(new Uint8Array(3)))).toBe(
      createHash("sha256").update(new Uint8Array(3)).digest("hex"),
    );
    expect(long.equals(copy)).toBe(true);
  });

  it("refuses what is longer than it takes", () => {
    expect(() => sha256Short(new Uint8Array(MAX_SHORT + 1))).toThrow(RangeError);
  });
});
