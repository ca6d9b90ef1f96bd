import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LeafBytes } from "../../../shared/bundle/leaf-bytes.ts";
import { plainContentLine, plainLeafLine } from "../../../shared/bundle/plain-lines.ts";
import { fromBase64, toBase64 } from "../../../shared/bytes.ts";
import { MAX_LEAF_BYTES } from "../../../shared/entry/limits.ts";

const SALT = "ef".repeat(16);
const HASH = "ab".repeat(32);
const runtimes = ["with Buffer", "without Buffer"] as const;

function leafBytes(runtime: (typeof runtimes)[number]): LeafBytes {
  if (runtime === "without Buffer") vi.stubGlobal("Buffer", undefined);
  const made = new LeafBytes();
  vi.unstubAllGlobals();
  return made;
}
afterEach(() => {
  vi.unstubAllGlobals();
});

function strict(text: string): Uint8Array | null {
  try {
    return fromBase64(text);
  } catch {
    return null;
  }
}

describe.each(runtimes)("the bytes of a leaf, %s", (runtime) => {
  const nearBase64 = fc.oneof(
    fc.uint8Array({ maxLength: 400 }).map(toBase64),
    fc.stringMatching(/^[A-Za-z0-9+/=_ \n-]{0,40}$/),
    fc
      .tuple(
        fc.uint8Array({ minLength: 1, maxLength: 40 }).map(toBase64),
        fc.nat(60),
        fc.string({ unit: "binary" }),
      )
      .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + 1)),
  );

  it("are those of the strict decoder, and none where it refuses", () => {
    const bytes = leafBytes(runtime);
    fc.assert(
      fc.property(nearBase64, (text) => {
        const decoded = bytes.decode(text);
        const expected = strict(text);
        expect(decoded === null ? null : [...decoded]).toEqual(expected === null ? null : [0, ...expected]);
      }),
      { numRuns: 500 },
    );
  });

  it("are refused where only trailing bits, padding or the alphabet are another", () => {
    const bytes = leafBytes(runtime);
    for (const text of [
      "AB==",
      "AAB=",
      "AA",
      "AAA",
      "A===",
      "AA=A",
      "__--",
      "A\u0141AA",
      "AAAA\n",
      "=",
      "A",
    ]) {
      expect([text, bytes.decode(text)]).toEqual([text, null]);
    }
    expect(bytes.decode("")).toEqual(Uint8Array.of(0));
  });

  it("are decoded up to the limit, never cut", () => {
    const bytes = leafBytes(runtime);
    for (const length of [MAX_LEAF_BYTES - 1, MAX_LEAF_BYTES]) {
      const leaf = new Uint8Array(length).fill(7);
      expect(bytes.decode(toBase64(leaf))?.length).toBe(1 + length);
    }
    expect(bytes.decode(toBase64(new Uint8Array(MAX_LEAF_BYTES + 3)))).toBeNull();
  });
});

describe("a content line read the short way", () => {
  const field = fc.record({
    section: fc.constantFrom("action", "authorization", "outcome"),
    name: fc.string(),
    salt: fc.constant(SALT),
    text: fc.string({ unit: "binary" }),
  });

  it("is the line that was written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1 }), fc.array(field), (seq, fields) => {
        const line = { t: "content", seq, fields };
        expect(plainContentLine(JSON.stringify(line))).toEqual(line);
      }),
    );
  });

  it.each([
    ["a key twice", `{"t":"content","seq":1,"seq":2,"fields":[]}`],
    ["a member that is none", `{"t":"content","seq":1,"fields":[],"more":1}`],
    [
      "a field's member that is none",
      `{"t":"content","seq":1,"fields":[{"section":"action","name":"a","salt":"${SALT}","text":"1","x":1}]}`,
    ],
    [
      "another order",
      `{"t":"content","seq":1,"fields":[{"name":"a","section":"action","salt":"${SALT}","text":"1"}]}`,
    ],
    ["white space", `{"t":"content","seq":1, "fields":[]}`],
    ["a number in another form", `{"t":"content","seq":1.0,"fields":[]}`],
    ["a number that is not exact", `{"t":"content","seq":9007199254740993,"fields":[]}`],
    ["no number", `{"t":"content","seq":0,"fields":[]}`],
    [
      "an unpaired surrogate",
      `{"t":"content","seq":1,"fields":[{"section":"action","name":"a","salt":"${SALT}","text":"\ud800"}]}`,
    ],
    [
      "an escape that was not needed",
      `{"t":"content","seq":1,"fields":[{"section":"action","name":"\\u0061","salt":"${SALT}","text":"1"}]}`,
    ],
    [
      "a section that is none",
      `{"t":"content","seq":1,"fields":[{"section":"actor","name":"a","salt":"${SALT}","text":"1"}]}`,
    ],
    [
      "a salt that is none",
      `{"t":"content","seq":1,"fields":[{"section":"action","name":"a","salt":"${SALT.toUpperCase()}","text":"1"}]}`,
    ],
    [
      "a short salt",
      `{"t":"content","seq":1,"fields":[{"section":"action","name":"a","salt":"ef","text":"1"}]}`,
    ],
    ["no JSON", `{"t":"content","seq":1,"fields":[`],
    ["no fields", `{"t":"content","seq":1}`],
    ["null for a field", `{"t":"content","seq":1,"fields":[null]}`],
  ])("is left to the strict reader with %s", (_, text) => {
    expect(plainContentLine(text)).toBeNull();
  });
});

describe("a leaf line read the short way", () => {
  const line = (seq: string, hash = HASH, leaf = "AAAA") =>
    `{"t":"leaf","seq":${seq},"hash":"${hash}","leaf":"${leaf}"}`;

  it.each(["1", "9", "10", "999999999999999"])("says its place: %s", (seq) => {
    expect(plainLeafLine(line(seq), new LeafBytes())).toMatchObject({
      seq: Number(seq),
      hash: HASH,
      leaf: "AAAA",
    });
  });

  it.each([
    ["no place", line("")],
    ["place 0", line("0")],
    ["a leading zero", line("01")],
    ["a place of sixteen digits", line("1000000000000000")],
    ["a fraction", line("1.0")],
    ["a hash in capitals", line("1", HASH.toUpperCase())],
    ["a short hash", line("1", HASH.slice(1))],
    ["a long hash", line("1", `${HASH}a`)],
    ["a leaf with an escape", line("1", HASH, "AA\\u0041A")],
    ["a leaf with a quote", line("1", HASH, 'AAAA","x":"AAAA')],
    ["a leaf that is no base64", line("1", HASH, "AAA")],
    ["something behind it", `${line("1")} `],
    ["only its beginning", '{"t":"leaf","seq":'],
  ])("is left to the strict reader with %s", (_, text) => {
    expect(plainLeafLine(text, new LeafBytes())).toBeNull();
  });
});
