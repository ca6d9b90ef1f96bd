import { createHash } from "node:crypto";
import { encode } from "cborg";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeCrypto } from "../../../native/crypto.ts";
import { fromHex, toHex, utf8 } from "../../../shared/bytes.ts";
import { pureCrypto } from "../../../shared/crypto/pure.ts";
import type { FieldOpening } from "../../../shared/entry/commitment.ts";
import { commitField, FieldCommitter, SECTIONS } from "../../../shared/entry/commitment.ts";
import { joinSections, splitSections } from "../../../shared/entry/content.ts";
import { RunsealError } from "../../../shared/errors.ts";
import { canonicalJson } from "../../../shared/json/canonical.ts";
import { readVectors } from "../../vectors/read.ts";

const openings: fc.Arbitrary<FieldOpening> = fc.record({
  section: fc.constantFrom(...SECTIONS),
  name: fc.stringMatching(/^[a-z0-9_.]{1,64}$/),
  salt: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  text: fc.string({ unit: "binary" }),
});

describe("a commitment", () => {
  it("is SHA-256 over the CBOR of version, section, name, salt and text", () => {
    fc.assert(
      fc.property(openings, ({ section, name, salt, text }) => {
        const encoded = encode(["runseal.field.v1", section, name, salt, text]);
        const expected = createHash("sha256").update(encoded).digest("hex");
        expect(toHex(commitField(nativeCrypto, { section, name, salt, text }))).toBe(expected);
        expect(toHex(commitField(pureCrypto, { section, name, salt, text }))).toBe(expected);
      }),
    );
  });

  it("is another for any other section, name, salt or text", () => {
    fc.assert(
      fc.property(openings, openings, (one, other) => {
        const commitment = toHex(commitField(nativeCrypto, one));
        for (const part of ["section", "name", "salt", "text"] as const) {
          fc.pre(String(one[part]) !== String(other[part]));
          expect(toHex(commitField(nativeCrypto, { ...one, [part]: other[part] }))).not.toBe(commitment);
        }
      }),
    );
  });

  it("is told with the UTF-8 bytes of its text, at every width of a CBOR head", () => {
    const committer = new FieldCommitter(nativeCrypto);
    const salt = new Uint8Array(16);
    for (const length of [0, 1, 23, 24, 255, 256, 65_535, 65_536, 1_048_576]) {
      for (const name of ["a", "x".repeat(23), "x".repeat(24), "x".repeat(64)]) {
        for (const text of ["y".repeat(length), "\u{1F600}".repeat(Math.ceil(length / 4))]) {
          expect(committer.commit("action", name, salt, text).textBytes).toBe(utf8(text).length);
        }
      }
    }
  });

  it("is of the CBOR of its parts, whatever the length and the alphabet of the text", () => {
    const committer = new FieldCommitter(nativeCrypto);
    const salt = Uint8Array.from({ length: 16 }, (_, i) => i);
    for (const length of [0, 1, 23, 24, 255, 256, 511, 512, 513, 65_535, 65_536, 70_000]) {
      for (const text of [
        "y".repeat(length),
        `${"y".repeat(Math.max(0, length - 1))}\u00e9`,
        "\u{1F600}".repeat(length >> 2),
      ]) {
        const encoded = encode(["runseal.field.v1", "outcome", "result", salt, text]);
        const { commitment } = committer.commit("outcome", "result", salt, text);
        expect([length, toHex(commitment)]).toEqual([length, toHex(nativeCrypto.sha256(encoded))]);
      }
    }
  });

  it("is refused for a salt of another length and for an unpaired surrogate", () => {
    const committer = new FieldCommitter(nativeCrypto);
    expect(() => committer.commit("action", "a", new Uint8Array(15), "1")).toThrow(RunsealError);
    expect(() => committer.commit("action", "a", new Uint8Array(16), '"\ud800"')).toThrow(RunsealError);
  });

  it("gives the vectors", () => {
    const vectors =
      readVectors<
        {
          section: FieldOpening["section"];
          name: string;
          salt: string;
          text?: string;
          text_repeats?: [string, number];
          commitment: string;
        }[]
      >("field");
    expect(new Set(vectors.map(({ section }) => section)).size).toBe(3);
    for (const { section, name, salt, text, text_repeats: repeats, commitment } of vectors) {
      const value = text ?? `"${(repeats?.[0] ?? "").repeat(repeats?.[1] ?? 0)}"`;
      expect(toHex(commitField(pureCrypto, { section, name, salt: fromHex(salt), text: value }))).toBe(
        commitment,
      );
    }
  });
});

describe("content beside a leaf", () => {
  it("is split into the texts that it was joined from", () => {
    const texts = fc
      .dictionary(fc.stringMatching(/^[a-z0-9_.]{1,64}$/), fc.json().map(canonicalJson))
      .map((all) => new Map(Object.entries(all)));
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom(...SECTIONS)),
        fc.array(texts, { minLength: 3, maxLength: 3 }),
        (names, parts) => {
          const sections = new Map(names.map((name, i) => [name, parts[i] ?? new Map<string, string>()]));
          expect(splitSections(joinSections(sections))).toEqual(sections);
        },
      ),
    );
  });

  it("keeps a number's digits", () => {
    const text = '{"action":{"n":12345678901234567890,"m":1.0}}';
    expect(splitSections(text).get("action")?.get("n")).toBe("12345678901234567890");
    expect(joinSections(splitSections(text))).toBe(text);
  });

  it.each([
    "",
    "{",
    "[]",
    "{}x",
    '{"other":{}}',
    '{"action":1}',
    '{"action":{"a":}}',
    '{"action":{"a":1,"a":2}}',
  ])("that is not what was stored is refused: %s", (text) => {
    expect(() => splitSections(text)).toThrow(RunsealError);
    expect(() => splitSections(text)).toThrow(expect.objectContaining({ code: "malformed-content" }));
  });
});
