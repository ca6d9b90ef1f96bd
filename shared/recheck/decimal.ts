/**
 * Number literals as the decimals that they are. JSON numbers are compared by value without ever becoming a double,
 * and a number that a double can't hold is found (docs/recheck.md, "What the policy is handed").
 *
 * @module
 */

/** `digits` times 10 to the `exponent`; digits have no zero at either end, and are "" for zero. */
export interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly exponent: number;
}

/** The decimal that a JSON number literal writes. -0 is 0. */
export function decimalOf(literal: string): Decimal {
  const negative = literal.startsWith("-");
  const at = literal.search(/[eE]/);
  const mantissa = literal.slice(negative ? 1 : 0, at < 0 ? undefined : at);
  const point = mantissa.indexOf(".");
  const all = point < 0 ? mantissa : mantissa.slice(0, point) + mantissa.slice(point + 1);
  const digits = all.replace(/^0+/, "").replace(/0+$/, "");
  if (digits === "") return { negative: false, digits, exponent: 0 };
  const trailing = all.length - all.replace(/0+$/, "").length;
  const fraction = point < 0 ? 0 : mantissa.length - point - 1;
  const written = at < 0 ? 0 : Number(literal.slice(at + 1));
  return { negative, digits, exponent: written - fraction + trailing };
}

/** Order of two decimals: negative, zero or positive. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const signs = sign(a) - sign(b);
  if (signs !== 0 || a.digits === "") return signs;
  const size = compareSizes(a, b);
  return a.negative ? -size : size;
}

function sign(value: Decimal): number {
  if (value.digits === "") return 0;
  return value.negative ? -1 : 1;
}

/** Order of two decimals that are not zero, signs left aside. */
function compareSizes(a: Decimal, b: Decimal): number {
  const magnitudes = a.digits.length + a.exponent - (b.digits.length + b.exponent);
  if (magnitudes !== 0) return magnitudes;
  // Of equal magnitude: digit strings that start at the same place compare as texts.
  if (a.digits === b.digits) return 0;
  return a.digits < b.digits ? -1 : 1;
}

/** Whether the literal's value is an integer, however it is written: 1, 1.0 and 10e-1 are. */
export function isIntegral(value: Decimal): boolean {
  return value.exponent >= 0;
}

/**
 * Whether a double holds the number: it prints as the same decimal value or, for an integer, is exactly it. A literal
 * of up to 15 digits without an exponent always is.
 */
export function doubleHolds(literal: string): boolean {
  const exponent = /[eE]/.test(literal);
  if (literal.length <= 15 && !exponent) return true;
  const value = Number(literal);
  if (!Number.isFinite(value)) return false;
  const wanted = decimalOf(literal);
  if (compareDecimals(wanted, decimalOf(String(value))) === 0) return true;
  return Number.isInteger(value) && isIntegral(wanted) && BigInt(value) === integerOf(wanted);
}

/** An integral decimal, finite as a double, as a bigint. */
function integerOf(value: Decimal): bigint {
  const size = BigInt(value.digits + "0".repeat(value.exponent));
  return value.negative ? -size : size;
}

const SUSPECT = /[0-9][0-9.]{14}|[0-9][eE]/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/g;

/** Whether the JSON text has a number that a double can't hold. Digits inside strings don't count. */
export function hasUnheldNumber(text: string): boolean {
  if (!SUSPECT.test(text)) return false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (!token.startsWith('"') && !doubleHolds(token)) return true;
  }
  return false;
}
