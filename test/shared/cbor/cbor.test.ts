import { decode as cborgDecode, encode as cborgEncode, rfc8949EncodeOptions } from "cborg";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareBytes, fromHex, toHex } from "../../../shared/bytes.ts";
import type { CborValue } from "../../../shared/cbor/decode.ts";
import { decodeCbor } from "../../../shared/cbor/decode.ts";
import type { CborInput } from "../../../shared/cbor/encode.ts";
import { encodeCbor } from "../../../shared/cbor/encode.ts";
import { RunsealError } from "../../../shared/errors.ts";
import { describeWithShared, readSharedJson } from "../../support/shared-files.ts";

/** The code of the refusal, or undefined where the bytes decode. */
function refusal(hex: string): string | undefined {
  try {
    decodeCbor(fromHex(hex));
    return undefined;
  } catch (error) {
    if (error instanceof RunsealError) return error.code;
    throw error;
  }
}

/** A random value of all the types that we carry. */
const { value: anyValue } = fc.letrec<{ value: CborValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom<CborValue>(null, true, false),
    fc.maxSafeInteger(),
    fc.bigInt({ min: -(1n << 64n), max: (1n << 64n) - 1n }).map(asDecoded),
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie("value"), { maxLength: 30 }),
    fc
      .array(
        fc.tuple(fc.oneof(fc.string({ unit: "grapheme", maxLength: 30 }), fc.maxSafeInteger()), tie("value")),
        {
          maxLength: 8,
        },
      )
      .map((pairs) => sorted(new Map(pairs))),
  ),
}));

function asDecoded(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Map order is part of what toEqual does not see and decoding determines. */
function sorted(map: Map<string | number, CborValue>): CborValue {
  return new Map([...map].sort(([a], [b]) => compareBytes(encodeCbor(a), encodeCbor(b))));
}

describeWithShared("RFC 8949 appendix A", "vectors/cbor/appendix_a.json", () => {
  const vectors = () =>
    readSharedJson<{ hex: string; roundtrip: boolean; decoded?: unknown; diagnostic?: string }[]>(
      "vectors/cbor/appendix_a.json",
    );

  /** Heads of the types that we don't carry, wherever the vectors have them on top. */
  const UNSUPPORTED = /^(c|d|f[0-3]|f[789ab])/;
  const INDEFINITE = /^(5f|7f|9f|bf|83018202039f|83019f|826161bf)/;

  it("decodes what is deterministic and of our types, and encodes it back to the same bytes", () => {
    const carried = vectors().filter(({ hex }) => !UNSUPPORTED.test(hex) && !INDEFINITE.test(hex));
    expect(carried).toHaveLength(37);
    for (const { hex } of carried) expect(toHex(encodeCbor(decodeCbor(fromHex(hex)))), hex).toBe(hex);
  });

  it("decodes them to the published values", () => {
    const plain = (value: CborValue): unknown => {
      if (value instanceof Map) return Object.fromEntries([...value].map(([key, one]) => [key, plain(one)]));
      if (Array.isArray(value)) return value.map(plain);
      return typeof value === "bigint" ? Number(value) : value;
    };
    let compared = 0;
    for (const vector of vectors()) {
      if (!("decoded" in vector) || refusal(vector.hex) !== undefined) continue;
      expect(plain(decodeCbor(fromHex(vector.hex))), vector.hex).toEqual(vector.decoded);
      compared++;
    }
    expect(compared).toBe(34);
    expect(decodeCbor(fromHex("1bffffffffffffffff"))).toBe(18446744073709551615n);
    expect(decodeCbor(fromHex("3bffffffffffffffff"))).toBe(-18446744073709551616n);
    expect(decodeCbor(fromHex("4401020304"))).toEqual(fromHex("01020304"));
    expect(decodeCbor(fromHex("a201020304"))).toEqual(
      new Map([
        [1, 2],
        [3, 4],
      ]),
    ); // prettier-ignore
  });

  it("says unsupported of tags, floats and simple values", () => {
    const others = vectors().filter(({ hex }) => UNSUPPORTED.test(hex));
    expect(others).toHaveLength(34);
    for (const { hex } of others) {
      // The vectors are RFC 7049's: RFC 8949 section 3.3 made a simple value below 32 in two bytes not well-formed.
      expect(refusal(hex), hex).toBe(hex === "f818" ? "malformed-cbor" : "unsupported-cbor");
    }
  });

  it("says malformed of indefinite lengths", () => {
    const others = vectors().filter(({ hex }) => INDEFINITE.test(hex));
    expect(others).toHaveLength(11);
    for (const { hex } of others) expect(refusal(hex), hex).toBe("malformed-cbor");
  });
});

describeWithShared("the seed systems' deterministic CBOR", "vectors/seed-systems.json", () => {
  const astrid = () =>
    readSharedJson<{ astrid_v2: Record<string, string> }>("vectors/seed-systems.json").astrid_v2;

  it("decodes and encodes back to the same bytes", () => {
    for (const hex of [astrid().genesis_body, astrid().body]) {
      expect(toHex(encodeCbor(decodeCbor(fromHex(hex!))))).toBe(hex);
    }
  });

  it("is written by the encoder from its parts", () => {
    const audit = fromHex(astrid().audit_pub!);
    const runtime = fromHex(astrid().runtime_pub!);
    const record: CborInput = [
      "astrid.audit.key-registry.v2",
      0,
      new Uint8Array(32),
      BigInt(astrid().genesis_time_ns!),
      0,
      [
        [1, audit],
        [2, runtime],
        [3, runtime],
        [4, runtime],
      ],
      [],
    ];
    expect(toHex(encodeCbor(record))).toBe(astrid().genesis_body);
  });

  it("keeps map keys in the order of their encoded bytes", () => {
    const body = decodeCbor(fromHex(astrid().body!)) as CborValue[];
    const fields = (body[9] as CborValue[])[1] as Map<string, CborValue>;
    expect([...fields.keys()]).toEqual(["path", "content_hash"]);
    const reversed = new Map([...fields].reverse());
    expect(encodeCbor(reversed)).toEqual(encodeCbor(fields));
  });
});

describe("decodeCbor", () => {
  const MALFORMED: [string, string][] = [
    ["nothing at all", ""],
    ["an array cut short", "8301"],
    ["a byte string cut short", "4401"],
    ["a text string cut short", "6261"],
    ["a head cut short", "1901"],
    ["a map without its last value", "a101"],
    ["an array with a huge count", "9affffffff00"],
    ["a map with a huge count", "bb00ffffffffffffff00"],
    ["a byte string with a length over 2^53", "5bffffffffffffffff00"],
    ["bytes after the item", "0000"],
    ["23 in two bytes", "1817"],
    ["255 in three bytes", "1900ff"],
    ["65535 in five bytes", "1a0000ffff"],
    ["2^32 - 1 in nine bytes", "1b00000000ffffffff"],
    ["a negative number in two bytes for one", "3800"],
    ["a text's length in two bytes for one", "780161"],
    ["a reserved head", "1c"],
    ["a reserved head among the simple values", "fc"],
    ["a break alone", "ff"],
    ["an indefinite array", "9f00ff"],
    ["an integer of indefinite length", "1f"],
    ["a tag of indefinite length", "df00"],
    ["map keys out of order", "a2616200616100"],
    ["map keys repeated", "a2616100616100"],
    ["an integer key after a text key", "a26161000100"],
    ["keys in order of their text but not of their bytes", "a2626161006162 00".replace(" ", "")],
    ["bad UTF-8", "61ff"],
    ["the least byte that is not ASCII, alone", "6180"],
    ["bad UTF-8 in a long text", `7840${"61".repeat(63)}ff`],
    ["an encoded surrogate", "63eda080"],
    ["an overlong encoding", "62c0af"],
    ["a simple value below 32 in two bytes", "f818"],
    ["a float cut short", "f97e"],
    ["a tag without its item", "c0"],
    ["a tag's number in two bytes for one", "d80000"],
    ["an unsupported item with bytes after it", "f97e0000"],
    ["an unsupported item with a malformed one after it", "82f97e001817"],
  ];

  it.each(MALFORMED)("says malformed of %s", (_name, hex) => {
    expect(refusal(hex)).toBe("malformed-cbor");
  });

  const UNSUPPORTED: [string, string][] = [
    ["undefined", "f7"],
    ["a simple value", "f820"],
    ["a float within an array", "8201f93c00"],
    ["a tag within a map", "a16161c100"],
    ["a byte string for a key", "a1410000"],
    ["null for a key", "a1f600"],
    ["an array for a key", "a18000"],
  ];

  it.each(UNSUPPORTED)("says unsupported of %s", (_name, hex) => {
    expect(refusal(hex)).toBe("unsupported-cbor");
  });

  it("accepts 64 levels of nesting and refuses 65, whatever they are made of", () => {
    expect(refusal(`${"81".repeat(63)}80`)).toBeUndefined();
    expect(refusal(`${"81".repeat(64)}80`)).toBe("malformed-cbor");
    expect(refusal(`${"a100".repeat(63)}a0`)).toBeUndefined();
    expect(refusal(`${"a100".repeat(64)}a0`)).toBe("malformed-cbor");
    expect(refusal(`${"c1".repeat(64)}00`)).toBe("unsupported-cbor");
    expect(refusal(`${"c1".repeat(65)}00`)).toBe("malformed-cbor");
    expect(refusal("81".repeat(100_000))).toBe("malformed-cbor");
  });

  it("never names the submitted bytes in its message", () => {
    for (const hex of ["63736563ff", "a2616200616100"]) {
      expect(() => decodeCbor(fromHex(hex))).toThrow(/^not deterministic CBOR at byte \d+: [a-z0-9 ,-]+$/i);
    }
  });

  it("gives byte strings that do not share memory with the input", () => {
    const input = fromHex("4401020304");
    const value = decodeCbor(input) as Uint8Array;
    input.fill(0);
    expect(value).toEqual(fromHex("01020304"));
  });

  it("gives safe integers as numbers and others as bigints, on both sides of the border", () => {
    const border = BigInt(Number.MAX_SAFE_INTEGER);
    for (const value of [border, -border]) expect(decodeCbor(encodeCbor(value))).toBe(Number(value));
    for (const value of [border + 1n, -border - 1n, border + 2n, -border - 2n]) {
      expect(decodeCbor(encodeCbor(value))).toBe(value);
    }
  });

  it("accepts nothing that would not encode back to the same bytes", () => {
    // Valid encodings with a few bytes changed reach far more of the decoder than random bytes do.
    const changed = fc
      .tuple(anyValue, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 }))
      .map(([value, changes]) => {
        const bytes = encodeCbor(value);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(changed, fc.uint8Array({ maxLength: 12 })), (bytes) => {
        let value: CborValue;
        try {
          value = decodeCbor(bytes);
        } catch (error) {
          if (!(error instanceof RunsealError)) throw error;
          return;
        }
        expect(encodeCbor(value)).toEqual(bytes);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("encodeCbor", () => {
  it("writes what cborg writes under RFC 8949's rules, and both decoders read it back", () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const bytes = encodeCbor(value);
        expect(bytes).toEqual(Uint8Array.from(cborgEncode(value, { ...rfc8949EncodeOptions })));
        expect(decodeCbor(bytes)).toEqual(value);
        const read: unknown = cborgDecode(bytes, {
          useMaps: true,
          strict: true,
          rejectDuplicateMapKeys: true,
        });
        expect(read).toEqual(value);
      }),
      { numRuns: 500 },
    );
  });

  it("sorts map keys by their encoded bytes whatever order they come in", () => {
    const keys = ["b", "aa", "", "a", 10, 1000, -1, 24, "é".repeat(12)];
    fc.assert(
      fc.property(fc.shuffledSubarray(keys), (some) => {
        const bytes = encodeCbor(new Map(some.map((key) => [key, 0])));
        const read = [...(decodeCbor(bytes) as Map<string | number, number>).keys()];
        const encoded = read.map((key) => encodeCbor(key));
        expect(encoded).toEqual([...encoded].sort(compareBytes));
        expect(read).toHaveLength(some.length);
      }),
    );
  });

  const REFUSED: [string, CborInput][] = [
    ["a fraction", 1.5],
    ["NaN", Number.NaN],
    ["an unsafe number", 2 ** 53],
    ["an unsafe negative number", -(2 ** 53)],
    ["2^64", 1n << 64n],
    ["-2^64 - 1", -(1n << 64n) - 1n],
    ["an unpaired surrogate", "\ud800"],
    ["an unpaired surrogate in a long text", `${"x".repeat(100)}\udc00`],
    [
      "two keys that encode alike",
      new Map<number | bigint, null>([
        [1, null],
        [1n, null],
      ]),
    ], // prettier-ignore
    ["undefined", undefined as unknown as null],
    ["an object", {} as unknown as null],
  ];

  it.each(REFUSED)("refuses %s", (_name, value) => {
    expect(() => encodeCbor(value)).toThrow(expect.objectContaining({ code: "bad-cbor-value" }));
  });

  it("refuses nesting that the decoder would refuse, and no less", () => {
    const nested = (levels: number): CborInput => (levels === 0 ? 0 : [nested(levels - 1)]);
    const maps = (levels: number): CborInput => (levels === 0 ? 0 : new Map([[0, maps(levels - 1)]]));
    for (const make of [nested, maps]) {
      expect(() => decodeCbor(encodeCbor(make(64)))).not.toThrow();
      expect(() => encodeCbor(make(65))).toThrow(expect.objectContaining({ code: "bad-cbor-value" }));
    }
  });
});
