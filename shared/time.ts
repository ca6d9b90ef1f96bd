/**
 * Times: RFC 3339 text outside, nanoseconds since the epoch inside. A leaf holds a time as an unsigned 64-bit number,
 * which reaches from 1970 into July 2554; nothing else is accepted.
 *
 * @module
 */
import { RunsealError } from "./errors.ts";

/** The last nanosecond that fits: 2554-07-21T23:34:33.709551615Z. */
export const MAX_TIME = 2n ** 64n - 1n;

const NS_PER_SECOND = 1_000_000_000n;
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function refuse(why: string): RunsealError<"bad-time"> {
  return new RunsealError("bad-time", why);
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1 || day > (MONTH_DAYS[month - 1] ?? 0)) return false;
  return month !== 2 || day < 29 || (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0));
}

/** The number that `count` digits from a place on stand for; -1 where one of them is no digit. */
function digitsAt(text: string, from: number, count: number): number {
  let value = 0;
  for (let i = from; i < from + count; i++) {
    const digit = text.charCodeAt(i) - DIGIT_0;
    // A place past the end gives NaN.
    if (!(digit >= 0 && digit <= 9)) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** Where the seconds end, and what may follow them. */
const SECONDS_END = 19;
const MAX_FRACTION_DIGITS = 9;
const DIGIT_0 = 0x30;

/** Nanoseconds of the fraction behind the seconds, and where it ends; null where it is malformed. */
function fractionOf(text: string): { readonly ns: number; readonly end: number } | null {
  if (text.charAt(SECONDS_END) !== ".") return { ns: 0, end: SECONDS_END };
  let end = SECONDS_END + 1;
  let ns = 0;
  for (; end < text.length; end++) {
    const digit = text.charCodeAt(end) - DIGIT_0;
    if (!(digit >= 0 && digit <= 9)) break;
    ns = ns * 10 + digit;
  }
  const digits = end - SECONDS_END - 1;
  if (digits === 0 || digits > MAX_FRACTION_DIGITS) return null;
  return { ns: ns * 10 ** (MAX_FRACTION_DIGITS - digits), end };
}

/** Milliseconds by which a zone is ahead of UTC; null where the text from this place on is no zone. */
function zoneOf(text: string, at: number): number | null {
  const sign = text.charAt(at);
  if (sign === "Z" || sign === "z") return text.length === at + 1 ? 0 : null;
  const hour = digitsAt(text, at + 1, 2);
  const minute = digitsAt(text, at + 4, 2);
  const formed = (sign === "+" || sign === "-") && text.charAt(at + 3) === ":" && text.length === at + 6;
  if (!formed || hour < 0 || minute < 0) return null;
  if (hour > 23 || minute > 59) throw refuse("there is no such offset from UTC");
  return (hour * 60 + minute) * (sign === "-" ? -60_000 : 60_000);
}

/**
 * Nanoseconds since the epoch of an RFC 3339 date-time: up to nine fractional digits, `Z` or an offset up to 23:59,
 * no leap second (unix time has none). Throws `RunsealError("bad-time")`, also outside of 0..`MAX_TIME`.
 */
export function parseTime(text: string): bigint {
  const year = digitsAt(text, 0, 4);
  const month = digitsAt(text, 5, 2);
  const day = digitsAt(text, 8, 2);
  const hour = digitsAt(text, 11, 2);
  const minute = digitsAt(text, 14, 2);
  const second = digitsAt(text, 17, 2);
  const fraction = fractionOf(text);
  if (!hasMarks(text) || Math.min(year, month, day, hour, minute, second) < 0 || fraction === null)
    throw malformed();
  const offset = zoneOf(text, fraction.end);
  if (offset === null) throw malformed();
  if (!isDate(year, month, day)) throw refuse("there is no such date");
  if (hour > 23 || minute > 59 || second > 59)
    throw refuse("there is no such time of day (leap seconds are not accepted)");
  const ms = Date.UTC(year, month - 1, day, hour, minute, second) - offset;
  // Date.UTC reads the years 0 to 99 as 1900 to 1999.
  if (year < 1969 || ms < 0) throw refuse("the time is before 1970");
  const ns = BigInt(ms) * 1_000_000n + BigInt(fraction.ns);
  if (ns > MAX_TIME) throw refuse("the time is past July 2554");
  return ns;
}

/** Whether what stands between the numbers of date and time is what belongs there. */
function hasMarks(text: string): boolean {
  const between = text.charAt(10);
  return (
    text.charAt(4) === "-" &&
    text.charAt(7) === "-" &&
    (between === "T" || between === "t") &&
    text.charAt(13) === ":" &&
    text.charAt(16) === ":"
  );
}

function malformed(): RunsealError<"bad-time"> {
  return refuse("not an RFC 3339 time with at most nine fractional digits");
}

/** Whether `parseTime` accepts the text. */
export function isTime(text: string): boolean {
  try {
    parseTime(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * RFC 3339 text of nanoseconds since the epoch, in UTC with `Z`; the fraction's trailing zeros are dropped, and the
 * fraction with its dot where it is zero. Throws `RunsealError("bad-time")` outside of 0..`MAX_TIME`.
 */
export function formatTime(ns: bigint): string {
  if (ns < 0n || ns > MAX_TIME) throw refuse("the time does not fit 64 bits");
  const seconds = new Date(Number(ns / NS_PER_SECOND) * 1000).toISOString().slice(0, 19);
  const fraction = (ns % NS_PER_SECOND).toString().padStart(9, "0").replace(/0+$/, "");
  return fraction === "" ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}
