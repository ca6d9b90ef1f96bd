/**
 * Values as Python's `json.loads` gives them, and what Python makes of them: text, truth, equality, JSON. The ledger
 * audit's answers depend on all of that (a null id counts as the id "None").
 *
 * @module
 */

/** An int is a bigint and a float a number, NaN and the infinities included; a dict keeps its order of insertion. */
export type PyValue = null | boolean | string | bigint | number | PyValue[] | Map<string, PyValue>;

/** An exception that the reference script would have ended with; its message is the report's reason. */
export class PythonFailure extends Error {
  override readonly name = "PythonFailure";
}

/** White space in the sense of `str.isspace` and of a pattern's `\s`. For use inside of a character class. */
export const PYTHON_SPACE =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const ONLY_SPACE = new RegExp(`^[${PYTHON_SPACE}]*$`);

/** Whether `text.strip()` leaves nothing. */
export function isBlank(text: string): boolean {
  return ONLY_SPACE.test(text);
}

/** `bool(value)`. */
export function pyTruth(value: PyValue | undefined): boolean {
  if (value === undefined || value === null) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  return typeof value === "number" ? value !== 0 : Boolean(value);
}

/** `type(value).__name__`. */
export function pyTypeName(value: PyValue): string {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
  if (value instanceof Map) return "dict";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  return typeof value === "number" ? "float" : "str";
}

/** `str(value)`. */
export function pyStr(value: PyValue): string {
  return typeof value === "string" ? value : pyRepr(value);
}

/** `repr(value)`. */
export function pyRepr(value: PyValue): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return reprOfText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return reprOfFloat(value, ["nan", "inf", "-inf"]);
  if (Array.isArray(value)) return `[${value.map(pyRepr).join(", ")}]`;
  return `{${[...value].map(([key, item]) => `${reprOfText(key)}: ${pyRepr(item)}`).join(", ")}}`;
}

/** `json.dumps(value, ensure_ascii=True)`. */
export function pyJson(value: PyValue): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return jsonOfText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return reprOfFloat(value, ["NaN", "Infinity", "-Infinity"]);
  if (Array.isArray(value)) return `[${value.map(pyJson).join(", ")}]`;
  return `{${[...value].map(([key, item]) => `${jsonOfText(key)}: ${pyJson(item)}`).join(", ")}}`;
}

/** `left == right`: True equals 1 and 1.0; the decoder's NaN is one object, and so equal to itself inside of others. */
export function pyEqual(left: PyValue, right: PyValue): boolean {
  if (Array.isArray(left))
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, index) => pyEqual(item, right[index] ?? null))
    );
  if (left instanceof Map) {
    if (!(right instanceof Map) || left.size !== right.size) return false;
    return [...left].every(([key, item]) => {
      const other = right.get(key);
      return other !== undefined && pyEqual(item, other);
    });
  }
  const a = asNumber(left);
  const b = asNumber(right);
  if (a === undefined || b === undefined) return left === right;
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) && Number.isNaN(b);
  // An int and a float are compared exactly, in Python as between bigint and number.
  return !(a < b) && !(a > b);
}

function asNumber(value: PyValue): bigint | number | undefined {
  if (typeof value === "boolean") return value ? 1n : 0n;
  return typeof value === "bigint" || typeof value === "number" ? value : undefined;
}

/** The shortest digits that give the float back: JavaScript's too, but the exponent begins elsewhere and has two digits. */
function reprOfFloat(value: number, [nan, inf, negative]: readonly [string, string, string]): string {
  if (Number.isNaN(value)) return nan;
  if (!Number.isFinite(value)) return value > 0 ? inf : negative;
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const sign = value < 0 ? "-" : "";
  const [mantissa = "", power = "0"] = Math.abs(value).toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16)
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const digits = mantissa.replace(".", "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** What `str.isprintable` refuses, and what a text's repr escapes besides. */
const SPECIAL = /[\p{C}\p{Z}\\'"]/gu;
const NAMED = new Map([
  ["\t", "\\t"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\\", "\\\\"],
  [" ", " "],
]);

function reprOfText(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inner = text.replace(SPECIAL, (character) => {
    if (character === "'" || character === '"') return character === mark ? `\\${character}` : character;
    return NAMED.get(character) ?? escaped(character.codePointAt(0) ?? 0);
  });
  return `${mark}${inner}${mark}`;
}

function escaped(point: number): string {
  const hex = point.toString(16);
  if (point < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return point < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

const JSON_NAMED = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

function jsonOfText(text: string): string {
  const inner = text.replace(
    // Units, not code points: a character past U+FFFF is two escapes. DEL is escaped, too.
    /["\\]|[^ -~]/g,
    (unit) => JSON_NAMED.get(unit) ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${inner}"`;
}
