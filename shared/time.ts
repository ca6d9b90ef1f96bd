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
const RFC_3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function refuse(why: string): RunsealError<"bad-time"> {
  return new RunsealError("bad-time", why);
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1 || day > (MONTH_DAYS[month - 1] ?? 0)) return false;
  return month !== 2 || day < 29 || (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0));
}

/**
 * Nanoseconds since the epoch of an RFC 3339 date-time: up to nine fractional digits, `Z` or an offset up to 23:59,
 * no leap second (unix time has none). Throws `RunsealError("bad-time")`, also outside of 0..`MAX_TIME`.
 */
export function parseTime(text: string): bigint {
  const parts = RFC_3339.exec(text);
  if (parts === null) throw refuse("not an RFC 3339 time with at most nine fractional digits");
  const [
    ,
    year,
    month,
    day,
    hour,
    minute,
    second,
    fraction = "",
    sign,
    offsetHour = "0",
    offsetMinute = "0",
  ] = parts;
  if (!isDate(Number(year), Number(month), Number(day))) throw refuse("there is no such date");
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) {
    throw refuse("there is no such time of day (leap seconds are not accepted)");
  }
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) throw refuse("there is no such offset from UTC");
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === "-" ? -60_000 : 60_000);
  const ms =
    Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)) -
    offset;
  // Date.UTC reads the years 0 to 99 as 1900 to 1999.
  if (Number(year) < 1969 || ms < 0) throw refuse("the time is before 1970");
  const ns = BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
  if (ns > MAX_TIME) throw refuse("the time is past July 2554");
  return ns;
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
