import { describe, expect, it } from "vitest";
import { decodePythonJson } from "../../../shared/audit/python-json.ts";
import { naiveUtcText } from "../../../shared/audit/python-time.ts";
import {
  isBlank,
  PythonFailure,
  type PyValue,
  pyEqual,
  pyJson,
  pyRepr,
  pyStr,
  pyTruth,
} from "../../../shared/audit/python-value.ts";

// Expectations in this file were taken from CPython 3.11.

const decode = (text: string): PyValue => {
  const decoded = decodePythonJson(text);
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.value;
};
const refusal = (text: string): string | undefined => {
  const decoded = decodePythonJson(text);
  return decoded.ok ? undefined : decoded.reason;
};

describe("json.loads", () => {
  it("takes what the log refuses: NaN, a repeated key, half a surrogate pair", () => {
    expect(decode("[NaN,Infinity,-Infinity]")).toEqual([Number.NaN, Infinity, -Infinity]);
    expect([...(decode('{"b":1,"a":2,"b":3}') as Map<string, PyValue>)]).toEqual([
      ["b", 3n],
      ["a", 2n],
    ]);
    expect(decode('"\\ud800x"')).toBe("\ud800x");
    expect(decode('"\\ud83d\\ude00"')).toBe("\u{1f600}");
  });

  it("tells ints from floats", () => {
    expect(decode("[1,-0,12345678901234567890]")).toEqual([1n, 0n, 12345678901234567890n]);
    expect(decode("[1.0,1e2,1E-400,1e999]")).toEqual([1, 100, 0, Infinity]);
  });

  it.each([
    ["", "Expecting value: line 1 column 1 (char 0)"],
    ['{"a":', "Expecting value: line 1 column 6 (char 5)"],
    ["{bad", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"],
    ['{"a":1,}', "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)"],
    ["[1,]", "Expecting value: line 1 column 4 (char 3)"],
    ['{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"],
    ["[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"],
    ['{"a":1 2}', "Expecting ',' delimiter: line 1 column 8 (char 7)"],
    ["01", "Extra data: line 1 column 2 (char 1)"],
    ['"a', "Unterminated string starting at: line 1 column 1 (char 0)"],
    ['"a\\', "Unterminated string starting at: line 1 column 1 (char 0)"],
    ['"a\tb"', "Invalid control character at: line 1 column 3 (char 2)"],
    ['"\\x"', "Invalid \\escape: line 1 column 2 (char 1)"],
    ['"\\u12"', "Invalid \\uXXXX escape: line 1 column 3 (char 2)"],
    ["\ufeff{}", "Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)"],
    ['{"\u{1f600}":1,\n\n "b" x}', "Expecting ':' delimiter: line 3 column 6 (char 14)"],
    [
      "1".repeat(4301),
      "Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; " +
        "use sys.set_int_max_str_digits() to increase the limit",
    ],
  ])("refuses %j", (text, reason) => {
    expect(refusal(text)).toBe(reason);
  });

  it("runs out of stack on deep nesting, which is no decoding error", () => {
    expect(() => decodePythonJson("[".repeat(2000))).toThrow(PythonFailure);
    expect(decodePythonJson("[".repeat(900) + "]".repeat(900)).ok).toBe(true);
  });
});

describe("str and repr", () => {
  it.each<[PyValue, string]>([
    [null, "None"],
    [true, "True"],
    [7n, "7"],
    [1, "1.0"],
    [-0, "-0.0"],
    [1e16, "1e+16"],
    [123456789012345680, "1.2345678901234568e+17"],
    [1e15, "1000000000000000.0"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [1.5e-7, "1.5e-07"],
    [1e100, "1e+100"],
    [123456.789, "123456.789"],
    [Number.NaN, "nan"],
    [-Infinity, "-inf"],
    [["a", null], "['a', None]"],
    [new Map<string, PyValue>([["k", ["it's", '"q"', "\"'"]]]), `{'k': ["it's", '"q"', '"\\'']}`],
    [["\n\u00a0\u200b\u{e0001}\\\x7f\u00e9"], "['\\n\\xa0\\u200b\\U000e0001\\\\\\x7f\u00e9']"],
  ])("of value %#", (value, text) => {
    expect(pyStr(value)).toBe(text);
  });

  it("differ for text alone", () => {
    expect(pyStr("it's")).toBe("it's");
    expect(pyRepr("it's")).toBe('"it\'s"');
  });
});

describe("json.dumps", () => {
  it("escapes all but ASCII and separates with a space", () => {
    const value = decode('{"a":[1,1.0,NaN,true,null,"\u00e9\u{1f600}\\u007f\\n/\\"\\\\"],"b":{}}');
    expect(pyJson(value)).toBe(
      '{"a": [1, 1.0, NaN, true, null, "\\u00e9\\ud83d\\ude00\\u007f\\n/\\"\\\\"], "b": {}}',
    );
  });
});

describe("truth and equality", () => {
  it.each(["null", "false", '""', "0", "0.0", "-0.0", "[]", "{}"])("%s is false", (text) => {
    expect(pyTruth(decode(text))).toBe(false);
  });
  it.each(["true", '"x"', "1", "0.1", "NaN", "[0]", '{"":0}'])("%s is true", (text) => {
    expect(pyTruth(decode(text))).toBe(true);
  });

  it.each([
    ["1", "1.0", true],
    ["true", "1", true],
    ["false", "0.0", true],
    ["9007199254740993", "9007199254740992.0", false],
    ['{"a":1,"b":[2]}', '{"b":[2.0],"a":true}', true],
    ['{"a":1}', '{"a":1,"b":2}', false],
    ['{"a":null}', '{"b":null}', false],
    ["[1,2]", "[2,1]", false],
    ["[1]", "[1,2]", false],
    ['"1"', "1", false],
    ["null", "0", false],
    ["[NaN]", "[NaN]", true],
    ["[NaN]", "[1]", false],
    ["[]", "{}", false],
  ])("%s == %s is %s", (left, right, equal) => {
    expect(pyEqual(decode(left), decode(right))).toBe(equal);
    expect(pyEqual(decode(right), decode(left))).toBe(equal);
  });

  it("knows white space as Python does", () => {
    expect(isBlank(" \t\u001c\u0085\u3000")).toBe(true);
    expect(isBlank("\ufeff")).toBe(false);
    expect(isBlank("\u200b")).toBe(false);
  });
});

describe("datetime.fromisoformat, as naive UTC", () => {
  it.each([
    ["2026-09-29", "2026-09-29 00:00:00.000000"],
    ["2026-09-29 10:00:00.000000", "2026-09-29 10:00:00.000000"],
    ["2026-09-29T13:00:00+02:00", "2026-09-29 11:00:00.000000"],
    ["2026-09-29T10:00:00Z", "2026-09-29 10:00:00.000000"],
    ["2026-09-29T23:30-01:00", "2026-09-30 00:30:00.000000"],
    ["20260929T100000.1234567", "2026-09-29 10:00:00.123456"],
    ["2026-W40-2T10", "2026-09-29 10:00:00.000000"],
    ["0099-01-01", "0099-01-01 00:00:00.000000"],
  ])("%s", (text, naive) => {
    expect(naiveUtcText(text)).toBe(naive);
  });

  it.each([
    ["soon", "Invalid isoformat string: 'soon'"],
    ["2026-9-29", "Invalid isoformat string: '2026-9-29'"],
    ["2026-09-29T", "Invalid isoformat string: '2026-09-29T'"],
    ["2026-09-29Tx", "Invalid isoformat string: '2026-09-29Tx'"],
    ["2026-13-01", "month must be in 1..12"],
    ["2026-02-29", "day is out of range for month"],
    ["2026-09-29T24:00", "hour must be in 0..23"],
    ["2026-09-29T10:60", "minute must be in 0..59"],
    ["2026-09-29T10:00:60", "second must be in 0..59"],
  ])("refuses %s in Python's words", (text, reason) => {
    expect(() => naiveUtcText(text)).toThrow(new PythonFailure(reason));
  });
});
