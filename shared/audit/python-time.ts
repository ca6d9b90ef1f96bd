/**
 * Times as LangBot's tables and its audit's `--created-after` write them: Python's `datetime.fromisoformat`, brought to
 * UTC and compared as text.
 *
 * @module
 */
import { PythonFailure, pyRepr } from "./python-value.ts";

const DATE =
  /^(?:(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)|(?<year2>\d{4})(?<month2>\d\d)(?<day2>\d\d)|(?<isoYear>\d{4})-?W(?<week>\d\d)(?:-?(?<weekday>\d))?)/;
const TIME =
  /^(?<hour>\d\d)(?::?(?<minute>\d\d)(?::?(?<second>\d\d)(?:[.,](?<fraction>\d+))?)?)?(?:(?<sign>[+-])(?<hours>\d\d)(?::?(?<minutes>\d\d)(?::?(?<seconds>\d\d)(?:\.\d+)?)?)?)?$/;
const DAY = 86_400_000;

/**
 * The time as `YYYY-MM-DD HH:MM:SS.ffffff` in UTC; one without an offset is UTC already, and a date alone is its
 * midnight. Such texts are in the order of time. Throws `PythonFailure` with Python's own words.
 */
export function naiveUtcText(text: string): string {
  const iso = text.replaceAll("Z", "+00:00");
  const date = DATE.exec(iso);
  if (date === null) throw malformed(iso);
  // Any one character separates the time from the date.
  const [, ...rest] = iso.slice(date[0].length);
  const hasTime = iso.length > date[0].length;
  const time = TIME.exec(rest.join(""));
  if (hasTime && time === null) throw malformed(iso);
  const { year, month, day, year2, month2, day2, isoYear, week, weekday = "1" } = date.groups ?? {};
  const midnight =
    isoYear === undefined
      ? dayOf(Number(year ?? year2), Number(month ?? month2), Number(day ?? day2))
      : dayOfWeek(Number(isoYear), Number(week), Number(weekday));
  const seconds = secondsOf(time?.groups ?? {});
  const instant = new Date(midnight + seconds * 1000);
  const inRange = instant.getUTCFullYear() >= 1 && instant.getUTCFullYear() <= 9999;
  if (!inRange) throw new PythonFailure("date value out of range");
  const whole = instant.toISOString();
  const fraction = (time?.groups?.fraction ?? "").slice(0, 6).padEnd(6, "0");
  return `${whole.slice(0, 10)} ${whole.slice(11, 19)}.${fraction}`;
}

function malformed(iso: string): PythonFailure {
  return new PythonFailure(`Invalid isoformat string: ${pyRepr(iso)}`);
}

/** Seconds from midnight UTC. */
function secondsOf(groups: Readonly<Record<string, string | undefined>>): number {
  const part = (name: string): number => Number(groups[name] ?? "0");
  if (part("hour") > 23) throw new PythonFailure("hour must be in 0..23");
  if (part("minute") > 59) throw new PythonFailure("minute must be in 0..59");
  if (part("second") > 59) throw new PythonFailure("second must be in 0..59");
  const offset = part("hours") * 3600 + part("minutes") * 60 + part("seconds");
  if (offset * 1000 >= DAY)
    throw new PythonFailure(
      "offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).",
    );
  const east = groups.sign === "-" ? -offset : offset;
  return part("hour") * 3600 + part("minute") * 60 + part("second") - east;
}

function dayOf(year: number, month: number, day: number): number {
  if (year < 1) throw new PythonFailure(`year ${year} is out of range`);
  if (month < 1 || month > 12) throw new PythonFailure("month must be in 1..12");
  const time = new Date(0);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999.
  time.setUTCFullYear(year, month - 1, day);
  if (time.getUTCMonth() !== month - 1 || day < 1) throw new PythonFailure("day is out of range for month");
  return time.getTime();
}

/** ISO 8601: week 1 is the one with January 4th, weeks begin on Monday. */
function dayOfWeek(year: number, week: number, weekday: number): number {
  if (week < 1 || week > 53) throw new PythonFailure(`Invalid week: ${week}`);
  if (weekday < 1 || weekday > 7) throw new PythonFailure(`Invalid weekday: ${weekday} (range is [1, 7])`);
  const fourth = dayOf(year, 1, 4);
  const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY;
  return monday + ((week - 1) * 7 + weekday - 1) * DAY;
}
