import { describe, expect, it } from "vitest";
import {
  argumentErrorSignal,
  diagnosticText,
  forbiddenSignal,
  hasResultText,
} from "../../../shared/audit/langbot-signals.ts";
import { decodePythonJson } from "../../../shared/audit/python-json.ts";
import type { PyValue } from "../../../shared/audit/python-value.ts";

const object = (text: string): Map<string, PyValue> => {
  const decoded = decodePythonJson(text);
  if (!decoded.ok || !(decoded.value instanceof Map)) throw new Error("no object");
  return decoded.value;
};

// Expectations in this file were taken from the script's patterns in CPython 3.11.

describe("forbidden words", () => {
  it.each([
    ["UNAUTHORISED access", "UNAUTHORISED"],
    ["unauthorized", "unauthorized"],
    ["time\u00a0\n out", "time\u00a0\n out"],
    ["it timed\u001cout", "timed\u001cout"],
    ["T\u0130MEOUT", "T\u0130MEOUT"],
    ["perm\u0131ss\u0131on den\u0131ed", "perm\u0131ss\u0131on den\u0131ed"],
    ["unauthori\u017fed", "unauthori\u017fed"],
    ["invalid json body, forbidden", "invalid json"],
    ["invalid json arguments, forbidden", "forbidden"],
    ["Invalid  JSON", ""],
    ["times out", ""],
  ])("of %j", (text, signal) => {
    expect(forbiddenSignal(text)).toBe(signal);
  });
});

describe("errors in arguments", () => {
  it.each([
    ["Invalid JSON arguments: x", "Invalid JSON arguments"],
    ["2 validation errors for RetrieveArgs", "2 validation errors for RetrieveArgs"],
    ["got 1 validation error for _xArgs.", "1 validation error for _xArgs"],
    ["\u0663 validation errors for BArg\u017f", "\u0663 validation errors for BArg\u017f"],
    ["x1 validation error for XArgs", ""],
    ["\u00e91 validation error for XArgs", ""],
    ["1 validation error for XArgs_", ""],
    ["1 validation error for XArgs\u00e9", ""],
    ["1 validation error for Args", ""],
    ["1 validation error for 9Args", ""],
  ])("of %j", (text, signal) => {
    expect(argumentErrorSignal(text)).toBe(signal);
  });
});

describe("the text that is searched", () => {
  it("is what the diagnostic keys hold, in any case and at any depth of objects, not in lists", () => {
    const data = object(
      '{"ERROR":"a","x":{"code":7,"y":{"Reason":null,"status":""}},"error":{"m":"b"},"l":[{"error":"c"}],"error_message":false}',
    );
    expect(diagnosticText("message.delta", data)).toBe("a\n7\n{'m': 'b'}\nFalse");
  });

  it("is the whole payload of a run.failed besides", () => {
    expect(diagnosticText("run.failed", object('{"note":"\u00e9"}'))).toBe('\n{"note": "\\u00e9"}');
  });
});

describe("the text of a result", () => {
  it("is any text string that equals it, in lists, too", () => {
    const result = object('{"content":[{"type":"text","text":"HELLO"}],"text":["other"]}');
    expect(hasResultText(result, "HELLO")).toBe(true);
    expect(hasResultText(result, "HELL")).toBe(false);
    expect(hasResultText(result, "other")).toBe(false);
    expect(hasResultText(undefined, "")).toBe(false);
  });
});
