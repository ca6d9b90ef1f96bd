import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, policyJson } from "../../../shared/json/canonical.ts";
import { JsonError } from "../../../shared/json/errors.ts";
import { compareUtf8 } from "../../../shared/json/order.ts";
import { JsonReader } from "../../../shared/json/reader.ts";
import { JsonNumber, type JsonValue, jsonText, parseJsonValue } from "../../../shared/json/value.ts";

const runs = { numRuns: 500 };
const utf8Order = (a: string, b: string): number =>
  Buffer.compare(Buffer.from(a, "utf8"), Buffer.from(b, "utf8"));

/** Characters at which the classes of the canonical form change, among ordinary ones. */
const character = fc.oneof(
  fc.constantFrom(
    ...'ab\u0000\u001f\u0020\u007f\u0080\u00ff"\\/<>&\b\f\n\r\t\u2027\u2028\u2029\u202a\ud7ff\ue000\uff5e\uffff',
    "\u{10000}",
    "\u{1f600}",
    "\u{10ffff}",
  ),
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
);
const text = fc.oneof(
  fc.array(character, { maxLength: 12 }).map((parts) => parts.join("")),
  fc.tuple(fc.integer({ min: 40, max: 60 }), character).map(([length, last]) => "x".repeat(length) + last),
);
const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: 6 });
const literal = fc
  .record({
    sign: fc.constantFrom("", "-"),
    whole: digits.map((d) => d.replace(/^0+(?=\d)/, "")),
    fraction: fc.option(digits),
    exponent: fc.option(fc.tuple(fc.constantFrom("e", "E", "e+", "E-"), fc.integer({ min: 0, max: 99 }))),
  })
  .map(
    ({ sign, whole, fraction, exponent }) =>
      sign + whole + (fraction === null ? "" : `.${fraction}`) + (exponent === null ? "" : exponent.join("")),
  );
const tree: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, false),
    literal.map((number) => new JsonNumber(number)),
    text,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(text, tie("value")), { maxLength: 15 }).map((members) => new Map(members)),
  ),
})).value;

/** One of the many texts of a value: `dice` chooses white space, escapes and the order of members. */
function anyText(value: JsonValue, dice: () => number): string {
  const space = (): string => ["", "", "", " ", "\n\t", "\r "][dice() % 6] ?? "";
  const join = (parts: string[]): string => parts.map((part) => space() + part + space()).join(",");
  if (value instanceof JsonNumber) return value.literal;
  if (typeof value === "string") return anyString(value, dice);
  if (Array.isArray(value)) return `[${join(value.map((element) => anyText(element, dice))) || space()}]`;
  if (value instanceof Map) {
    const members = [...value].map(([k, v]) => ({ k, v, rank: dice() })).sort((a, b) => a.rank - b.rank);
    return `{${join(members.map(({ k, v }) => `${anyString(k, dice)}${space()}:${space()}${anyText(v, dice)}`)) || space()}}`;
  }
  return String(value);
}

function anyString(value: string, dice: () => number): string {
  let out = "";
  for (const point of value) {
    const plain = JSON.stringify(point).slice(1, -1);
    const hex = [...Array(point.length).keys()]
      .map((i) => `\\u${point.charCodeAt(i).toString(16).padStart(4, "0")}`)
      .join("");
    const upper = hex.toUpperCase().replaceAll("\\U", "\\u");
    out += [plain, plain, plain, hex, upper, point === "/" ? "\\/" : plain][dice() % 6];
  }
  return `"${out}"`;
}

/** The canonical form written down once more, the slow way. */
function reference(value: JsonValue): string {
  if (value instanceof JsonNumber) return value.literal;
  if (typeof value === "string") {
    return JSON.stringify(value).replace(
      /[<>&\u2028\u2029]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  }
  if (Array.isArray(value)) return `[${value.map(reference).join(",")}]`;
  if (value instanceof Map) {
    const members = [...value].sort(([a], [b]) => utf8Order(a, b));
    return `{${members.map(([k, v]) => `${reference(k)}:${reference(v)}`).join(",")}}`;
  }
  return String(value);
}

const treeAndDice = fc
  .tuple(tree, fc.array(fc.nat(1000), { minLength: 1, maxLength: 60 }))
  .map(([value, rolls]) => {
    let at = 0;
    return { value, sent: anyText(value, () => (rolls[at++ % rolls.length] ?? 0) + at) };
  });

describe("canonical text", () => {
  it("is the same for every text of the same value", () => {
    fc.assert(
      fc.property(treeAndDice, ({ value, sent }) => {
        expect(canonicalJson(sent)).toBe(reference(value));
      }),
      runs,
    );
  });

  it("is its own canonical text, and the tree's", () => {
    fc.assert(
      fc.property(treeAndDice, ({ sent }) => {
        const canonical = canonicalJson(sent);
        expect(canonicalJson(canonical)).toBe(canonical);
        expect(jsonText(parseJsonValue(sent))).toBe(canonical);
      }),
      runs,
    );
  });

  it("means what was sent, in both forms", () => {
    fc.assert(
      fc.property(treeAndDice, ({ sent }) => {
        expect(JSON.parse(canonicalJson(sent))).toEqual(JSON.parse(sent));
        expect(JSON.parse(policyJson(sent))).toEqual(JSON.parse(sent));
        expect(policyJson(canonicalJson(sent))).toBe(policyJson(sent));
        expect(canonicalJson(policyJson(sent))).toBe(canonicalJson(sent));
      }),
      runs,
    );
  });

  it("is the same read member by member", () => {
    fc.assert(
      fc.property(treeAndDice, ({ value, sent }) => {
        if (!(value instanceof Map)) return;
        const reader = new JsonReader(`[${sent}]`);
        reader.enterArray();
        reader.nextElement();
        reader.enterObject();
        const members = new Map<string, string>();
        for (let key = reader.nextKey(); key !== null; key = reader.nextKey())
          members.set(key, reader.readCanonical());
        expect(reader.nextElement()).toBe(false);
        reader.finish();
        expect(members).toEqual(new Map([...value].map(([k, v]) => [k, reference(v)])));
      }),
      runs,
    );
  });
});

describe("compareUtf8", () => {
  it("orders as the UTF-8 bytes do", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(utf8Order(a, b));
      }),
      { numRuns: 3000 },
    );
  });
});

describe("acceptance, against JSON.parse", () => {
  const pieces = fc.constantFrom(
    ...'{}[],:"\\ \n\t0123456789eE.+-aub/\u0001\u00a0\ufeff\u2028',
    "\ud800",
    "\udc00",
    ...[
      "true",
      "false",
      "null",
      "\\u0061",
      "\\ud83d\\ude42",
      "\\ud800",
      '"a"',
      '"a":',
      "{}",
      "[]",
      "1e400",
      "-0.5E+3",
    ],
  );
  const soup = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(""));
  const edited = fc
    .tuple(treeAndDice, fc.array(fc.tuple(fc.nat(), fc.nat(2), pieces), { minLength: 1, maxLength: 3 }))
    .map(([{ sent }, edits]) => {
      let out = sent;
      for (const [at, drop, piece] of edits) {
        const i = at % (out.length + 1);
        out = out.slice(0, i) + piece + out.slice(i + drop);
      }
      return out;
    });
  const accepts = (call: () => unknown): boolean => {
    try {
      call();
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      if (error instanceof JsonError && error.code === "json-syntax") return false;
      throw error;
    }
  };

  it("skips exactly what JSON.parse parses", () => {
    fc.assert(
      fc.property(fc.oneof(soup, edited), (sent) => {
        const skip = (): void => {
          const reader = new JsonReader(sent);
          reader.skipValue();
          reader.finish();
        };
        expect(accepts(skip)).toBe(accepts(() => JSON.parse(sent)));
      }),
      { numRuns: 5000 },
    );
  });

  it("reads what JSON.parse parses unless it is refused for its meaning, and nothing else", () => {
    fc.assert(
      fc.property(fc.oneof(soup, edited), (sent) => {
        let outcome: string;
        try {
          const reader = new JsonReader(sent);
          reader.readCanonical();
          reader.finish();
          outcome = "accepted";
        } catch (error) {
          outcome = (error as JsonError).code;
          expect(error).toBeInstanceOf(JsonError);
          const { offset, pointer } = error as JsonError;
          expect(offset).toBeGreaterThanOrEqual(0);
          expect(offset).toBeLessThanOrEqual(sent.length);
          expect(pointer).toMatch(/^(\/([^~]|~[01])*)*$/s);
        }
        if (accepts(() => JSON.parse(sent))) expect(outcome).not.toBe("json-syntax");
        else expect(outcome).not.toBe("accepted");
      }),
      { numRuns: 5000 },
    );
  });

  it("points to the value that was spoilt", () => {
    fc.assert(
      fc.property(
        treeAndDice,
        fc.nat(),
        fc.constantFrom("1e999", '"\\udc00"', '{"k":1,"k":2}'),
        ({ value }, at, bad) => {
          const places: { pointer: string; put: (marked: JsonValue) => void }[] = [];
          const visit = (node: JsonValue, pointer: string): void => {
            const entries = Array.isArray(node)
              ? node.map((v, i) => [String(i), v] as const)
              : node instanceof Map
                ? [...node]
                : [];
            for (const [key, child] of entries) {
              const inner = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
              const put = (marked: JsonValue): void => {
                if (Array.isArray(node)) node[Number(key)] = marked;
                else if (node instanceof Map) node.set(key, marked);
              };
              places.push({ pointer: inner, put });
              visit(child, inner);
            }
          };
          visit(value, "");
          const place = places[at % (places.length || 1)];
          if (place === undefined) return;
          place.put("@spoilt@");
          const sent = reference(value).replace('"@spoilt@"', () => bad);
          try {
            canonicalJson(sent);
            expect.unreachable();
          } catch (error) {
            expect((error as JsonError).pointer).toBe(
              bad.startsWith("{") ? `${place.pointer}/k` : place.pointer,
            );
          }
        },
      ),
      runs,
    );
  });
});
