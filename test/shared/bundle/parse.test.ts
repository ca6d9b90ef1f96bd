import { describe, expect, it } from "vitest";
import { BundleError, bundleBytes, MAX_LINE_CHARS } from "../../../shared/bundle/format.ts";
import { parseBundleHeader, parseBundleLine } from "../../../shared/bundle/parse.ts";
import { concat, fromBase64 } from "../../../shared/bytes.ts";

const HASH = "ab".repeat(32);
const SIGNATURE = "cd".repeat(64);
const SALT = "ef".repeat(16);
const ORIGIN = `log.example/t/${"00".repeat(16)}/p/${"11".repeat(16)}.1`;

const LISTING = { checkpoint: "a\n", index: 0, leaf: "AAAA", path: [HASH, HASH], consistency: [] };

const LINES: Readonly<Record<string, Record<string, unknown>>> = {
  header: { runseal: "bundle.v1", registry_id: HASH, origin: ORIGIN, from: 1, to: 0 },
  registry: { t: "registry", epoch: 0, record: "AAAA", signatures: [{ key: HASH, signature: SIGNATURE }] },
  leaf: { t: "leaf", seq: 1, hash: HASH, leaf: "AAAA" },
  hash: { t: "hash", seq: 1, hash: HASH },
  content: {
    t: "content",
    seq: 1,
    fields: [{ section: "action", name: "a", salt: SALT, text: "\u00e9\u2028" }],
  },
  disclosure: { t: "disclosure", seq: 1, fields: [] },
  checkpoint: { t: "checkpoint", checkpoint: "a\nb\n" },
  tenant: { t: "tenant", ...LISTING },
  cosignature: { t: "cosignature", vkey: "host+00000000+AQ==", ...LISTING },
};

/** What becomes of a line: what it says, or the code of its refusal. */
function read(text: string, header = text.includes('"runseal"')): unknown {
  try {
    const line = header ? parseBundleHeader(text) : parseBundleLine(text);
    if ("prefixed" in line) {
      const { prefixed, ...rest } = line;
      // Decoded on the way where the line is as an export writes it.
      expect(prefixed).toEqual(concat(Uint8Array.of(0), fromBase64(line.leaf)));
      return rest;
    }
    return line;
  } catch (error) {
    if (error instanceof BundleError) return error.cut ? `${error.code}, cut` : error.code;
    throw error;
  }
}

const all = Object.entries(LINES);
const withMember = (line: Record<string, unknown>, name: string, value: unknown) =>
  JSON.stringify({ ...line, [name]: value });

describe("a line of a bundle", () => {
  it.each(all)("says what is written in it: %s", (_, line) => {
    expect(read(JSON.stringify(line))).toEqual(line);
  });

  it.each(all)("may have its members in any order, spaces, and escapes: %s", (_, line) => {
    const reversed = Object.fromEntries(Object.entries(line).reverse());
    expect(read(` ${JSON.stringify(reversed, null, " ").replaceAll("\n", "\t")}\r`)).toEqual(line);
    const escaped = JSON.stringify(line).replace(
      /(?<!\\)[a-z](?=")/g,
      (char) => `\\u00${char.charCodeAt(0).toString(16)}`,
    );
    expect(read(escaped, "runseal" in line)).toEqual(line);
  });

  it.each(all)("has all of its members: %s", (kind, line) => {
    for (const name of Object.keys(line)) {
      const { [name]: _, ...rest } = line;
      expect([name, read(JSON.stringify(rest), kind === "header")]).toEqual([name, "malformed-bundle"]);
    }
  });

  it.each(all)("is unsupported with another member, once the rest is well-formed: %s", (kind, line) => {
    const header = kind === "header";
    expect(read(withMember(line, "later", { a: [1] }), header)).toBe("unsupported-bundle");
    expect(read(`{"later":1e0,${JSON.stringify(line).slice(1)}`, header)).toBe("unsupported-bundle");
    expect(read(`${withMember(line, "later", 1)} x`, header)).toBe("malformed-bundle, cut");
    expect(read(withMember(line, "__proto__x", 1), header)).toBe("unsupported-bundle");
    const malformed = Object.fromEntries(
      Object.keys(line).map((name) => [name, name === "t" || name === "runseal" ? line[name] : {}]),
    );
    expect(read(withMember(malformed, "later", 1), header)).toBe("malformed-bundle");
  });

  it.each(all)("names each member once, also where it is spelled in another way: %s", (kind, line) => {
    const text = JSON.stringify(line);
    for (const [name, value] of Object.entries(line)) {
      const spelled = name.replace(/^./, (char) => `\\u00${char.charCodeAt(0).toString(16)}`);
      for (const again of [name, spelled]) {
        expect(read(`${text.slice(0, -1)},"${again}":${JSON.stringify(value)}}`, kind === "header")).toBe(
          "malformed-bundle",
        );
      }
    }
  });

  const wrong: readonly (readonly [string, string, readonly unknown[]])[] = [
    ["header", "registry_id", ["", HASH.toUpperCase(), `${HASH}00`, 1, null]],
    ["header", "origin", [1, null, []]],
    ["header", "from", [0, -1, 1.5, "1", null]],
    ["header", "to", [-1, "0"]],
    ["registry", "epoch", [-1, "0", null]],
    ["registry", "signatures", [null, {}, [{}], [{ key: HASH }], [{ key: HASH, signature: HASH }], [1]]],
    ["leaf", "seq", [0, -1, 1.5, "1", null, 2 ** 53]],
    ["leaf", "hash", [HASH.slice(1), HASH.replace("a", "g"), null]],
    ["leaf", "leaf", [1, null, ["AAAA"]]],
    ["content", "fields", [null, {}, ["x"], [{ section: "action", name: "a", salt: SALT }]]],
    [
      "content",
      "fields",
      [
        [{ section: "other", name: "a", salt: SALT, text: "" }],
        [{ section: "action", name: "a", salt: HASH, text: "" }],
      ],
    ],
    ["checkpoint", "checkpoint", [1, null, {}]],
    ["tenant", "index", [-1, 1.5, "0", null]],
    ["tenant", "path", [null, {}, HASH, [1], [HASH.slice(1)], [HASH.toUpperCase()]]],
    ["cosignature", "consistency", [null, [null], [SIGNATURE]]],
    ["cosignature", "vkey", [1, null]],
  ];
  it.each(wrong)("is malformed where it is of a wrong form: %s, %s", (kind, name, values) => {
    for (const value of values)
      expect([value, read(withMember(LINES[kind] ?? {}, name, value), kind === "header")]).toEqual([
        value,
        "malformed-bundle",
      ]);
  });

  it("has its numbers in plain digits", () => {
    for (const number of ["1.0", "1e0", "01", "+1", "-0", "9007199254740992", "10000000000000000"]) {
      expect([number, read(`{"t":"hash","seq":${number},"hash":"${HASH}"}`)]).toEqual([
        number,
        "malformed-bundle",
      ]);
    }
    expect(read(`{"t":"hash","seq":9007199254740991,"hash":"${HASH}"}`)).toMatchObject({
      seq: Number.MAX_SAFE_INTEGER,
    });
    expect(read(`{"t":"leaf","seq":9007199254740991,"hash":"${HASH}","leaf":""}`)).toMatchObject({
      seq: Number.MAX_SAFE_INTEGER,
    });
  });

  it("is strict JSON", () => {
    for (const line of [
      "null",
      "[]",
      '"leaf"',
      "1",
      "{}",
      '{"t":1}',
      '{"t":null}',
      `\ufeff${JSON.stringify(LINES.hash)}`,
    ]) {
      expect([line, String(read(line)).replace(", cut", "")]).toEqual([line, "malformed-bundle"]);
    }
    const leaf = JSON.stringify(LINES.leaf);
    for (const bad of ["\u0001", "\t", "\\x", "\\ud800", '"', "\ud800"]) {
      const line = leaf.replace("AAAA", `AA${bad}A`);
      expect([bad, read(line)]).toEqual([bad, "malformed-bundle"]);
    }
  });

  it("is told from one that was cut by how it ends", () => {
    const leaf = JSON.stringify(LINES.leaf);
    for (let end = 1; end < leaf.length; end++)
      expect(read(leaf.slice(0, end))).toBe("malformed-bundle, cut");
    expect(read(`${leaf.slice(0, 40)}}`)).toBe("malformed-bundle");
  });

  it("of an unknown kind or version is unsupported, where it is JSON at all", () => {
    expect(read('{"t":"novelty","x":[1,{"a":null}]}')).toBe("unsupported-bundle");
    expect(read('{"x":1,"t":"Leaf"}')).toBe("unsupported-bundle");
    expect(read('{"t":"novelty","x":1,"x":2}')).toBe("malformed-bundle");
    expect(read('{"runseal":"bundle.v2"}')).toBe("unsupported-bundle");
    expect(read('{"runseal":"bundle.v2",}')).toBe("malformed-bundle");
    expect(read('{"runseal":2}')).toBe("malformed-bundle");
    expect(read('{"t":"leaf"}', true)).toBe("malformed-bundle");
  });

  it("has at most 16 Mi characters", () => {
    const filled = (length: number) => {
      const line = '{"t":"checkpoint","checkpoint":""}';
      return line.replace('""', `"${"y".repeat(length - line.length)}"`);
    };
    expect(read(filled(MAX_LINE_CHARS))).toMatchObject({ t: "checkpoint" });
    expect(read(filled(MAX_LINE_CHARS + 1))).toBe("malformed-bundle");
  });

  it("takes base64 in its one form alone", () => {
    expect(bundleBytes("AAE=")).toEqual(Uint8Array.of(0, 1));
    for (const text of ["AAE", "AAF=", "AA E=", "AAE=\n", "AA-_", "=AAE", "AAE=AAE="]) {
      expect(() => bundleBytes(text), text).toThrow(BundleError);
    }
  });
});
